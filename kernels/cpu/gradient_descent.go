package cpu

import (
	"dahl/kernels/calls"
	"dahl/kernels/simd"
)

// convGradient is where the gradients of filters and biases go: the operands dw and db of a call or, with SGD, the
// workspace.
type convGradient[T calls.Float] struct {
	convDescent[T]
	with         calls.Attributes
	x            calls.Map4[T]
	add, addBias bool // to what is there
}

// convGradientOf takes the gradients from a call, those that are not added to as zeros where db is. The sums need the rest
// of the workspace.
func convGradientOf[T calls.Float](call *calls.Call, with calls.Attributes) (g convGradient[T], rest []byte) {
	x := 2
	if with.Has(calls.Pool) {
		x++
	}
	if with.Has(calls.SGD) {
		g.convDescent, rest = convDescentOf[T](call, x+1, with)
	} else {
		g.dw, g.add, rest = calls.Map4Of[T](&call.Args[0]), call.Args[0].Accumulates(), call.Work
		if x+1 < len(call.Args) {
			g.db, g.addBias = calls.Data[T](&call.Args[x+1]), call.Args[x+1].Accumulates()
			if !g.addBias {
				clear(g.db)
			}
		}
	}
	g.with, g.x = with, calls.Map4Of[T](&call.Args[x])
	return g, rest
}

// sums is the gradient without pooling.
func (g *convGradient[T]) sums(call *calls.Call) convDwNHWC[T] {
	dy := calls.Map4Of[T](&call.Args[1])
	c := convDwOf(g.dw, dy, g.x, dy.Extent[1], calls.WindowingOf(call.Params))
	c.db, c.add, c.norm = g.db, g.add, normOf[T](call)
	return c
}

// finish makes the step of SGD, if the gradient has one.
func (g *convGradient[T]) finish(l simd.Level) {
	if g.with.Has(calls.SGD) {
		g.run(l)
	}
}

// ConvolutionDwAt is conv2d.nhwc.dw with the attributes Pool and SGD, or without. Operands are dw of i×j×c×f, dy, with Pool the
// positions of maxima, x, and an optional db. With SGD operand 0 is w of f×c×i×j, and hyper, b and velocities follow x.
func ConvolutionDwAt[T calls.Float](with calls.Attributes) func(simd.Level, *calls.Call) {
	return func(l simd.Level, call *calls.Call) {
		g, work := convGradientOf[T](call, with)
		if with.Has(calls.Pool) {
			if !g.add {
				g.dw.Clear()
			}
			p := convPoolDw[T]{dw: g.dw, db: g.db, add: g.addBias, x: g.x, maxima: maximaOf[T](call, 1, 2)}
			p.all(l, calls.WindowingOf(call.Params), work)
		} else {
			c := g.sums(call)
			c.all(l, work)
		}
		g.finish(l)
	}
}

// ConvolutionDwWorkspace is the bytes of the scratch that the sums of ConvolutionDwAt need, and with SGD of the gradients of w
// and b, too.
func ConvolutionDwWorkspace(with calls.Attributes) func(*calls.Spec) int64 {
	return func(s *calls.Spec) int64 {
		w, dy := s.Operands[0].Shape, s.Operands[1].Shape
		if with.Has(calls.SGD) {
			w = []int{w[2], w[3], w[1], w[0]}
		}
		var sums int64
		if with.Has(calls.Pool) {
			sums = poolWorkspaceOf(s, 1, w)
		} else {
			sums = max(convWorkspaceOf(s.Type.SizeBytes(), dy[2], w, columnStride(s)), repeatWorkspace(s, 2, w[3]))
		}
		return gradientWorkspace(s, with, sums)
	}
}

// turnedFilters is how many filters are turned to PyTorch's order at a time: as many as fill a
// cache line where they follow each other in the gradient.
const turnedFilters = 16

// convDescent is the step of filters, with their gradient in the workspace.
type convDescent[T calls.Float] struct {
	descent[T]
	dw     calls.Map4[T] // I×J×C×F
	db     []T           // nil without a bias
	turned []T           // room for turnedFilters filters
}

// convDescentOf takes the gradients from the workspace, the bias's as zeros. The sums and later
// run need the rest.
func convDescentOf[T calls.Float](call *calls.Call, hyper int, with calls.Attributes) (d convDescent[T], rest []byte) {
	d.descent = DescentOf[T](call, hyper, with)
	e := [4]int(d.W.Shape)
	filter := e[1] * e[2] * e[3]
	dw, rest := calls.Scratch[T](call.Work, wholeLines(e[0]*filter))
	d.db, rest = calls.Scratch[T](rest, wholeLines(e[0]))
	d.dw, d.db = calls.Packed4(dw, [4]int{e[2], e[3], e[1], e[0]}), d.db[:e[0]]
	clear(d.db)
	if d.B == nil {
		d.db = nil
	}
	d.turned, _ = calls.Scratch[T](rest, min(e[0], turnedFilters)*filter)
	return d, rest
}

// gradientWorkspace is the bytes of the sums. With SGD these follow the gradients of w and b, and make way for the turned
// filters.
func gradientWorkspace(s *calls.Spec, with calls.Attributes, sums int64) int64 {
	if !with.Has(calls.SGD) {
		return sums
	}
	w, size := s.Operands[0].Shape, s.Type.SizeBytes()
	filter := w[1] * w[2] * w[3]
	return int64(wholeLines(w[0]*filter)+wholeLines(w[0]))*size + max(sums, int64(min(w[0], turnedFilters)*filter)*size)
}

// run is the step by the gradients.
func (d *convDescent[T]) run(l simd.Level) {
	if d.B != nil {
		d.biases(l, d.db)
	}
	e := d.dw.Extent
	for f := 0; f < e[3]; f += turnedFilters {
		some := d.dw
		some.Extent[3] = min(turnedFilters, e[3]-f)
		some.Elems = some.Elems[f:]
		MoveTo(l, &calls.OihwTiles, calls.Packed4(d.turned, [4]int{some.Extent[3], e[2], e[0], e[1]}), some)
		d.outputs(l, f, some.Extent[3], d.turned)
	}
}
