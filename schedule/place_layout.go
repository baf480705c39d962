package schedule

import (
	"fmt"
	"math/bits"

	"dahl/dag"
	"dahl/platform"
)

// layOut places the buffers of all graphs in their memories, where plans list places
// there. Where a memory cannot hold them it returns by how many bytes, and the error to
// report if nothing can be done.
func (placed *Placed) layOut(scratch [][]int64, plans []*Plan) (layouts [][]*Layout, excess map[platform.MemoryID]int64, err error) {
	graphs, lists := make([]*tenants, len(placed.Graphs)), make([]*Plan, len(placed.Graphs))
	keeps := make([][]bool, len(placed.Graphs)) // by graph and buffer: moved before or after the steps
	listed := make([][]*listedPlaces, len(placed.Graphs))
	for i, pg := range placed.Graphs {
		graphs[i], lists[i], keeps[i] = pg.tenants(), &Plan{Order: pg.Order}, pg.outsideSteps()
		if listed[i], err = pg.listedPlaces(placed, plans[i]); err != nil {
			return nil, nil, fmt.Errorf("graph %q: %w", pg.Origin.Name, err)
		}
	}
	orders, err := programOrders(graphs, lists)
	if err != nil {
		return nil, nil, err
	}
	layouts = make([][]*Layout, len(placed.Graphs))
	var tooLarge error
	for m := range placed.Platform.Memories {
		in := part{program: placed.Origin.Name,
			holds: func(graph int, b dag.BufferID) bool {
				return placed.Graphs[graph].MemoryOf(b) == platform.MemoryID(m)
			},
			keeps: func(graph int, b dag.BufferID) bool { return keeps[graph][b] },
		}
		for i := range placed.Graphs {
			in.listed = append(in.listed, listed[i][m])
		}
		for i := range scratch {
			in.scratchBytes = append(in.scratchBytes, scratch[i][m])
		}
		here, err := layOutPart(graphs, orders, in)
		if err != nil {
			return nil, nil, fmt.Errorf("memory %q: %w", placed.Platform.Memories[m].Name, err)
		}
		for i, l := range here {
			layouts[i] = append(layouts[i], l)
		}
		if over, err := placed.overflow(&placed.Platform.Memories[m], here); over > 0 {
			if excess == nil {
				excess = map[platform.MemoryID]int64{}
			}
			excess[platform.MemoryID(m)], tooLarge = over, err
		}
	}
	return layouts, excess, tooLarge
}

// keepOrders adds those on which layouts rest.
func (pg *PlacedGraph) keepOrders(layouts []*Layout) {
	for _, l := range layouts {
		pg.Reuse, pg.RoomNext = append(pg.Reuse, l.Reuse...), append(pg.RoomNext, l.ReuseNext...)
	}
	pg.Reuse, pg.RoomNext = dag.SortEdges(pg.Reuse), dag.SortEdges(pg.RoomNext)
}

// layOutLater reports whether a layout would neither give orders, since the graph is too
// large to look for storages that could share bytes, nor be refused.
func (c *compiler) layOutLater(placed *Placed) bool {
	if len(placed.Graphs) != 1 || len(c.limits) > 0 || c.plans[0].Room != nil || c.plans[0].Places != nil || placed.Graphs[0].NumTasks() <= maxLayoutTasks {
		return false
	}
	for m, bytes := range placed.Graphs[0].mostBytes() {
		if limit := c.p.Memories[m].CapacityBytes; limit > 0 && limit < bytes+c.mostScratch(platform.MemoryID(m)) {
			return false
		}
	}
	return true
}

// mostBytes is what the instances take in each memory where none shares bytes, and each has
// all rows.
func (pg *PlacedGraph) mostBytes() []int64 {
	bytes := make([]int64, len(pg.p.Platform.Memories))
	for b := range pg.Origin.Buffers {
		switch buf := &pg.Origin.Buffers[b]; {
		case buf.ViewOf != dag.None:
		case pg.moves == nil:
			bytes[pg.host] += Align(buf.Bytes())
		default:
			for set := pg.instances.use[b]; set != 0; set &= set - 1 {
				bytes[bits.TrailingZeros64(set)] += Align(buf.Bytes())
			}
		}
	}
	return bytes
}

// tenants are what the layouts have to know.
func (pg *PlacedGraph) tenants() *tenants {
	if pg.moves == nil {
		return tenantsOf(pg.Origin)
	}
	return &tenants{graph: pg.Origin.Name, buffers: pg.buffers().list, links: pg.Links, carried: pg.carries, written: pg.writes, each: pg.body().Each, taskName: pg.name}
}

// outsideSteps marks the storages that move before the first step or after the last.
func (pg *PlacedGraph) outsideSteps() []bool {
	moved := make([]bool, len(pg.buffers().list))
	for _, moves := range [2][]*Move{pg.Enter, pg.Leave} {
		for _, m := range moves {
			for _, memory := range [2]platform.MemoryID{m.From, m.To} {
				moved[pg.movedInstance(location{m.Buffer, memory}, -1)] = true
			}
		}
	}
	return moved
}

// overflow is by how much a memory is too small for the layouts of all graphs, which share
// its arenas, and the error that says so: of the graph that takes most if that alone is too
// large.
func (placed *Placed) overflow(m *platform.Memory, layouts []*Layout) (most int64, err error) {
	var whole Layout
	for i, l := range layouts {
		for a, bytes := range l.ArenaBytes {
			whole.ArenaBytes[a] = max(whole.ArenaBytes[a], bytes)
		}
		if over, tooLarge := l.overflow(m); over > most {
			most, err = over, fmt.Errorf("graph %q: %w", placed.Graphs[i].Origin.Name, tooLarge)
		}
	}
	over, tooLarge := whole.overflow(m)
	if err == nil && over > 0 {
		err = fmt.Errorf("all graphs together: %w", tooLarge)
	}
	return over, err
}

// overflow is by how much a memory is too small for a layout, and the error that says so.
func (l *Layout) overflow(m *platform.Memory) (int64, error) {
	total := l.totalBytes()
	if m.CapacityBytes == 0 || total <= m.CapacityBytes {
		return 0, nil
	}
	a := &l.ArenaBytes
	return total - m.CapacityBytes, &RoomError{m.Name, fmt.Sprintf("memory %q has %d bytes and would hold %d, %d too many: network %d, data %d, step %d, scratch %d",
		m.Name, m.CapacityBytes, total, total-m.CapacityBytes, a[NetworkArena], a[DataArena], a[StepArena], a[ScratchArena])}
}

// RoomError says which memory cannot hold what a plan puts there. An instance of a storage has
// all rows that the memory's tasks use, and is there whole or not at all.
type RoomError struct {
	Memory string
	text   string
}

func (e *RoomError) Error() string { return e.text }

// totalBytes is what the arenas take together.
func (l *Layout) totalBytes() int64 {
	var total int64
	for _, bytes := range l.ArenaBytes {
		total += bytes
	}
	return total
}
