package dag

import (
	"cmp"
	"slices"
)

// AtomBoxes returns a set of atoms of one storage, in any order, as few disjoint boxes over its
// [Graph.PieceShape]. They come in row-major order of their first elements. They are few, not
// fewest: neighbours are merged along one dimension after the other, the last one first. A set that is a single box
// stays one box.
func (g *Graph) AtomBoxes(atoms []int32) (shape []int, boxes []Box) {
	if len(atoms) == 0 {
		panic("dag: the boxes of no atoms")
	}
	storage := g.AtomStorage(AtomID(atoms[0]))
	gr := g.grids[storage]
	if gr == nil {
		shape = g.Buffers[storage].Shape
		return shape, []Box{Whole(shape)}
	}
	for _, a := range atoms {
		if g.AtomStorage(AtomID(a)) != storage {
			panic("dag: the boxes of atoms of several storages")
		}
		boxes = append(boxes, gr.boxOf(AtomID(a)))
	}
	for d := len(gr.fine) - 1; d >= 0; d-- {
		boxes = mergeAlong(d, boxes)
	}
	slices.SortFunc(boxes, func(a, b Box) int { return slices.CompareFunc(a, b, compareRanges) })
	if shape = g.PieceShape(storage); !slices.Equal(shape, gr.fine) {
		for i, b := range boxes {
			boxes[i] = withUnits(shape, b)
		}
	}
	return shape, boxes
}

// PieceShape is a shape of a storage over which each of its atoms is a box: its owner's where
// that tells all of them apart, else the common refinement of the owner and its views.
func (g *Graph) PieceShape(storage BufferID) []int {
	shape, gr := g.Buffers[storage].Shape, g.grids[storage]
	if gr == nil || slices.Equal(withoutUnits(shape), gr.fine) {
		return shape
	}
	return gr.fine
}

// AtomRows is the range of rows, along the first dimension of a storage with several elements, between the first
// and the last of some ascending atoms. No view of the storage cuts that dimension otherwise.
func (g *Graph) AtomRows(atoms []int32) Range {
	storage := g.AtomStorage(AtomID(atoms[0]))
	gr := g.grids[storage]
	if gr == nil {
		shape := g.Buffers[storage].Shape
		return Range{0, shape[slices.IndexFunc(shape, func(extent int) bool { return extent > 1 })]}
	}
	rows := slices.IndexFunc(gr.fine, func(extent int) bool { return extent > 1 })
	each := 1 // atoms of a row of atoms
	for _, cuts := range gr.cuts[rows+1:] {
		each *= len(cuts) - 1
	}
	cuts := gr.cuts[rows]
	return Range{cuts[(atoms[0]-int32(gr.base))/int32(each)], cuts[(atoms[len(atoms)-1]-int32(gr.base))/int32(each)+1]}
}

// boxOf is the box of one atom over the refinement.
func (gr *grid) boxOf(a AtomID) Box {
	box := make(Box, len(gr.fine))
	index := int(a - gr.base)
	for d := len(box) - 1; d >= 0; d-- {
		cells := len(gr.cuts[d]) - 1
		c := index % cells
		index /= cells
		box[d] = Range{gr.cuts[d][c], gr.cuts[d][c+1]}
	}
	return box
}

// mergeAlong joins boxes that follow each other in one dimension and agree in all
// others.
func mergeAlong(d int, boxes []Box) []Box {
	slices.SortFunc(boxes, func(a, b Box) int {
		for k := range a {
			if c := compareRanges(a[k], b[k]); c != 0 && k != d {
				return c
			}
		}
		return compareRanges(a[d], b[d])
	})
	merged := boxes[:1]
	for _, b := range boxes[1:] {
		last := merged[len(merged)-1]
		if last[d].Hi != b[d].Lo || !agreeBeside(d, last, b) {
			merged = append(merged, b)
			continue
		}
		last[d].Hi = b[d].Hi
	}
	return merged
}

// agreeBeside reports whether two boxes are the same in every dimension but one.
func agreeBeside(d int, a, b Box) bool {
	for k := range a {
		if k != d && a[k] != b[k] {
			return false
		}
	}
	return true
}

func compareRanges(a, b Range) int {
	return cmp.Or(cmp.Compare(a.Lo, b.Lo), cmp.Compare(a.Hi, b.Hi))
}

func withoutUnits(shape []int) []int {
	return slices.DeleteFunc(slices.Clone(shape), func(e int) bool { return e == 1 })
}

// withUnits adds the dimensions of extent 1 that the refinement lacks.
func withUnits(shape []int, fine Box) Box {
	box := make(Box, len(shape))
	next := 0
	for d, e := range shape {
		box[d] = Range{0, 1}
		if e > 1 {
			box[d] = fine[next]
			next++
		}
	}
	return box
}
