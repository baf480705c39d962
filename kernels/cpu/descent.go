package cpu

import (
	"dahl/kernels/calls"
	"dahl/kernels/simd"
)

// descent is the step of weights, as PyTorch has them, and of biases.
type descent[T calls.Float] struct {
	step  simd.SGD[T]
	W, Vw *calls.Arg // vw is w without momentum, when nobody looks at it
	B, Vb *calls.Arg // likewise; nil without a bias
}

// DescentOf takes the step from a call. Operand 0 is the weights, and operand hyper has the rate.
func DescentOf[T calls.Float](call *calls.Call, hyper int, with calls.Attributes) descent[T] {
	d := descent[T]{step: SgdOf[T](call, hyper), W: &call.Args[0], Vw: &call.Args[0]}
	b, vw := calls.AfterHyper(hyper, with)
	if b > 0 {
		d.B, d.Vb = &call.Args[b], &call.Args[b]
	}
	if d.step.Momentum == 0 {
		return d
	}
	d.Vw = &call.Args[vw]
	if b > 0 {
		d.Vb = &call.Args[vw+1]
	}
	return d
}

// Ref is the step of the reference of weights, or of biases, by gradients that have no gaps.
func (d *descent[T]) Ref(w, v *calls.Arg, sums []T) {
	calls.EachRun(w, v, v, func(w, v, _ []T) {
		for i := range w {
			SgdElement(&d.step, &w[i], &v[i], sums[i])
		}
		sums = sums[len(w):]
	})
}

// outputs is the step of the weights of n outputs from f on. Their gradient has no gaps.
func (d *descent[T]) outputs(l simd.Level, f, n int, g []T) {
	outer, rows, run := calls.RunsFrom(1, d.W, d.Vw)
	w, vw := calls.Data[T](d.W), calls.Data[T](d.Vw)
	if rows == 1 && (n == 1 || d.W.Stride[0] == run && d.Vw.Stride[0] == run) {
		d.step.Step(l, w[f*d.W.Stride[0]:], g[:n*run], vw[f*d.Vw.Stride[0]:])
		return
	}
	for i := range n {
		for r := range rows {
			at, v := (f+i)*d.W.Stride[0]+d.W.OffsetFrom(1, outer, r), (f+i)*d.Vw.Stride[0]+d.Vw.OffsetFrom(1, outer, r)
			d.step.Step(l, w[at:], g[(i*rows+r)*run:][:run], vw[v:])
		}
	}
}

// biases is the step of the biases by their gradient.
func (d *descent[T]) biases(l simd.Level, g []T) {
	d.step.Step(l, calls.Data[T](d.B), g, calls.Data[T](d.Vb))
}

// wholeLines rounds a number of elements up to whole cache lines.
func wholeLines(n int) int { return (n + 15) &^ 15 }

// SgdOf is the step of a call with the given operand hyper. The call's last parameters are the parameters
// of sgd.
func SgdOf[T calls.Float](call *calls.Call, hyper int) simd.SGD[T] {
	params := call.Params[len(call.Params)-len(calls.SgdParamNames):]
	return simd.SGD[T]{
		Rate: T(calls.Data[float64](&call.Args[hyper])[0]), Factor: T(StepFactor(&call.Args[hyper])),
		Momentum: T(params[0]), Nesterov: params[1] != 0, Decay: T(params[2]),
	}
}

// SgdElement is the step of one element. Without momentum it does not look at v.
func SgdElement[T calls.Float](s *simd.SGD[T], w, v *T, g T) {
	g = T(s.Factor * g)
	if s.Decay != 0 {
		g += T(s.Decay * *w)
	}
	if s.Momentum != 0 {
		*v = T(s.Momentum**v) + g
		if s.Nesterov {
			g += T(s.Momentum * *v)
		} else {
			g = *v
		}
	}
	*w -= T(s.Rate * g)
}

// StepFactor multiplies the gradient in a step: the third number of hyper where a call has
// one, else 1.
func StepFactor(hyper *calls.Arg) float64 {
	if hyper.Shape[0] < 3 {
		return 1
	}
	return calls.Data[float64](hyper)[2]
}
