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

var denseDwSGD, denseDwSGDNoBias = linear{factors: []int{1, 2}}.descents("f", Kernel{
	Op: "dense.dw.sgd", Doc: "w and b as sgd changes them by dw = dyᵀ·x and db = column sums of dy",
	Operands: []Operand{
		updates("w", "f c"),
		reads("dy", Real, "n f"),
		reads("x", Real, "n c"),
	},
	PerPoint: 2,
},
	atLevels("dense.dw and sgd by some columns at a time", denseDwSGDAt[float32], denseDwSGDAt[float64], denseDwSGDWorkspace),
	denseDwTiles.variants(denseDwSGDProducts, sgdParamNames...),
	denseDwTiles.libraryVariants(0, denseDwSGDProducts, sgdParamNames...))

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

func denseDwSGDWorkspace(s *Spec) int64 {
	rows, columns, size := s.Operands[0].Shape[0], s.Operands[0].Shape[1], s.Type.SizeBytes()
	part := gradientColumns(rows, columns, int(size))
	return size * int64(rows) * int64(part+columns%part)
}

func denseDwSGDAt[T Float](l simd.Level, call *Call) {
	d, dy, x := descentOf[T](call, 3), map2Of[T](&call.Args[1]), map2Of[T](&call.Args[2])
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
