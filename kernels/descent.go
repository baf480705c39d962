package kernels

import (
	"fmt"
	"strings"

	"dahl/kernels/calls"
)

// Gradients of weights with their step of gradient descent have the weights, the operands of the gradient, hyper, then the
// bias if there is one, and the velocities of both. Only a step with momentum needs velocities.

// totals adds the gradient of a bias to the gradient of weights: the sum over dy, operand 1. bias has its dimensions.
func (l *linear) totals(k *Kernel, bias string) {
	db, gradient := len(k.Operands), k.Flops
	l.total = db
	k.Operands = append(k.Operands, optional(sums("db", bias)))
	k.Flops = func(s *calls.Spec) float64 {
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
	if !k.With.Has(calls.NoBias) {
		b = l.hyper + 1
		k.Operands = append(k.Operands, updates("b", bias))
		velocities = append(velocities, optional(updates("vb", bias)))
	}
	operands := append(k.Operands, velocities...)
	k.Operands = operands
	k.Check = func(s *calls.Spec) error { return checkVelocities(s, operands) }
	k.Flops = func(s *calls.Spec) float64 { return descentFlops(s, gradient, b) }
	k.Doc = "w (as PyTorch has it) and b as sgd changes them by the dw and db of " + Written(k.Base, k.With&calls.Pool)
	if k.With.Has(calls.NoBias) {
		k.Doc = "w (as PyTorch has it) as sgd changes it by the dw of " + Written(k.Base, k.With&calls.Pool) + ", of a layer without a bias"
	}
}

// checkVelocities checks the parameters of the step.
func checkVelocities(s *calls.Spec, operands []Operand) error {
	if lacking := operands[len(s.Operands):]; s.Param("momentum") != 0 && len(lacking) > 0 {
		var names []string
		for _, o := range lacking {
			names = append(names, o.Name)
		}
		return fmt.Errorf("momentum needs %s", strings.Join(names, " and "))
	}
	return checkSGD(s)
}

// descentFlops is the work without products: of the gradient, of the step of w and, where there is an operand b, of the
// sums over dy and their step.
func descentFlops(s *calls.Spec, gradient func(*calls.Spec) float64, b int) float64 {
	flops := sgdFlops(s) * s.Volume(0)
	if gradient != nil {
		flops += gradient(s)
	}
	if b > 0 {
		flops += s.Volume(1) + sgdFlops(s)*s.Volume(b)
	}
	return flops
}
