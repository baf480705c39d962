package cpu

import (
	"dahl/kernels/calls"
	"dahl/kernels/simd"
)

// gradientBytes bounds the part of dw that is computed before it is used: a quarter of a
// second-level cache. Smaller parts are no faster, and their runs are shorter.
const gradientBytes = 256 << 10

// wholePanels is a number of columns that fill panels of a product of any height. So a part of
// the columns is computed in the same panels as in the whole product, and with the same order of
// additions.
const wholePanels = 64

// gradientColumns is how many columns of dw are computed at a time. The last part
// has at most twice as many less one.
func gradientColumns(rows, columns, size int) int {
	part := max(wholePanels, gradientBytes/(rows*size)/wholePanels*wholePanels)
	if columns < 2*part {
		return columns
	}
	return part
}

// DenseDescentWorkspace is the bytes of the columns of dw that are computed at a time, with all rows.
func DenseDescentWorkspace(s *calls.Spec) int64 {
	rows, columns, size := s.Operands[0].Shape[0], s.Operands[0].Shape[1], s.Type.SizeBytes()
	part := gradientColumns(rows, columns, int(size))
	return size * int64(rows) * int64(part+columns%part)
}

// DenseDescentAt is dense.dw.sgd: one step of SGD of w of f×c by dyᵀ·x, and of b by the column sums of dy. Operands are w, dy
// of n×f, x of n×c, hyper, b unless with has NoBias, and velocities.
func DenseDescentAt[T calls.Float](with calls.Attributes) func(simd.Level, *calls.Call) {
	return func(l simd.Level, call *calls.Call) {
		d, dy, x := DescentOf[T](call, 3, with), calls.Map2Of[T](&call.Args[1]), calls.Map2Of[T](&call.Args[2])
		w, vw := calls.Map2Of[T](d.W), calls.Map2Of[T](d.Vw)
		part := gradientColumns(w.Rows, w.Columns, calls.SizeOf[T]())
		g, _ := calls.Scratch[T](call.Work, w.Rows*(part+w.Columns%part))
		for i := 0; i < w.Columns; {
			n := part
			if w.Columns-i < 2*part {
				n = w.Columns - i
			}
			p := simd.Product[T]{
				M: w.Rows, N: n, K: dy.Rows, Batch: 1,
				A: dy.Elems, ARow: 1, AStep: dy.Stride, B: x.Elems[i:], BRow: x.Stride, C: g, CRow: n,
			}
			p.Run(l)
			if n == w.Stride && n == vw.Stride {
				d.step.Step(l, w.Elems, g[:w.Rows*n], vw.Elems)
			} else {
				for o := range w.Rows {
					d.step.Step(l, w.Row(o)[i:], g[o*n:][:n], vw.Row(o)[i:])
				}
			}
			i += n
		}
		if d.B != nil {
			db := g[:w.Rows]
			simd.ColumnSums(l, db, dy.Elems, dy.Rows, dy.Stride, false)
			d.biases(l, db)
		}
	}
}

// MappedDescentWorkspace is the gradients of w and b, and one output of w turned.
func MappedDescentWorkspace(s *calls.Spec) int64 {
	w := s.Operands[0].Shape
	inputs := w[1] * w[2] * w[3]
	return int64(wholeLines(w[0]*inputs)+wholeLines(w[0])+inputs) * s.Type.SizeBytes()
}

// MappedDescentAt is dense.dw.sgd where x is a map: one step of SGD of w of f×c×h×w and of b. Operands are w, dy of n×f, x of
// n×h×w×c, hyper, b unless with has NoBias, and velocities.
func MappedDescentAt[T calls.Float](with calls.Attributes) func(simd.Level, *calls.Call) {
	return func(l simd.Level, call *calls.Call) {
		d, dy, x := DescentOf[T](call, 3, with), calls.Map2Of[T](&call.Args[1]), calls.Map4Of[T](&call.Args[2])
		e := [4]int(d.W.Shape)
		inputs := e[1] * e[2] * e[3]
		g, rest := calls.Scratch[T](call.Work, wholeLines(e[0]*inputs))
		db, rest := calls.Scratch[T](rest, wholeLines(e[0]))
		turned, _ := calls.Scratch[T](rest, inputs)

		// Pixels that follow each other are columns of one product.
		rows, columns, run := e[2], e[3], e[1]
		if x.Stride[2] == run {
			columns, run = 1, run*columns
			if x.Stride[1] == run {
				rows, run = 1, run*rows
			}
		}
		for i := range rows {
			for j := range columns {
				p := simd.Product[T]{
					M: e[0], N: run, K: dy.Rows, Batch: 1, A: dy.Elems, ARow: 1, AStep: dy.Stride,
					B: x.Elems[x.At(0, i, j, 0):], BRow: x.Stride[0], C: g[(i*columns+j)*run:], CRow: inputs,
				}
				p.Run(l)
			}
		}
		if d.B != nil {
			simd.ColumnSums(l, db[:e[0]], dy.Elems, dy.Rows, dy.Stride, false)
			d.biases(l, db[:e[0]])
		}
		for o := range e[0] {
			MoveTo(l, &calls.NchwTiles, calls.Packed4(turned, [4]int{1, e[1], e[2], e[3]}), calls.Packed4(g[o*inputs:], [4]int{1, e[2], e[3], e[1]}))
			d.outputs(l, o, 1, turned)
		}
	}
}
