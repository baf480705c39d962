package kernels

import "dahl/kernels/simd"

// descent is the step of weights, as PyTorch has them, and of biases.
type descent[T Float] struct {
	step  simd.SGD[T]
	w, vw *Arg // vw is w without momentum, when nobody looks at it
	b, vb *Arg // likewise
}

// descentOf takes the step from a call. Operands 0 and 1 are weights and biases. Operand hyper
// has the rate, and the velocities follow it.
func descentOf[T Float](call *Call, hyper int) descent[T] {
	d := descent[T]{step: sgdOf[T](call, hyper), w: &call.Args[0], vw: &call.Args[0], b: &call.Args[1], vb: &call.Args[1]}
	if d.step.Momentum != 0 {
		d.vw, d.vb = &call.Args[hyper+1], &call.Args[hyper+2]
	}
	return d
}

// ref is the step of the reference of weights, or of biases, by gradients that have no gaps.
func (d *descent[T]) ref(w, v *Arg, sums []T) {
	EachRun(w, v, v, func(w, v, _ []T) {
		for i := range w {
			sgdElement(&d.step, &w[i], &v[i], sums[i])
		}
		sums = sums[len(w):]
	})
}

// outputs is the step of the weights of n outputs from f on. Their gradient has no gaps.
func (d *descent[T]) outputs(l simd.Level, f, n int, g []T) {
	outer, rows, run := runsFrom(1, d.w, d.vw)
	w, vw := Data[T](d.w), Data[T](d.vw)
	if rows == 1 && (n == 1 || d.w.Stride[0] == run && d.vw.Stride[0] == run) {
		d.step.Step(l, w[f*d.w.Stride[0]:], g[:n*run], vw[f*d.vw.Stride[0]:])
		return
	}
	for i := range n {
		for r := range rows {
			at, v := (f+i)*d.w.Stride[0]+d.w.offsetFrom(1, outer, r), (f+i)*d.vw.Stride[0]+d.vw.offsetFrom(1, outer, r)
			d.step.Step(l, w[at:], g[(i*rows+r)*run:][:run], vw[v:])
		}
	}
}

// biases is the step of the biases by their gradient.
func (d *descent[T]) biases(l simd.Level, g []T) { d.step.Step(l, Data[T](d.b), g, Data[T](d.vb)) }

// wholeLines rounds a number of elements up to whole cache lines.
func wholeLines(n int) int { return (n + 15) &^ 15 }
