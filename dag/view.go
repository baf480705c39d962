package dag

import (
	"fmt"
	"slices"
)

// refine returns the common refinement of several row-major shapes with equal
// element counts: the coarsest dimensions from which each shape is obtained by
// merging neighbours.
//
// Theory. A row-major shape is determined by its suffix products: (2,3,5) has
// 5, 15, 30. Merging neighbours removes a suffix product, splitting one adds it.
// The refinement therefore has the union of the suffix products, and exists if
// and only if each of them, in ascending order, divides the next.
func refine(shapes [][]int) ([]int, error) {
	var products []int
	for _, shape := range shapes {
		p := 1
		for _, e := range slices.Backward(shape) {
			p *= e
			products = append(products, p)
		}
	}
	slices.Sort(products)
	products = slices.Compact(products)
	var fine []int
	inner := 1
	for _, p := range products {
		if p%inner != 0 {
			return nil, fmt.Errorf("shapes %v have no common refinement (%d does not divide %d)", shapes, inner, p)
		}
		if p != inner {
			fine = append(fine, p/inner)
		}
		inner = p
	}
	slices.Reverse(fine)
	return fine, nil
}

// maxFineBoxes bounds the boxes over the refinement that make one box of a view. A range that is
// not aligned costs a box or two for each dimension merged into its own, and the costs of several
// such ranges multiply.
const maxFineBoxes = 1 << 12

// toFine rewrites a box of a view with the given shape as disjoint boxes over
// the refinement, or fails if that takes more than maxFineBoxes.
func toFine(shape, fine []int, box Box) ([]Box, error) {
	boxes := []Box{nil}
	next := 0
	for d, extent := range shape {
		first := next
		for p := 1; p < extent; next++ {
			p *= fine[next]
		}
		if first == next { // a unit dimension has no counterpart
			continue
		}
		parts := splitRange(fine[first:next], box[d])
		if len(boxes)*len(parts) > maxFineBoxes {
			return nil, fmt.Errorf("box %v of shape %v is more than %d boxes of the common refinement %v; use a box aligned with the other shapes", box, shape, maxFineBoxes, fine)
		}
		product := make([]Box, 0, len(boxes)*len(parts))
		for _, b := range boxes {
			for _, p := range parts {
				product = append(product, slices.Concat(b, p))
			}
		}
		boxes = product
	}
	return boxes, nil
}

// splitRange writes a range of the merged dimension as at most 2k-1 boxes of its
// k factors: a partial head, the middle, a partial tail, the partial ones
// split again.
func splitRange(dims []int, r Range) []Box {
	if len(dims) == 1 {
		return []Box{{r}}
	}
	inner := 1
	for _, d := range dims[1:] {
		inner *= d
	}
	row := func(i int, part Range) []Box {
		boxes := splitRange(dims[1:], part)
		for k := range boxes {
			boxes[k] = slices.Insert(boxes[k], 0, Range{i, i + 1})
		}
		return boxes
	}
	first, head := r.Lo/inner, r.Lo%inner
	last, tail := r.Hi/inner, r.Hi%inner
	if first == last {
		return row(first, Range{head, tail})
	}
	var boxes []Box
	if head > 0 {
		boxes = row(first, Range{head, inner})
		first++
	}
	if first < last {
		boxes = append(boxes, slices.Insert(Whole(dims[1:]), 0, Range{first, last}))
	}
	if tail > 0 {
		boxes = append(boxes, row(last, Range{0, tail})...)
	}
	return boxes
}

// IsWhole reports whether the box is everything of a shape.
func (b Box) IsWhole(shape []int) bool {
	return slices.EqualFunc(b, shape, func(r Range, e int) bool { return r == Range{0, e} })
}

// Whole is the box of everything of a shape.
func Whole(shape []int) Box {
	b := make(Box, len(shape))
	for i, e := range shape {
		b[i] = Range{0, e}
	}
	return b
}
