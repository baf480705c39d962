package kernels

import (
	"dahl/kernels/offload"
	"dahl/kernels/simd"
)

// Weight gradients of channels-last convolutions. With Pool they come directly from the pooled gradient, see pooled. With SGD
// they are the step of gradient descent, without a gradient in memory. The weights are PyTorch's then, F×C×I×J:
//
//	w[f,c,i,j], vw ← as sgd does with g = dw[i,j,c,f]
//	b[f], vb       ← as sgd does with g = db[f]
//
// A variant gives the bits of its gradient, oihw and sgd one after the other. The variants at levels leave the gradient in the
// workspace, and turn a few filters of it to PyTorch's order at a time.

func convolutionDwWith(k Kernel) Kernel {
	l := linear{factors: []int{1, 2}}
	k.Doc = "dw, db = gradients of " + Written("conv2d.nhwc", k.With&Pool) + " with respect to w and b"
	k.Operands = []Operand{
		sums("dw", "i j c g:f"),
		reads("dy", Real, "n oh ow g:f"),
		reads("x", Real, "n "+windowIndices+" g:c"),
	}
	k.Params, k.Options, k.Sizes, k.PerPoint = slidingParams, slidingOptions, groupSizes, 2
	if k.With.Has(Pool) {
		k.pooled(1, reads("index", Mask, pooledMap).positions("size*size"))
		k.Flops = func(s *Spec) float64 { return convPoolFlops(s, 1, 0) }
		l.factors, l.marks = []int{1, 3}, 2
	}
	if k.With.Has(SGD) {
		l.descend(&k, "g:f c i j", "g:f")
	} else {
		l.totals(&k, "g:f")
	}
	k = l.of(k, gradientVariants(&k)...)
	if k.With.Has(Norm) {
		k = normed{x: 2, filters: 0}.of(k)
	}
	return k
}

// gradientVariants are the variants beside the reference. Winograd's have no pooling.
func gradientVariants(k *Kernel) (all [][]Variant) {
	library := libraryConvolution{convolution: &convolutionLast, kind: offload.WeightGradient, x: 2, y: 1, with: k.With}
	family, doc, then, rows := convolutionLast.weights, "a product with the transposed image per zone of pixels", "", 0
	if k.With.Has(Pool) {
		family, doc = unpooledWeights, "maxpool.nhwc.dx and conv2d.nhwc.dw on a few rows at a time"
	}
	if k.With.Has(SGD) {
		then, rows = ", in the workspace, then sgd by some filters at a time", 2
	}
	all = append(all, atLevels(doc+then, convolutionDwAt[float32](k.With), convolutionDwAt[float64](k.With), convolutionDwWorkspace(k.With)))
	if !k.With.Has(Pool) {
		all = append(all, winogradVariants(winogradDoc+then, convolutionDwWinograd(k.With), winogradTaken(0, rows), convolutionDwWinogradWorkspace(k.With)))
	}
	params := withOptions(k.Params...)
	return append(all, family.variants(convolutionLast.gradientProducts(k.With), params...), library.variants(params...))
}

// convGradient is where the gradients of filters and biases go: the operands dw and db of a call or, with SGD, the
// workspace.
type convGradient[T Float] struct {
	convDescent[T]
	with         Attributes
	x            map4[T]
	add, addBias bool // to what is there
}

// convGradientOf takes the gradients from a call, those that are not added to as zeros where db is. The sums need the rest
// of the workspace.
func convGradientOf[T Float](call *Call, with Attributes) (g convGradient[T], rest []byte) {
	x := 2
	if with.Has(Pool) {
		x++
	}
	if with.Has(SGD) {
		g.convDescent, rest = convDescentOf[T](call, x+1, with)
	} else {
		g.dw, g.add, rest = map4Of[T](&call.Args[0]), call.Args[0].Accumulates(), call.Work
		if x+1 < len(call.Args) {
			g.db, g.addBias = Data[T](&call.Args[x+1]), call.Args[x+1].Accumulates()
			if !g.addBias {
				clear(g.db)
			}
		}
	}
	g.with, g.x = with, map4Of[T](&call.Args[x])
	return g, rest
}

// sums is the gradient without pooling.
func (g *convGradient[T]) sums(call *Call) convDwNHWC[T] {
	dy := map4Of[T](&call.Args[1])
	c := convDwOf(g.dw, dy, g.x, dy.extent[1], windowingOf(call.Params))
	c.db, c.add, c.norm = g.db, g.add, normOf[T](call)
	return c
}

// finish is what follows the sums.
func (g *convGradient[T]) finish(l simd.Level) {
	if g.with.Has(SGD) {
		g.run(l)
	}
}

func convolutionDwAt[T Float](with Attributes) func(simd.Level, *Call) {
	return func(l simd.Level, call *Call) {
		g, work := convGradientOf[T](call, with)
		if with.Has(Pool) {
			if !g.add {
				g.dw.clear()
			}
			p := convPoolDw[T]{dw: g.dw, db: g.db, add: g.addBias, x: g.x, maxima: maximaOf[T](call, 1, 2)}
			p.all(l, windowingOf(call.Params), work)
		} else {
			c := g.sums(call)
			c.all(l, work)
		}
		g.finish(l)
	}
}

func convolutionDwWorkspace(with Attributes) func(*Spec) int64 {
	return func(s *Spec) int64 {
		w, dy := s.Operands[0].Shape, s.Operands[1].Shape
		if with.Has(SGD) {
			w = []int{w[2], w[3], w[1], w[0]}
		}
		var sums int64
		if with.Has(Pool) {
			sums = poolWorkspaceOf(s, 1, w)
		} else {
			sums = convWorkspaceOf(s.Type.SizeBytes(), dy[2], w, columnStride(s))
		}
		return gradientWorkspace(s, with, sums)
	}
}

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
func convDescentOf[T Float](call *Call, hyper int, with Attributes) (d convDescent[T], rest []byte) {
	d.descent = descentOf[T](call, hyper, with)
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

// gradientWorkspace is the bytes of the sums. With SGD these are beside the gradients of w and b, and make way for the turned
// filters.
func gradientWorkspace(s *Spec, with Attributes, sums int64) int64 {
	if !with.Has(SGD) {
		return sums
	}
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
