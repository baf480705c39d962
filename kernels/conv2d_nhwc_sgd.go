package kernels

import (
	"dahl/kernels/offload"
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

var conv2dNHWCDwSGD, conv2dNHWCDwSGDNoBias = linear{factors: []int{1, 2}}.descents("g:f", Kernel{
	Op: "conv2d.nhwc.dw.sgd", Doc: "w (as PyTorch has it) and b as sgd changes them by the dw and db of conv2d.nhwc.dw",
	Operands: []Operand{
		updates("w", "g:f c i j"),
		reads("dy", Real, "n oh ow g:f"),
		reads("x", Real, "n "+windowIndices+" g:c"),
	},
	Params: slidingParams, Options: slidingOptions, Sizes: groupSizes,
	PerPoint: 2,
},
	atLevels("conv2d.nhwc.dw in the workspace, then sgd by some filters at a time", conv2dNHWCDwSGDAt[float32], conv2dNHWCDwSGDAt[float64], conv2dNHWCDwSGDWorkspace),
	winogradVariants(winogradDoc+", then sgd by some filters at a time", conv2dNHWCDwSGDWinograd, winogradTaken(0, 2), conv2dNHWCDwSGDWinogradWorkspace),
	convolutionLast.weights.variants(convolutionLast.descentProducts, withOptions(withSGD(slidingParams...)...)...),
	libraryConvolution{convolution: &convolutionLast, kind: offload.WeightGradient, x: 2, y: 1, hyper: 3}.variants(withOptions(withSGD(slidingParams...)...)...))

var conv2dNHWCPoolDwSGD, conv2dNHWCPoolDwSGDNoBias = linear{factors: []int{1, 3}, marks: 2}.descents("g:f", Kernel{
	Op: "conv2d.nhwc.pool.dw.sgd", Doc: "w (as PyTorch has it) and b as sgd changes them by the dw and db of conv2d.nhwc.pool.dw",
	Operands: []Operand{
		updates("w", "g:f c i j"),
		reads("dy", Real, "n ph pw g:f"),
		reads("index", Mask, "n ph pw g:f").positions("size*size"),
		reads("x", Real, "n "+pooledIndices+" g:c"),
	},
	Params: pooledParams, Options: slidingOptions, Sizes: pooledSizes, Exact: true,
	Flops: func(s *Spec) float64 { return convPoolFlops(s, 1, 0) },
},
	atLevels("conv2d.nhwc.pool.dw in the workspace, then sgd by some filters at a time", conv2dNHWCPoolDwSGDAt[float32], conv2dNHWCPoolDwSGDAt[float64], conv2dNHWCPoolDwSGDWorkspace),
	unpooledWeights.variants(unpooledDescent, withOptions(withSGD(pooledParams...)...)...),
	libraryConvolution{convolution: &convolutionLast, kind: offload.WeightGradient, x: 2, y: 1, hyper: 3, pooled: true}.variants(withOptions(withSGD(pooledParams...)...)...))

// turnedFilters is how many filters are turned to PyTorch's order at a time: as many as fill a
// cache line where they follow each other in the gradient.
const turnedFilters = 16

// convDescent is the step of filters, with their gradient in the workspace.
type convDescent[T Float] struct {
	descent[T]
	dw     map4[T] // I×J×C×F
	db     []T     // nil without a bias
	turned []T     // room for turnedFilters filters
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
	if d.b == nil {
		d.db = nil
	}
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
	if d.b != nil {
		d.biases(l, d.db)
	}
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
	d, work := convDescentOf[T](call, 3)
	dy, x := map4Of[T](&call.Args[1]), map4Of[T](&call.Args[2])
	c := convDwOf(d.dw, dy, x, dy.extent[1], windowingOf(call.Params))
	c.db, c.norm = d.db, normOf[T](call)
	c.all(l, work)
	d.run(l)
}

func conv2dNHWCDwSGDWorkspace(s *Spec) int64 {
	w, dy := s.Operands[0].Shape, s.Operands[1].Shape
	return convDescentWorkspace(s, convWorkspaceOf(s.Type.SizeBytes(), dy[2], []int{w[2], w[3], w[1], w[0]}, columnStride(s)))
}

func conv2dNHWCPoolDwSGDAt[T Float](l simd.Level, call *Call) {
	d, work := convDescentOf[T](call, 4)
	d.dw.clear()
	g := convPoolDw[T]{dw: d.dw, db: d.db, x: map4Of[T](&call.Args[3]), maxima: maximaOf[T](call, 1, 2)}
	g.all(l, windowingOf(call.Params), work)
	d.run(l)
}

func conv2dNHWCPoolDwSGDWorkspace(s *Spec) int64 {
	w := s.Operands[0].Shape
	return convDescentWorkspace(s, poolWorkspaceOf(s, 1, []int{w[2], w[3], w[1], w[0]}))
}
