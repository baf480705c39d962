package schedule

import (
	"fmt"

	"dahl/dag"
	"dahl/platform"
)

// layOut places the buffers of all graphs in their memories, and refuses a memory that
// cannot hold them.
func (placed *Placed) layOut(scratch [][]int64) error {
	lists := make([]*Plan, len(placed.Graphs))
	keeps := make([][]bool, len(placed.Graphs)) // by graph and buffer: moved before or after the steps
	for i, pg := range placed.Graphs {
		lists[i] = &Plan{Order: pg.Order}
		keeps[i] = pg.outsideSteps()
	}
	orders, err := programOrders(placed.Program, lists)
	if err != nil {
		return err
	}
	for m := range placed.Platform.Memories {
		in := part{
			holds: func(graph int, b dag.BufferID) bool { return placed.Graphs[graph].Memory[b] == platform.MemoryID(m) },
			keeps: func(graph int, b dag.BufferID) bool { return keeps[graph][b] },
		}
		for i := range scratch {
			in.scratchBytes = append(in.scratchBytes, scratch[i][m])
		}
		layouts, err := layOutPart(placed.Program, orders, in)
		if err != nil {
			return err
		}
		for i, l := range layouts {
			pg := placed.Graphs[i]
			pg.Layouts = append(pg.Layouts, l)
			pg.Reuse, pg.ReuseNext = append(pg.Reuse, l.Reuse...), append(pg.ReuseNext, l.ReuseNext...)
			if err := l.fits(&placed.Platform.Memories[m]); err != nil {
				return fmt.Errorf("graph %q: %w", pg.Graph.Name, err)
			}
		}
	}
	for _, pg := range placed.Graphs {
		pg.Reuse, pg.ReuseNext = tidy(pg.Reuse), tidy(pg.ReuseNext)
	}
	return nil
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

// fits refuses a layout that a memory cannot hold.
func (l *Layout) fits(m *platform.Memory) error {
	var total int64
	for _, bytes := range l.ArenaBytes {
		total += bytes
	}
	if m.CapacityBytes == 0 || total <= m.CapacityBytes {
		return nil
	}
	a := &l.ArenaBytes
	return fmt.Errorf("memory %q has %d bytes and would hold %d, %d too many: network %d, data %d, step %d, scratch %d",
		m.Name, m.CapacityBytes, total, total-m.CapacityBytes, a[NetworkArena], a[DataArena], a[StepArena], a[ScratchArena])
}
