package dag

import "slices"

// grid cuts one storage into atoms: the cells between neighbouring cuts of each
// dimension of its refinement, numbered row-major from base.
type grid struct {
	fine  []int
	cuts  [][]int // per dimension, ascending, from 0 to the extent
	base  AtomID
	cells Box   // of the box being listed, in cell indices
	boxes []Box // reused by boxesOf
	own   Box   // likewise, one without dimensions of extent 1
}

func newGrid(fine []int) *grid {
	n := len(fine)
	gr := &grid{fine: fine, cuts: make([][]int, n), cells: make(Box, n)}
	ends := make([]int, 2*n)
	for d, e := range fine {
		ends[2*d+1] = e
		gr.cuts[d] = ends[2*d : 2*d+2 : 2*d+2]
	}
	return gr
}

// boxesOf returns a box of a view as boxes over the refinement, which are valid
// until the next call.
func (gr *grid) boxesOf(shape []int, box Box) ([]Box, error) {
	gr.boxes = gr.boxes[:0]
	switch {
	case slices.Equal(shape, gr.fine):
		gr.boxes = append(gr.boxes, box)
	case gr.lacksUnits(shape):
		gr.own = gr.own[:0]
		for d, e := range shape {
			if e != 1 {
				gr.own = append(gr.own, box[d])
			}
		}
		gr.boxes = append(gr.boxes, gr.own)
	default:
		return toFine(shape, gr.fine, box)
	}
	return gr.boxes, nil
}

// lacksUnits reports whether the refinement is a shape without its dimensions of extent 1.
func (gr *grid) lacksUnits(shape []int) bool {
	n := 0
	for _, e := range shape {
		if e == 1 {
			continue
		}
		if n == len(gr.fine) || gr.fine[n] != e {
			return false
		}
		n++
	}
	return n == len(gr.fine)
}

// addCuts notes the boundaries of a box. The lists are compacted whenever they
// are full, so they stay proportional to the number of distinct cuts.
func (gr *grid) addCuts(box Box) {
	for d, r := range box {
		if r.Lo == 0 && r.Hi == gr.fine[d] {
			continue
		}
		c := gr.cuts[d]
		if len(c)+2 > cap(c) {
			slices.Sort(c)
			c = slices.Compact(c)
			c = slices.Grow(c, len(c)+2)
		}
		c = append(c, r.Lo, r.Hi)
		gr.cuts[d] = c
	}
}

// sortCuts completes the cuts and returns the number of atoms, or ok false if
// there are more than limit.
func (gr *grid) sortCuts(limit int) (atoms int, ok bool) {
	atoms = 1
	for d := range gr.cuts {
		slices.Sort(gr.cuts[d])
		gr.cuts[d] = slices.Compact(gr.cuts[d])
		atoms *= len(gr.cuts[d]) - 1
		if atoms > limit {
			return 0, false
		}
	}
	return atoms, true
}

// appendBytes appends the sizes of the atoms, for the dimensions from d on, where
// the ones before make some bytes.
func (gr *grid) appendBytes(sizes []int64, d int, bytes int64) []int64 {
	if d == len(gr.cuts) {
		return append(sizes, bytes)
	}
	for c, cut := range gr.cuts[d][1:] {
		sizes = gr.appendBytes(sizes, d+1, bytes*int64(cut-gr.cuts[d][c]))
	}
	return sizes
}

// appendAtoms appends the atoms of a box over the refinement, ascending.
func (gr *grid) appendAtoms(atoms []int32, box Box) []int32 {
	for d, r := range box {
		lo, _ := slices.BinarySearch(gr.cuts[d], r.Lo)
		hi, _ := slices.BinarySearch(gr.cuts[d], r.Hi)
		gr.cells[d] = Range{lo, hi}
	}
	return gr.appendCells(atoms, 0, 0)
}

// appendCells appends the atoms of gr.cells for the dimensions from d on, where
// the ones before make the row-major index.
func (gr *grid) appendCells(atoms []int32, d, index int) []int32 {
	if d == len(gr.cells) {
		return append(atoms, int32(gr.base)+int32(index))
	}
	index *= len(gr.cuts[d]) - 1
	for c := gr.cells[d].Lo; c < gr.cells[d].Hi; c++ {
		atoms = gr.appendCells(atoms, d+1, index+c)
	}
	return atoms
}
