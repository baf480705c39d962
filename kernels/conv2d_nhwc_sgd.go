package kernels

import (
	"dahl/kernels/cuda"
	"dahl/kernels/simd"
)

// Weight gradients of channels-last convolutions with their step of gradient descent, without a
// gradient in memory. The weights are PyTorch's, F×C×I×J:
//
//	w[f,c,i,j], vw ← as sgd does with g = dw[i,j,c,f] of conv2d.nhwc.dw
//	b[f], vb       ← as sgd does with g = db[f]
//
// The same holds for conv2d.nhwc.pool.dw. A variant gives the bits of its gradient, oihw and sgd
// one after the other. The variants at levels leave the gradient in the workspace, and turn a few
// filters of it to PyTorch's order at a time.

var conv2dNHWCDwSGD = linear{factors: []int{2, 3}, hyper: 4}.of(Kernel{
	Op: "conv2d.nhwc.dw.sgd", Doc: "w (as PyTorch has it) and b as sgd changes them by the dw and db of conv2d.nhwc.dw",
	Operands: []Operand{
		updates("w", "g:f c i j"),
		updates("b", "g:f"),
		reads("dy", Real, "n oh ow g:f"),
		reads("x", Real, "n "+windowIndices+" g:c"),
		reads("hyper", Scalar, "2"),
		optional(updates("vw", "g:f c i j")),
		optional(updates("vb", "g:f")),
	},
	Params: withSGD(slidingParams...), Options: slidingOptions, Sizes: groupSizes,
	Check:    func(s *Spec) error { return checkVelocities(s, 7) },
	PerPoint: 2,
	Flops:    func(s *Spec) float64 { return descentFlops(s, 2) },
},
	atLevels("conv2d.nhwc.dw in the workspace, then sgd by some filters at a time", conv2dNHWCDwSGDAt[float32], conv2dNHWCDwSGDAt[float64], conv2dNHWCDwSGDWorkspace),
	winogradVariants(winogradDoc+", then sgd by some filters at a time", conv2dNHWCDwSGDWinograd, winogradTaken(0, 2), conv2dNHWCDwSGDWinogradWorkspace),
	convolutionLast.weights.variants(convolutionLast.descentProducts, withOptions(withSGD(slidingParams...)...)...),
	libraryConvolution{convolution: &convolutionLast, kind: cuda.WeightGradient, x: 3, y: 2, hyper: 4}.variants(withOptions(withSGD(slidingParams...)...)...))

var conv2dNHWCPoolDwSGD = linear{factors: []int{2, 4}, marks: 3, hyper: 5}.of(Kernel{
	Op: "conv2d.nhwc.pool.dw.sgd", Doc: "w (as PyTorch has it) and b as sgd changes them by the dw and db of conv2d.nhwc.pool.dw",
	Operands: []Operand{
		updates("w", "g:f c i j"),
		updates("b", "g:f"),
		reads("dy", Real, "n ph pw g:f"),
		reads("index", Mask, "n ph pw g:f"),
		reads("x", Real, "n "+pooledIndices+" g:c"),
		reads("hyper", Scalar, "2"),
		optional(updates("vw", "g:f c i j")),
		optional(updates("vb", "g:f")),
	},
	Params: withSGD(pooledParams...), Options: slidingOptions, Sizes: pooledSizes,
	Check: func(s *Spec) error { return checkVelocities(s, 8) },
	Flops: func(s *Spec) float64 { return convPoolFlops(s, 2, 0) + descentFlops(s, 2) },
},
	atLevels("conv2d.nhwc.pool.dw in the workspace, then sgd by some filters at a time", conv2dNHWCPoolDwSGDAt[float32], conv2dNHWCPoolDwSGDAt[float64], conv2dNHWCPoolDwSGDWorkspace),
	unpooledWeights.variants(unpooledDescent, withOptions(withSGD(pooledParams...)...)...),
	libraryConvolution{convolution: &convolutionLast, kind: cuda.WeightGradient, x: 3, y: 2, hyper: 4, pooled: true}.variants(withOptions(withSGD(pooledParams...)...)...))

// turnedFilters is how many filters are turned to PyTorch's order at a time: as many as fill a
// cache line where they follow each other in the gradient.
const turnedFilters = 16

// convDescent is the step of filters, with their gradient in the workspace.
type convDescent[T Float] struct {
	descent[T]
	dw     map4[T] // I×J×C×F
	db     []T
	turned []T // room for turnedFilters filters
}

// convDescentOf takes the gradients, that of the bias as zeros, from the workspace. The sums and later
// run need the rest.
func convDescentOf[T Float](call *Call, hyper int) (d convDescent[T], rest []byte) {
	d.descent = descentOf[T](call, hyper)
	e := [4]int(d.w.Shape)
	filter := e[1] * e[2] * e[3]
	dw, rest := scratch[T](call.Work, wholeLines(e[0]*filter))
	d.db, rest = scratch[T](rest, wholeLines(e[0]))
	d.dw, d.db = packed4(dw, [4]int{e[2], e[3], e[1], e[0]}), d.db[:e[0]]
	clear(d.db)
	d.turned, _ = scratch[T](rest, min(e[0], turnedFilters)*filter)
	return d, rest
}

// convDescentWorkspace is the bytes of the gradients of w and b, and of the sums or, later, of
// the turned filters.
func convDescentWorkspace(s *Spec, sums int64) int64 {
	w, size := s.Operands[0].Shape, s.Type.SizeBytes()
	filter := w[1] * w[2] * w[3]
	return int64(wholeLines(w[0]*filter)+wholeLines(w[0]))*size + max(sums, int64(min(w[0], turnedFilters)*filter)*size)
}

// run is the step by the gradients.
func (d *convDescent[T]) run(l simd.Level) {
	d.biases(l, d.db)
	e := d.dw.extent
	for f := 0; f < e[3]; f += turnedFilters {
		some := d.dw
		some.extent[3] = min(turnedFilters, e[3]-f)
		some.elems = some.elems[f:]
		moveTo(l, &oihwTiles, packed4(d.turned, [4]int{some.extent[3], e[2], e[0], e[1]}), some)
		d.outputs(l, f, some.extent[3], d.turned)
	}
}

func conv2dNHWCDwSGDAt[T Float](l simd.Level, call *Call) {
	d, work := convDescentOf[T](call, 4)
	dy, x := map4Of[T](&call.Args[2]), map4Of[T](&call.Args[3])
	c := convDwOf(d.dw, dy, x, dy.extent[1], windowingOf(call.Params))
	c.db, c.norm = d.db, normOf[T](call)
	c.all(l, work)
	d.run(l)
}

func conv2dNHWCDwSGDWorkspace(s *Spec) int64 {
	w, dy := s.Operands[0].Shape, s.Operands[2].Shape
	return convDescentWorkspace(s, convWorkspaceOf(s.Type.SizeBytes(), dy[2], []int{w[2], w[3], w[1], w[0]}, columnStride(s)))
}

func conv2dNHWCPoolDwSGDAt[T Float](l simd.Level, call *Call) {
	d, work := convDescentOf[T](call, 5)
	d.dw.clear()
	g := convPoolDw[T]{dw: d.dw, db: d.db, x: map4Of[T](&call.Args[4]), maxima: maximaOf[T](call, 2, 3)}
	g.all(l, windowingOf(call.Params), work)
	d.run(l)
}

func conv2dNHWCPoolDwSGDWorkspace(s *Spec) int64 {
	w := s.Operands[0].Shape
	return convDescentWorkspace(s, poolWorkspaceOf(s, 2, []int{w[2], w[3], w[1], w[0]}))
}
