package kernels

import "dahl/kernels/simd"

// The weight gradient of a fully connected layer that reads a map with channels last, with its
// step of gradient descent. The weights are PyTorch's, and their inputs are those of a map with
// channels first:
//
//	w[o,c,i,j], vw ← as sgd does with g = Σ_n dy[n,o]·x[n,i,j,c]
//	b[o], vb       ← as sgd does with g = Σ_n dy[n,o]
//
// If the map has no gaps, a variant for CPUs gives the bits of its dense.dw, nchw and sgd one
// after the other. On a GPU it is the gradient of a convolution whose window is the map. For a
// library it is a product of matrices with a row for each sample.

var denseNHWCDwSGD, denseNHWCDwSGDNoBias = linear{factors: []int{1, 2}}.descents("f", Kernel{
	Op: "dense.nhwc.dw.sgd", Doc: "w (as PyTorch has it) and b as sgd changes them by the dw and db of dense.dw; x is a map with channels last",
	Operands: []Operand{
		updates("w", "f c h w"),
		reads("dy", Real, "n f"),
		reads("x", Real, "n h w c"),
	},
	PerPoint: 2,
},
	atLevels("dense.dw in the workspace, then sgd by one output at a time", denseNHWCDwSGDAt[float32], denseNHWCDwSGDAt[float64], denseNHWCDwSGDWorkspace),
	convolutionLast.weights.variants(denseNHWCDescent, sgdParamNames...),
	convolutionLast.weights.libraryVariants(2, denseNHWCDescent, sgdParamNames...))

// denseNHWCDwSGDWorkspace is the gradients of w and b, and one output of w turned.
func denseNHWCDwSGDWorkspace(s *Spec) int64 {
	w := s.Operands[0].Shape
	inputs := w[1] * w[2] * w[3]
	return int64(wholeLines(w[0]*inputs)+wholeLines(w[0])+inputs) * s.Type.SizeBytes()
}

func denseNHWCDwSGDAt[T Float](l simd.Level, call *Call) {
	d, dy, x := descentOf[T](call, 3), map2Of[T](&call.Args[1]), map4Of[T](&call.Args[2])
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
