package kernels

import "dahl/kernels/simd"

// descent is the step of weights, as PyTorch has them, and of biases.
type descent[T Float] struct {
	step  simd.SGD[T]
	w, vw *Arg // vw is w without momentum, when nobody looks at it
	b, vb []T
}

// descentOf takes the step from a call. Operands 0 and 1 are weights and biases. Operand hyper
// has the rate, and the velocities follow it.
func descentOf[T Float](call *Call, hyper int) descent[T] {
	d := descent[T]{step: sgdOf[T](call, hyper), w: &call.Args[0], vw: &call.Args[0], b: Data[T](&call.Args[1])}
	d.vb = d.b
	if d.step.Momentum != 0 {
		d.vw, d.vb = &call.Args[hyper+1], Data[T](&call.Args[hyper+2])
	}
	return d
}

// ref is the step of the reference, of four-dimensional weights. The given sums are those of a weight by its indices, and of
// an output over all samples.
func (d *descent[T]) ref(weight func(f, c, i, j int) T, bias func(f int) T) {
	w, vw := map4Of[T](d.w), map4Of[T](d.vw)
	for f := range w.extent[0] {
		for c := range w.extent[1] {
			for i := range w.extent[2] {
				for j := range w.extent[3] {
					sgdElement(&d.step, &w.elems[w.at(f, c, i, j)], &vw.elems[vw.at(f, c, i, j)], weight(f, c, i, j))
				}
			}
		}
		sgdElement(&d.step, &d.b[f], &d.vb[f], bias(f))
	}
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
func (d *descent[T]) biases(l simd.Level, g []T) { d.step.Step(l, d.b, g, d.vb) }

// wholeLines rounds a number of elements up to whole cache lines.
func wholeLines(n int) int { return (n + 15) &^ 15 }
