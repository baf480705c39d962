package place

import (
	"fmt"
	"slices"

	"dahl/dag"
	"dahl/platform"
	"dahl/platform/quantity"
	"dahl/schedule/layout"
)

// layOut places the buffers of all graphs in their memories, where plans list places
// there, and with apart without shared bytes. Where a memory cannot hold them it returns by how many bytes, and the error to
// report if nothing can be done; else the layouts know their orders.
func (placed *Program) layOut(apart bool) (layouts [][]*layout.Layout, excess map[platform.MemoryID]int64, err error) {
	graphs := make([]*layout.Graph, len(placed.Graphs))
	for i, pg := range placed.Graphs {
		graphs[i] = pg.toLayOut()
		graphs[i].Apart = graphs[i].Apart || apart
		if graphs[i].Listed, err = pg.listedPlaces(); err != nil {
			return nil, nil, fmt.Errorf("graph %q: %w", pg.Origin.Name, err)
		}
	}
	if layouts, err = layout.Memories(placed.Origin.Name, graphs, placed.Platform.Memories); err != nil {
		return nil, nil, err
	}
	for m := range placed.Platform.Memories {
		var here []*layout.Layout
		for i := range layouts {
			here = append(here, layouts[i][m])
		}
		if over, tooLarge := Overflow(placed.Origin, &placed.Platform.Memories[m], here); over > 0 {
			if excess == nil {
				excess = map[platform.MemoryID]int64{}
			}
			excess[platform.MemoryID(m)], err = over, tooLarge
		}
	}
	if excess == nil {
		for _, l := range slices.Concat(layouts...) {
			l.FindOrders()
		}
	}
	return layouts, excess, err
}

// overfull is the number of bytes that a memory with evictions lacks for its live storages in any layout, and the error to report if nothing can be
// done. It takes a small part of the time of a layout.
func (placed *Program) overfull() (excess map[platform.MemoryID]int64, err error) {
	for _, pg := range placed.Graphs {
		least, stuck := pg.toLayOut().LeastBytes(len(placed.Platform.Memories))
		if stuck != nil {
			return nil, stuck
		}
		for id, bytes := range least {
			m := &placed.Platform.Memories[id]
			over := bytes - m.CapacityBytes
			if m.CapacityBytes == 0 || over <= 0 || placed.Platform.IsHost(platform.MemoryID(id)) {
				continue
			}
			if excess == nil {
				excess = map[platform.MemoryID]int64{}
			}
			excess[platform.MemoryID(id)] = over
			err = fmt.Errorf("graph %q: %w", pg.Origin.Name, &RoomError{m.Name, fmt.Sprintf("memory %q has %s and would hold %s at least", m.Name, quantity.ShortBytes(m.CapacityBytes), quantity.ShortBytes(bytes))})
		}
	}
	return excess, err
}

// keepOrders adds the orders on which layouts rest.
func (pg *Graph) keepOrders(layouts []*layout.Layout) {
	for _, l := range layouts {
		pg.Reuse, pg.MemoryReuseNext = append(pg.Reuse, l.Reuse...), append(pg.MemoryReuseNext, l.ReuseNext...)
	}
	pg.Reuse, pg.MemoryReuseNext = dag.SortEdges(pg.Reuse), dag.SortEdges(pg.MemoryReuseNext)
}

// manyTasks is the number of tasks above which buffers share bytes only where a memory cannot hold them otherwise: to look for
// those that may takes longer than to simulate some steps.
const manyTasks = 1 << 13

// layOutLater reports whether all buffers of a graph of many tasks have room without shared bytes, so that a layout neither gives
// orders nor is refused.
func (c *compiler) layOutLater(placed *Program) bool {
	if len(placed.Graphs) != 1 || len(c.limits) > 0 || c.plans[0].Spill != nil || c.plans[0].Places != nil || placed.Graphs[0].NumTasks() <= manyTasks {
		return false
	}
	pg := placed.Graphs[0]
	fits := func(rows usedRows) bool {
		for m, bytes := range pg.mostBytes(rows) {
			if limit := c.p.Memories[m].CapacityBytes; limit > 0 && limit < bytes+c.mostScratch(platform.MemoryID(m)) {
				return false
			}
		}
		return true
	}
	return fits(nil) || pg.moves != nil && fits(pg.rowsUsed(len(pg.moves), func(i int) (dag.TaskID, *Move) { return pg.taskOf[i], pg.moves[i] }))
}

// mostBytes is the size of the replicas in each memory, if none shares bytes. Of storages that are not among the rows it counts all of them.
func (pg *Graph) mostBytes(rows usedRows) []int64 {
	bytes := make([]int64, len(pg.p.Memories))
	for b := range pg.Origin.Buffers {
		switch buf := &pg.Origin.Buffers[b]; {
		case buf.ViewOf != dag.None:
		case pg.moves == nil:
			bytes[pg.host] += layout.Align(buf.Bytes()) * int64(pg.Origin.Versions(dag.BufferID(b)))
		default:
			for _, m := range pg.replicas.use.AppendTo(nil, int32(b)) {
				at, size := location{dag.BufferID(b), m}, buf.Bytes()
				if used, kept := rows.of(at); kept {
					size = size / int64(buf.Shape[rowDimension(buf.Shape)]) * int64(used.Len())
				}
				bytes[m] += layout.Align(size) * int64(pg.versionsIn(at))
			}
		}
	}
	return bytes
}

// toLayOut describes the placed graph for its layouts. In a plan with lags buffers lie apart, since orders from step to step are none of
// its periods.
func (pg *Graph) toLayOut() *layout.Graph {
	w, body := pg.buffers(), pg.Body()
	carried, written, copies := pg.carries, pg.writes, body.Versions
	if pg.moves == nil {
		carried, written = pg.Origin.CarriedStorages(), pg.Origin.WrittenStorages()
	}
	return &layout.Graph{Name: pg.Origin.Name, Buffers: w.list, Versions: copies, Links: pg.Links, Carried: carried, Written: written, Each: body.Each, TaskName: pg.Name,
		Order: pg.Order, Apart: pg.plan.Lags != nil, Memory: w.memory, Keeps: pg.keepsBytes(), ScratchBytes: pg.plan.ScratchBytes}
}

// keepsBytes marks the storages that share bytes with no other. They move before the first step or after the last, or
// have several versions in some memory, whose steps should not wait for others.
func (pg *Graph) keepsBytes() []bool {
	moved := make([]bool, len(pg.buffers().list))
	for b, of := range pg.buffers().of {
		moved[b] = pg.Origin.Versions(of) > 1
	}
	for _, moves := range [2][]*Move{pg.Enter, pg.Leave} {
		for _, m := range moves {
			for _, memory := range [2]platform.MemoryID{m.From, m.To} {
				moved[pg.movedReplica(location{m.Buffer, memory}, -1)] = true
			}
		}
	}
	return moved
}

// Overflow is the number of bytes that a memory lacks for the layouts of all graphs of a program there. They share its
// arenas. The error names the largest graph, if that alone is too large.
func Overflow(prog *dag.Program, m *platform.Memory, layouts []*layout.Layout) (most int64, err error) {
	var whole layout.Layout
	for i, l := range layouts {
		for a, bytes := range l.ArenaBytes {
			whole.ArenaBytes[a] = max(whole.ArenaBytes[a], bytes)
		}
		if over, tooLarge := overflow(l, m); over > most {
			most, err = over, fmt.Errorf("graph %q: %w", prog.Graphs[i].Name, tooLarge)
		}
	}
	over, tooLarge := overflow(&whole, m)
	if err == nil && over > 0 {
		err = fmt.Errorf("all graphs together: %w", tooLarge)
	}
	return over, err
}

// overflow is the number of bytes that a memory lacks for a layout, and an error with it.
func overflow(l *layout.Layout, m *platform.Memory) (int64, error) {
	total := l.TotalBytes()
	if m.CapacityBytes == 0 || total <= m.CapacityBytes {
		return 0, nil
	}
	a, short := &l.ArenaBytes, quantity.ShortBytes
	return total - m.CapacityBytes, &RoomError{m.Name, fmt.Sprintf("memory %q has %s and would hold %s, %s too many: network %s, data %s, step %s, scratch %s",
		m.Name, short(m.CapacityBytes), short(total), short(total-m.CapacityBytes), short(a[layout.NetworkArena]), short(a[layout.DataArena]), short(a[layout.StepArena]), short(a[layout.ScratchArena]))}
}

// RoomError says that a memory cannot hold the buffers of a plan. A replica of a storage has all rows that the
// memory's tasks use, and is there whole or not at all.
type RoomError struct {
	Memory string
	text   string
}

func (e *RoomError) Error() string { return e.text }
