package kernels

import "dahl/kernels/simd"

// Weight gradient of a fully connected layer with its step of gradient descent, without a
// gradient in memory:
//
//	dw[o,i] = Σ_n dy[n,o]·x[n,i]     w, vw ← as sgd does with g = dw
//	db[o]   = Σ_n dy[n,o]            b, vb ← as sgd does with g = db
//
// A variant gives the bits of its dense.dw followed by sgd. The variants at levels compute some
// columns of dw at a time in the workspace, so that these are still in a cache when they are
// used.
//
// A layer that is Mapped reads a map with channels last. The weights are PyTorch's, and their inputs are those of a map with
// channels first, w[o,c,i,j] with g = Σ_n dy[n,o]·x[n,i,j,c]. If the map has no gaps, a variant for CPUs gives the bits of its
// dense.dw, nchw and sgd one after the other. On a GPU it is the gradient of a convolution whose window is the map. For a
// library it is a product of matrices with a row for each sample.

func denseDescent(l linear, k Kernel) Kernel {
	if k.With.Has(Mapped) {
		k.Operands[2].Dims = "n h w c"
		l.descend(&k, "f c h w", "f")
		k.Doc += "; x is a map with channels last"
		return l.of(k,
			atLevels("dense.dw in the workspace, then sgd by one output at a time", mappedDescentAt[float32](k.With), mappedDescentAt[float64](k.With), mappedDescentWorkspace),
			convolutionLast.weights.variants(mappedDescent(k.With), sgdParamNames...),
			convolutionLast.weights.libraryVariants(2, mappedDescent(k.With), sgdParamNames...))
	}
	l.descend(&k, "f c", "f")
	return l.of(k,
		atLevels("dense.dw and sgd by some columns at a time", denseDescentAt[float32](k.With), denseDescentAt[float64](k.With), denseDescentWorkspace),
		denseDwTiles.variants(denseDescentProducts(k.With), sgdParamNames...),
		denseDwTiles.libraryVariants(0, denseDescentProducts(k.With), sgdParamNames...))
}

// gradientBytes bounds the part of dw that is computed before it is used: a quarter of a
// second-level cache. Smaller parts are no faster, and their runs are shorter.
const gradientBytes = 256 << 10

// wholePanels is a number of columns that fill panels of a product of any height. So a part of
// the columns is computed in the same panels as in the whole product, and with the same order of
// additions.
const wholePanels = 64

// gradientColumns is how many columns of dw of so many rows are computed at a time. The last part
// has at most twice as many less one.
func gradientColumns(rows, columns, size int) int {
	part := max(wholePanels, gradientBytes/(rows*size)/wholePanels*wholePanels)
	if columns < 2*part {
		return columns
	}
	return part
}

func denseDescentWorkspace(s *Spec) int64 {
	rows, columns, size := s.Operands[0].Shape[0], s.Operands[0].Shape[1], s.Type.SizeBytes()
	part := gradientColumns(rows, columns, int(size))
	return size * int64(rows) * int64(part+columns%part)
}

func denseDescentAt[T Float](with Attributes) func(simd.Level, *Call) {
	return func(l simd.Level, call *Call) { denseDescentColumns[T](l, call, with) }
}

func denseDescentColumns[T Float](l simd.Level, call *Call, with Attributes) {
	d, dy, x := descentOf[T](call, 3, with), map2Of[T](&call.Args[1]), map2Of[T](&call.Args[2])
	w, vw := map2Of[T](d.w), map2Of[T](d.vw)
	part := gradientColumns(w.rows, w.columns, sizeOf[T]())
	g, _ := scratch[T](call.Work, w.rows*(part+w.columns%part))
	for i := 0; i < w.columns; {
		n := part
		if w.columns-i < 2*part {
			n = w.columns - i
		}
		p := simd.Product[T]{
			M: w.rows, N: n, K: dy.rows, Batch: 1,
			A: dy.elems, ARow: 1, AStep: dy.stride, B: x.elems[i:], BRow: x.stride, C: g, CRow: n,
		}
		p.Run(l)
		if n == w.stride && n == vw.stride {
			d.step.Step(l, w.elems, g[:w.rows*n], vw.elems)
		} else {
			for o := range w.rows {
				d.step.Step(l, w.row(o)[i:], g[o*n:][:n], vw.row(o)[i:])
			}
		}
		i += n
	}
	if d.b != nil {
		db := g[:w.rows]
		simd.ColumnSums(l, db, dy.elems, dy.rows, dy.stride, false)
		d.biases(l, db)
	}
}

// mappedDescentWorkspace is the gradients of w and b, and one output of w turned.
func mappedDescentWorkspace(s *Spec) int64 {
	w := s.Operands[0].Shape
	inputs := w[1] * w[2] * w[3]
	return int64(wholeLines(w[0]*inputs)+wholeLines(w[0])+inputs) * s.Type.SizeBytes()
}

func mappedDescentAt[T Float](with Attributes) func(simd.Level, *Call) {
	return func(l simd.Level, call *Call) { mappedDescentRows[T](l, call, with) }
}

func mappedDescentRows[T Float](l simd.Level, call *Call, with Attributes) {
	d, dy, x := descentOf[T](call, 3, with), map2Of[T](&call.Args[1]), map4Of[T](&call.Args[2])
	e := [4]int(d.w.Shape)
	inputs := e[1] * e[2] * e[3]
	g, rest := scratch[T](call.Work, wholeLines(e[0]*inputs))
	db, rest := scratch[T](rest, wholeLines(e[0]))
	turned, _ := scratch[T](rest, inputs)

	// Pixels that follow each other are columns of one product.
	rows, columns, run := e[2], e[3], e[1]
	if x.stride[2] == run {
		columns, run = 1, run*columns
		if x.stride[1] == run {
			rows, run = 1, run*rows
		}
	}
	for i := range rows {
		for j := range columns {
			p := simd.Product[T]{
				M: e[0], N: run, K: dy.rows, Batch: 1, A: dy.elems, ARow: 1, AStep: dy.stride,
				B: x.elems[x.at(0, i, j, 0):], BRow: x.stride[0], C: g[(i*columns+j)*run:], CRow: inputs,
			}
			p.Run(l)
		}
	}
	if d.b != nil {
		simd.ColumnSums(l, db[:e[0]], dy.elems, dy.rows, dy.stride, false)
		d.biases(l, db[:e[0]])
	}
	for o := range e[0] {
		moveTo(l, &nchwTiles, packed4(turned, [4]int{1, e[1], e[2], e[3]}), packed4(g[o*inputs:], [4]int{1, e[2], e[3], e[1]}))
		d.outputs(l, o, 1, turned)
	}
}
