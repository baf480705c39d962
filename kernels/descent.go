package kernels

import (
	"fmt"
	"slices"
	"strings"

	"dahl/kernels/simd"
)

// Gradients of weights with their step of gradient descent are two operations each: of a layer with a bias, and of one
// without. The operands are the weights, what the gradient is made of, hyper, then the bias if there is one, and the
// velocities of both, which only a step with momentum needs.

// noBias ends the name of an operation that descends without a bias.
const noBias = ".nobias"

// descents are both operations from the one over w and what its gradient is made of: w is operand 0, dy operand 1, and hyper
// follows the last. bias has the dimensions of b.
func (l linear) descents(bias string, k Kernel, others ...[]Variant) (withBias, alone Kernel) {
	l.hyper = len(k.Operands)
	gradient, w := k.Flops, k.Operands[0]
	vw := updates("vw", w.Dims)
	k.Params = withSGD(k.Params...)
	complete := func(k Kernel, b int, operands ...Operand) Kernel {
		k.Operands = slices.Concat(k.Operands, []Operand{reads("hyper", Scalar, "2")}, operands)
		k.Check = func(s *Spec) error { return checkVelocities(s, k.Operands) }
		k.Flops = func(s *Spec) float64 { return descentFlops(s, gradient, b) }
		return l.of(k, others...)
	}
	withBias = complete(k, l.hyper+1, updates("b", bias), optional(vw), optional(updates("vb", bias)))
	k.Op, k.Doc = k.Op+noBias, "w as "+k.Op+" changes it, of a layer without a bias"
	return withBias, complete(k, 0, optional(vw))
}

// checkVelocities checks the parameters of the step.
func checkVelocities(s *Spec, operands []Operand) error {
	if lacking := operands[len(s.Operands):]; s.Param("momentum") != 0 && len(lacking) > 0 {
		var names []string
		for _, o := range lacking {
			names = append(names, o.Name)
		}
		return fmt.Errorf("momentum needs %s", strings.Join(names, " and "))
	}
	return checkSGD(s)
}

// descentFlops is the work beside products: that of the gradient, the step of w and, where there is an operand b, the
// sums over dy and their step.
func descentFlops(s *Spec, gradient func(*Spec) float64, b int) float64 {
	flops := sgdFlops(s) * s.volume(0)
	if gradient != nil {
		flops += gradient(s)
	}
	if b > 0 {
		flops += s.volume(1) + sgdFlops(s)*s.volume(b)
	}
	return flops
}

// afterHyper is where the bias, which has one dimension, and the velocity of the weights are, if the call has them. rank is
// the number of dimensions of an operand.
func afterHyper(hyper, operands int, rank func(operand int) int) (b, vw int) {
	if hyper+1 < operands && rank(hyper+1) == 1 {
		return hyper + 1, hyper + 2
	}
	return 0, hyper + 1
}

// descent is the step of weights, as PyTorch has them, and of biases.
type descent[T Float] struct {
	step  simd.SGD[T]
	w, vw *Arg // vw is w without momentum, when nobody looks at it
	b, vb *Arg // likewise; nil without a bias
}

// descentOf takes the step from a call. Operand 0 is the weights, and operand hyper has the rate.
func descentOf[T Float](call *Call, hyper int) descent[T] {
	d := descent[T]{step: sgdOf[T](call, hyper), w: &call.Args[0], vw: &call.Args[0]}
	b, vw := afterHyper(hyper, len(call.Args), func(i int) int { return len(call.Args[i].Shape) })
	if b > 0 {
		d.b, d.vb = &call.Args[b], &call.Args[b]
	}
	if d.step.Momentum == 0 {
		return d
	}
	d.vw = &call.Args[vw]
	if b > 0 {
		d.vb = &call.Args[vw+1]
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
