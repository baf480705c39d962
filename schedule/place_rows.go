package schedule

import (
	"slices"

	"dahl/dag"
)

// rowsUsed finds the storages of which a memory uses only some rows, neighbours along the
// first dimension, such as the samples that a device was given of a batch. Their instances
// there hold those rows and no others. That is done for what lives within a step, away
// from home, and has no view that cuts the first dimension otherwise.
func (t *traffic) rowsUsed(items []placedItem) map[location]dag.Range {
	g := t.p.Graph
	used := map[location]dag.Range{}
	add := func(at location, r dag.Range) {
		if was, ok := used[at]; ok {
			r = dag.Range{Lo: min(r.Lo, was.Lo), Hi: max(r.Hi, was.Hi)}
		}
		used[at] = r
	}
	inRows := t.inRows()
	for i := range items {
		m := items[i].move
		if m == nil {
			task := items[i].task
			for k, a := range g.Tasks[task].Accesses {
				if s := g.Storage(a.Buffer); inRows[s] {
					add(location{s, t.memoryOf(task)}, g.Box(task, k)[0])
				}
			}
		} else if inRows[m.Buffer] {
			_, boxes := g.AtomBoxes(m.Atoms)
			for _, box := range boxes {
				add(location{m.Buffer, m.From}, box[0])
				add(location{m.Buffer, m.To}, box[0])
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

// inRows marks the storages of which a part of the rows may be kept.
func (t *traffic) inRows() []bool {
	g := t.p.Graph
	may := make([]bool, len(g.Buffers))
	for b := range g.Buffers {
		buf := &g.Buffers[b]
		if buf.ViewOf == dag.None {
			may[b] = t.written[b] && !g.Carried(dag.BufferID(b)) && len(buf.Shape) > 0 && buf.Shape[0] > 1
		} else if len(buf.Shape) == 0 || buf.Shape[0] != g.Buffers[buf.ViewOf].Shape[0] {
			may[buf.ViewOf] = false // owners come before their views
		}
	}
	return may
}

// ofRows is a shape with as many rows as there are of a storage in a memory.
func (c *placing) ofRows(at location, shape []int) []int {
	r, ok := c.rows[at]
	if !ok {
		return shape
	}
	shape = slices.Clone(shape)
	shape[0] = r.Len()
	return shape
}

// boxOfRows is a box counted from the first row of a storage in a memory.
func (c *placing) boxOfRows(at location, box dag.Box) dag.Box {
	r, ok := c.rows[at]
	if !ok {
		return box
	}
	box = slices.Clone(box)
	box[0].Lo -= r.Lo
	box[0].Hi -= r.Lo
	return box
}
