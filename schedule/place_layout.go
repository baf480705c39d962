package schedule

import (
	"fmt"

	"dahl/dag"
	"dahl/platform"
)

// layOut places the buffers of all graphs in their memories, where plans list places
// there. Where a memory cannot hold them it returns by how many bytes, and the error to
// report if nothing can be done.
func (placed *Placed) layOut(scratch [][]int64, plans []*Plan) (excess map[platform.MemoryID]int64, err error) {
	lists := make([]*Plan, len(placed.Graphs))
	keeps := make([][]bool, len(placed.Graphs)) // by graph and buffer: moved before or after the steps
	listed := make([][]*listedPlaces, len(placed.Graphs))
	for i, pg := range placed.Graphs {
		lists[i] = &Plan{Order: pg.Order}
		keeps[i] = pg.outsideSteps()
		if listed[i], err = pg.listedPlaces(placed, plans[i]); err != nil {
			return nil, fmt.Errorf("graph %q: %w", pg.Graph.Name, err)
		}
	}
	orders, err := programOrders(placed.Program, lists)
	if err != nil {
		return nil, err
	}
	var tooLarge error
	for m := range placed.Platform.Memories {
		in := part{
			holds: func(graph int, b dag.BufferID) bool { return placed.Graphs[graph].Memory[b] == platform.MemoryID(m) },
			keeps: func(graph int, b dag.BufferID) bool { return keeps[graph][b] },
		}
		for i := range placed.Graphs {
			in.listed = append(in.listed, listed[i][m])
		}
		for i := range scratch {
			in.scratchBytes = append(in.scratchBytes, scratch[i][m])
		}
		layouts, err := layOutPart(placed.Program, orders, in)
		if err != nil {
			return nil, fmt.Errorf("memory %q: %w", placed.Platform.Memories[m].Name, err)
		}
		for i, l := range layouts {
			pg := placed.Graphs[i]
			pg.Layouts = append(pg.Layouts, l)
			pg.Reuse, pg.ReuseNext = append(pg.Reuse, l.Reuse...), append(pg.ReuseNext, l.ReuseNext...)
			pg.RoomNext = append(pg.RoomNext, l.ReuseNext...)
		}
		if over, err := placed.overflow(&placed.Platform.Memories[m], layouts); over > 0 {
			if excess == nil {
				excess = map[platform.MemoryID]int64{}
			}
			excess[platform.MemoryID(m)], tooLarge = over, err
		}
	}
	for _, pg := range placed.Graphs {
		pg.Reuse, pg.ReuseNext, pg.RoomNext = tidy(pg.Reuse), tidy(pg.ReuseNext), tidy(pg.RoomNext)
	}
	return excess, tooLarge
}

// outsideSteps marks the storages that move before the first step or after the last.
func (pg *PlacedGraph) outsideSteps() []bool {
	moved := make([]bool, len(pg.Graph.Buffers))
	for _, moves := range [2][]*Move{pg.Enter, pg.Leave} {
		for _, m := range moves {
			for _, pair := range m.Pairs {
				moved[pg.Graph.Storage(pair.From.Buffer)], moved[pg.Graph.Storage(pair.To.Buffer)] = true, true
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
			most, err = over, fmt.Errorf("graph %q: %w", placed.Graphs[i].Graph.Name, tooLarge)
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
