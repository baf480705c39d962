package kernels

import (
	"fmt"
	"strings"

	"dahl/kernels/simd"
)

// Gradients of weights with their step of gradient descent have the weights, what the gradient is made of, hyper, then the
// bias if there is one, and the velocities of both, which only a step with momentum needs.

// totals adds the gradient of a bias to that of weights: the sum over dy, operand 1. bias has its dimensions.
func (l *linear) totals(k *Kernel, bias string) {
	db, gradient := len(k.Operands), k.Flops
	l.total = db
	k.Operands = append(k.Operands, optional(sums("db", bias)))
	k.Flops = func(s *Spec) float64 {
		flops := biasFlops(s, db, 1)
		if gradient != nil {
			flops += gradient(s)
		}
		return flops
	}
}

// descend makes of the gradient, operand 0, the step of weights, and of their bias unless the kernel has NoBias. The gradient is
// that with respect to operand 1, and hyper follows the last operand. weights and bias have their dimensions.
func (l *linear) descend(k *Kernel, weights, bias string) {
	l.hyper, l.with = len(k.Operands), k.With
	gradient, b := k.Flops, 0
	k.Params = withSGD(k.Params...)
	k.Operands[0] = updates("w", weights)
	k.Operands = append(k.Operands, reads("hyper", Scalar, "2"))
	velocities := []Operand{optional(updates("vw", weights))}
	if !k.With.Has(NoBias) {
		b = l.hyper + 1
		k.Operands = append(k.Operands, updates("b", bias))
		velocities = append(velocities, optional(updates("vb", bias)))
	}
	operands := append(k.Operands, velocities...)
	k.Operands = operands
	k.Check = func(s *Spec) error { return checkVelocities(s, operands) }
	k.Flops = func(s *Spec) float64 { return descentFlops(s, gradient, b) }
	k.Doc = "w (as PyTorch has it) and b as sgd changes them by the dw and db of " + Written(k.Base, k.With&Pool)
	if k.With.Has(NoBias) {
		k.Doc = "w (as PyTorch has it) as sgd changes it by the dw of " + Written(k.Base, k.With&Pool) + ", of a layer without a bias"
	}
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

// afterHyper is where the bias and the velocity of the weights are, if the call has them. Zero means no bias.
func afterHyper(hyper int, with Attributes) (b, vw int) {
	if with.Has(NoBias) {
		return 0, hyper + 1
	}
	return hyper + 1, hyper + 2
}

// descent is the step of weights, as PyTorch has them, and of biases.
type descent[T Float] struct {
	step  simd.SGD[T]
	w, vw *Arg // vw is w without momentum, when nobody looks at it
	b, vb *Arg // likewise; nil without a bias
}

// descentOf takes the step from a call. Operand 0 is the weights, and operand hyper has the rate.
func descentOf[T Float](call *Call, hyper int, with Attributes) descent[T] {
	d := descent[T]{step: sgdOf[T](call, hyper), w: &call.Args[0], vw: &call.Args[0]}
	b, vw := afterHyper(hyper, with)
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
