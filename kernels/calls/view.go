package calls

import (
	"unsafe"

	"dahl/dag"
)

// Map4 is a strided operand of four dimensions, usually samples, channels, rows
// and columns. The last stride is 1.
type Map4[T Element] struct {
	Elems  []T
	Extent [4]int
	Stride [4]int
}

// Map4Of is an operand of four dimensions as a map. It shares the elements of the operand.
func Map4Of[T Element](a *Arg) Map4[T] {
	return Map4[T]{Data[T](a), [4]int(a.Shape), [4]int(a.Stride)}
}

// Packed4 is a map of the given extents without gaps.
func Packed4[T Element](elems []T, extent [4]int) Map4[T] {
	e := extent
	return Map4[T]{elems, e, [4]int{e[1] * e[2] * e[3], e[2] * e[3], e[3], 1}}
}

// At is the position of element (i, j, k, l) in elems.
func (m *Map4[T]) At(i, j, k, l int) int {
	return i*m.Stride[0] + j*m.Stride[1] + k*m.Stride[2] + l*m.Stride[3]
}

// As is the same map with its dimensions in another order. Only there the last stride may be other than 1.
func (m Map4[T]) As(order [4]int) Map4[T] {
	seen := m
	for d, from := range order {
		seen.Extent[d], seen.Stride[d] = m.Extent[from], m.Stride[from]
	}
	return seen
}

// Each visits the indices of all elements in row-major order.
func (m *Map4[T]) Each(visit func(i, j, k, l int)) {
	for i := range m.Extent[0] {
		for j := range m.Extent[1] {
			for k := range m.Extent[2] {
				for l := range m.Extent[3] {
					visit(i, j, k, l)
				}
			}
		}
	}
}

// From is the part of a map from an index of a dimension on.
func (m Map4[T]) From(dim, index int) Map4[T] {
	m.Extent[dim] -= index
	m.Elems = m.Elems[min(index*m.Stride[dim], len(m.Elems)):]
	return m
}

// Part is a range of a dimension of a map.
func (m Map4[T]) Part(dim int, r dag.Range) Map4[T] {
	m = m.From(dim, r.Lo)
	m.Extent[dim] = r.Len()
	return m
}

// Block is one of equal parts of a dimension.
func (m Map4[T]) Block(dim, i, parts int) Map4[T] {
	n := m.Extent[dim] / parts
	return m.Part(dim, dag.Range{Lo: i * n, Hi: (i + 1) * n})
}

// Clear sets all elements to zero.
func (m *Map4[T]) Clear() {
	run, k := m.Extent[3], m.Extent[2]
	if m.Stride[2] == run {
		run, k = run*k, 1
	}
	for i := range m.Extent[0] {
		for j := range m.Extent[1] {
			for k := range k {
				at := m.At(i, j, k, 0)
				clear(m.Elems[at : at+run])
			}
		}
	}
}

// Runs splits operands of equal shape into rows that are contiguous in all of them. There are
// rows runs of length run each, over the first outer dimensions.
func Runs(args ...*Arg) (outer, rows, run int) { return RunsFrom(0, args...) }

// RunsFrom is Runs over the dimensions from first. The extents before may differ. rows counts
// the runs of one element of the dimensions before first.
func RunsFrom(first int, args ...*Arg) (outer, rows, run int) {
	rank := len(args[0].Shape)
	run, rows = 1, 1
	for outer = rank; outer > first; outer-- {
		e := args[0].Shape[outer-1]
		fits := true
		for _, a := range args {
			fits = fits && (e == 1 || a.Stride[outer-1] == run)
		}
		if !fits {
			break
		}
		run *= e
	}
	for _, e := range args[0].Shape[first:outer] {
		rows *= e
	}
	return outer, rows, run
}

// Volume is the number of elements of the region.
func (a *Arg) Volume() int {
	n := 1
	for _, e := range a.Shape {
		n *= e
	}
	return n
}

// EachRun visits three operands of one shape in runs that are contiguous in all of them.
func EachRun[A, B, C Element](a, b, c *Arg, visit func([]A, []B, []C)) {
	outer, rows, run := Runs(a, b, c)
	for r := range rows {
		visit(Data[A](a)[a.Offset(outer, r):][:run], Data[B](b)[b.Offset(outer, r):][:run], Data[C](c)[c.Offset(outer, r):][:run])
	}
}

// Offset is the position of run r, as runs counts them.
func (a *Arg) Offset(outer, r int) int { return a.OffsetFrom(0, outer, r) }

// OffsetFrom is offset for RunsFrom.
func (a *Arg) OffsetFrom(first, outer, r int) int {
	at := 0
	for d := outer - 1; d >= first; d-- {
		e := a.Shape[d]
		at += r % e * a.Stride[d]
		r /= e
	}
	return at
}

// Put stores a result, or adds it to the old value.
func Put[T Float](dst *T, v T, add bool) {
	if add {
		v += *dst
	}
	*dst = v
}

// Scratch takes n elements off the front of a workspace.
func Scratch[T Element](work []byte, n int) (taken []T, rest []byte) {
	size := n * SizeOf[T]()
	front := work[:size]
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(front))), n), work[size:]
}

// SizeOf is the bytes of an element.
func SizeOf[T Element]() int {
	var zero T
	return int(unsafe.Sizeof(zero))
}

// Samples is count samples of a map from n.
func (m *Map4[T]) Samples(n, count int) Map4[T] {
	part := *m
	part.Elems = m.Elems[n*m.Stride[0]:]
	part.Extent[0] = count
	return part
}

// EachPixel visits the places of the pixels of a channel of a sample, of maps with dimensions in the order of
// [pixelsOf].
func (m *Map4[T]) EachPixel(n, c int, visit func(at int)) {
	for h := range m.Extent[2] {
		for w := range m.Extent[3] {
			visit(m.At(n, c, h, w))
		}
	}
}

// Share returns a lattice of g pixels each, and the lattice of the remaining pixels.
func (l *Lattice) Share(g int) (wide, left Lattice) {
	wide, left = *l, *l
	wide.Pixels = l.Pixels / g
	wide.Taps = l.Taps + (g-1)*l.Stride
	wide.Stride = g * l.Stride
	left.First = g * wide.Pixels
	left.From += left.First * l.Stride
	left.Pixels -= left.First
	return wide, left
}

// Share makes one pixel of g neighbours.
func (m *Map4[T]) Share(g int) Map4[T] {
	wide := *m
	wide.Extent[2] /= g
	wide.Extent[3] *= g
	wide.Stride[2] *= g
	return wide
}

// Map2 is a strided operand of two dimensions. The last stride is 1.
type Map2[T Element] struct {
	Elems         []T
	Rows, Columns int
	Stride        int
}

// Map2Of is an operand of two dimensions as a matrix. It shares the elements of the operand.
func Map2Of[T Element](a *Arg) Map2[T] {
	return Map2[T]{Data[T](a), a.Shape[0], a.Shape[1], a.Stride[0]}
}

// Row returns row i.
func (m *Map2[T]) Row(i int) []T {
	return m.Elems[i*m.Stride : i*m.Stride+m.Columns]
}
