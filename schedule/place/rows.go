package place

import (
	"slices"

	"dahl/dag"
)

// rowsUsed finds the storages with only some rows in use in a memory, neighbours along the first dimension, such as a
// device's samples of a batch, or its slice of the optimiser's state. Their replicas there hold these rows and no others. The storages are away from home, and
// no view cuts their first dimension in another way.
//
// Parameters and states come from home before the first step of a run and go back after the last one. So graphs may have different rows of them.
func (t *traffic) rowsUsed(items int, item func(i int) (dag.TaskID, *Move)) map[location]dag.Range {
	g := t.g
	used := map[location]dag.Range{}
	add := func(at location, r dag.Range) {
		if was, ok := used[at]; ok {
			r = dag.Range{Lo: min(r.Lo, was.Lo), Hi: max(r.Hi, was.Hi)}
		}
		used[at] = r
	}
	inRows := t.inRows()
	if !slices.Contains(inRows, true) {
		return nil
	}
	addMove := func(m *Move) {
		if inRows[m.Buffer] {
			rows := g.AtomRows(m.Atoms)
			add(location{m.Buffer, m.From}, rows)
			add(location{m.Buffer, m.To}, rows)
		}
	}
	for _, moves := range [2][]*Move{t.enter, t.leave} {
		for _, m := range moves {
			addMove(m)
		}
	}
	for i := range items {
		task, m := item(i)
		if m != nil {
			addMove(m)
			continue
		}
		for _, a := range g.Tasks[task].Accesses {
			if s := g.Storage(a.Buffer); inRows[s] && a.Box == nil {
				add(location{s, t.memoryOf(task)}, dag.Range{Hi: g.Buffers[s].Shape[0]})
			} else if inRows[s] {
				add(location{s, t.memoryOf(task)}, a.Box[0])
			}
		}
	}
	for at, r := range used {
		if r.Len() == g.Buffers[at.storage].Shape[0] || at.memory == t.homes[at.storage] {
			delete(used, at)
		}
	}
	return used
}

// inRows marks the storages that may be kept in part.
func (t *traffic) inRows() []bool {
	g := t.g
	may, written := make([]bool, len(g.Buffers)), g.WrittenStorages()
	for b := range g.Buffers {
		buf := &g.Buffers[b]
		if buf.ViewOf == dag.None {
			ofNetwork := buf.Role == dag.Parameter || buf.Role == dag.State
			may[b] = (ofNetwork || written[b] && !g.Carried(dag.BufferID(b))) && len(buf.Shape) > 0 && buf.Shape[0] > 1
		} else if len(buf.Shape) == 0 || buf.Shape[0] != g.Buffers[buf.ViewOf].Shape[0] {
			may[buf.ViewOf] = false // owners come before their views
		}
	}
	return may
}

// ofRows is the shape of the rows kept of a storage.
func ofRows(r dag.Range, kept bool, shape []int) []int {
	if !kept {
		return shape
	}
	shape = slices.Clone(shape)
	shape[0] = r.Len()
	return shape
}

// boxOfRows is a box counted from the first row kept of a storage.
func boxOfRows(r dag.Range, kept bool, box dag.Box) dag.Box {
	if !kept || box == nil {
		return box
	}
	box = slices.Clone(box)
	box[0].Lo -= r.Lo
	box[0].Hi -= r.Lo
	return box
}
