package kernels

import (
	"unsafe"

	"dahl/dag"
)

// map4 is a strided operand of four dimensions, usually samples, channels, rows
// and columns. The last stride is 1.
type map4[T Element] struct {
	elems  []T
	extent [4]int
	stride [4]int
}

func map4Of[T Element](a *Arg) map4[T] {
	return map4[T]{Data[T](a), [4]int(a.Shape), [4]int(a.Stride)}
}

// packed4 is a map of the given extents without gaps.
func packed4[T Element](elems []T, extent [4]int) map4[T] {
	e := extent
	return map4[T]{elems, e, [4]int{e[1] * e[2] * e[3], e[2] * e[3], e[3], 1}}
}

// at is the position of element (i, j, k, l) in elems.
func (m *map4[T]) at(i, j, k, l int) int {
	return i*m.stride[0] + j*m.stride[1] + k*m.stride[2] + l*m.stride[3]
}

// as is the same map with its dimensions in another order. Only there the last stride may be other than 1.
func (m map4[T]) as(order [4]int) map4[T] {
	seen := m
	for d, from := range order {
		seen.extent[d], seen.stride[d] = m.extent[from], m.stride[from]
	}
	return seen
}

// each visits the indices of all elements in row-major order.
func (m *map4[T]) each(visit func(i, j, k, l int)) {
	for i := range m.extent[0] {
		for j := range m.extent[1] {
			for k := range m.extent[2] {
				for l := range m.extent[3] {
					visit(i, j, k, l)
				}
			}
		}
	}
}

// from is the part of a map from an index of a dimension on.
func (m map4[T]) from(dim, index int) map4[T] {
	m.extent[dim] -= index
	m.elems = m.elems[min(index*m.stride[dim], len(m.elems)):]
	return m
}

// part is a range of a dimension of a map.
func (m map4[T]) part(dim int, r dag.Range) map4[T] {
	m = m.from(dim, r.Lo)
	m.extent[dim] = r.Len()
	return m
}

// block is one of so many equal parts of a dimension.
func (m map4[T]) block(dim, i, parts int) map4[T] {
	n := m.extent[dim] / parts
	return m.part(dim, dag.Range{Lo: i * n, Hi: (i + 1) * n})
}

// clear sets all elements to zero.
func (m *map4[T]) clear() {
	run, k := m.extent[3], m.extent[2]
	if m.stride[2] == run {
		run, k = run*k, 1
	}
	for i := range m.extent[0] {
		for j := range m.extent[1] {
			for k := range k {
				at := m.at(i, j, k, 0)
				clear(m.elems[at : at+run])
			}
		}
	}
}

// runs splits operands of equal shape into rows that are contiguous in all of them. There are
// rows runs of length run each, over the first outer dimensions.
func runs(args ...*Arg) (outer, rows, run int) { return runsFrom(0, args...) }

// runsFrom is runs over the dimensions from first. The extents before may differ. rows counts
// those of one element of the dimensions before first.
func runsFrom(first int, args ...*Arg) (outer, rows, run int) {
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

// volume is the number of elements of the region.
func (a *Arg) volume() int {
	n := 1
	for _, e := range a.Shape {
		n *= e
	}
	return n
}

// EachRun visits three operands of one shape in runs that are contiguous in all of them.
func EachRun[A, B, C Element](a, b, c *Arg, visit func([]A, []B, []C)) {
	outer, rows, run := runs(a, b, c)
	for r := range rows {
		visit(Data[A](a)[a.offset(outer, r):][:run], Data[B](b)[b.offset(outer, r):][:run], Data[C](c)[c.offset(outer, r):][:run])
	}
}

// offset is the position of run r, as runs counts them.
func (a *Arg) offset(outer, r int) int { return a.offsetFrom(0, outer, r) }

// offsetFrom is offset for runsFrom.
func (a *Arg) offsetFrom(first, outer, r int) int {
	at := 0
	for d := outer - 1; d >= first; d-- {
		e := a.Shape[d]
		at += r % e * a.Stride[d]
		r /= e
	}
	return at
}

// put stores a result, or adds it to the old value.
func put[T Float](dst *T, v T, add bool) {
	if add {
		v += *dst
	}
	*dst = v
}

// scratch takes n elements off the front of a workspace.
func scratch[T Float](work []byte, n int) (taken []T, rest []byte) {
	size := n * sizeOf[T]()
	front := work[:size]
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(front))), n), work[size:]
}

// sizeOf is the bytes of an element.
func sizeOf[T Element]() int {
	var zero T
	return int(unsafe.Sizeof(zero))
}

// samples is count samples of a map from n.
func (m *map4[T]) samples(n, count int) map4[T] {
	part := *m
	part.elems = m.elems[n*m.stride[0]:]
	part.extent[0] = count
	return part
}
