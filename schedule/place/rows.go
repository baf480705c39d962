package place

import (
	"slices"

	"dahl/dag"
	"dahl/platform"
)

// rowsUsed finds the storages with only some rows in use in a memory, neighbours along the first dimension of several elements, such as a
// device's samples of a batch, its positions of one sequence, or its slice of the optimiser's state. Their replicas there hold these rows and no others. The storages are away from home, and
// no view cuts this dimension in another way.
//
// Parameters and states come from home before the first step of a run and go back after the last one. So graphs may have different rows of them.
func (t *traffic) rowsUsed(items int, item func(i int) (dag.TaskID, *Move)) usedRows {
	g := t.g
	used := make(usedRows, len(g.Buffers))
	inRows := t.inRows()
	if !slices.Contains(inRows, true) {
		return nil
	}
	addMove := func(m *Move) {
		if inRows[m.Buffer] {
			rows := g.AtomRows(m.Atoms)
			used.add(location{m.Buffer, m.From}, rows)
			used.add(location{m.Buffer, m.To}, rows)
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
				shape := g.Buffers[s].Shape
				used.add(location{s, t.memoryOf(task)}, dag.Range{Hi: shape[rowDimension(shape)]})
			} else if inRows[s] {
				used.add(location{s, t.memoryOf(task)}, a.Box[rowDimension(g.Buffers[a.Buffer].Shape)])
			}
		}
	}
	for storage := range used {
		used[storage] = slices.DeleteFunc(used[storage], func(r rowsIn) bool {
			shape := g.Buffers[storage].Shape
			return r.Len() == shape[rowDimension(shape)] || r.memory == t.homes[storage]
		})
	}
	return used
}

// usedRows are ranges of rows by storage and memory, ascending by memory.
type usedRows [][]rowsIn

// rowsIn is the rows of a storage in a memory.
type rowsIn struct {
	memory platform.MemoryID
	dag.Range
}

// find is the place of a memory among those of a storage.
func (rows usedRows) find(at location) (i int, known bool) {
	list := rows[at.storage]
	if n := len(list); n == 0 || list[n-1].memory < at.memory { // mostly so while it grows
		return n, false
	}
	return slices.BinarySearchFunc(list, at.memory, func(r rowsIn, m platform.MemoryID) int { return int(r.memory - m) })
}

// of is the rows of a storage in a memory, if it is among them.
func (rows usedRows) of(at location) (r dag.Range, ok bool) {
	if rows == nil {
		return r, false
	}
	i, ok := rows.find(at)
	if ok {
		r = rows[at.storage][i].Range
	}
	return r, ok
}

// add makes the rows of a storage in a memory the least range that has some others too.
func (rows usedRows) add(at location, r dag.Range) {
	i, known := rows.find(at)
	if !known {
		rows[at.storage] = slices.Insert(rows[at.storage], i, rowsIn{at.memory, r})
		return
	}
	was := &rows[at.storage][i].Range
	*was = dag.Range{Lo: min(r.Lo, was.Lo), Hi: max(r.Hi, was.Hi)}
}

// inRows marks the storages that may be kept in part.
func (t *traffic) inRows() []bool {
	g := t.g
	may, written := make([]bool, len(g.Buffers)), g.WrittenStorages()
	for b := range g.Buffers {
		buf := &g.Buffers[b]
		if buf.ViewOf == dag.None {
			ofNetwork := buf.Role == dag.Parameter || buf.Role == dag.State
			may[b] = (ofNetwork || written[b] && !g.Carried(dag.BufferID(b))) && buf.Elems() > 1
		} else if owner := g.Buffers[buf.ViewOf].Shape; may[buf.ViewOf] && (buf.Elems() == 1 || buf.Shape[rowDimension(buf.Shape)] != owner[rowDimension(owner)]) {
			may[buf.ViewOf] = false // owners come before their views
		}
	}
	return may
}

// RowsIn is the range of bytes of a storage of the origin that its replica in a memory holds.
func (pg *Graph) RowsIn(b dag.BufferID, m platform.MemoryID) (first, end int64) {
	of := &pg.Origin.Buffers[b]
	rows, kept := pg.buffers().rows.of(location{b, m})
	if !kept {
		return 0, of.Bytes()
	}
	row := of.Bytes() / int64(of.Shape[rowDimension(of.Shape)])
	return int64(rows.Lo) * row, int64(rows.Hi) * row
}

// rowDimension is the first dimension of several elements. There is one.
func rowDimension(shape []int) int {
	return slices.IndexFunc(shape, func(extent int) bool { return extent > 1 })
}

// ofRows is the shape of the rows kept of a storage.
func ofRows(r dag.Range, kept bool, shape []int) []int {
	if !kept {
		return shape
	}
	shape = slices.Clone(shape)
	shape[rowDimension(shape)] = r.Len()
	return shape
}

// boxOfRows is a box of a shape counted from the first row kept of a storage.
func boxOfRows(r dag.Range, kept bool, shape []int, box dag.Box) dag.Box {
	if !kept || box == nil {
		return box
	}
	box = slices.Clone(box)
	rows := &box[rowDimension(shape)]
	rows.Lo -= r.Lo
	rows.Hi -= r.Lo
	return box
}
