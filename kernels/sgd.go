package kernels

import (
	"errors"
	"math"
	"slices"

	"dahl/kernels/calls"
	"dahl/kernels/cpu"
	"dahl/kernels/gpu"
	"dahl/kernels/simd"
)

// Stochastic gradient descent as PyTorch 1.13 defines it (torch.optim.SGD with
// dampening 0), element by element:
//
//	g ← factor·g                       if the gradient is clipped
//	g ← g + weight_decay·w
//	v ← momentum·v + g                 if momentum is not 0; v starts at 0
//	g ← g + momentum·v  (nesterov)  or  v
//	w ← w - lr·g
//
// hyper is {lr, step}, or {lr, step, factor} as clip writes it; the step is not used. The operand g does not change. Every product is
// rounded before it is added, so that all variants give equal bits in any build.

// withSGD appends the parameters of sgd to the parameters of the gradient.
func withSGD(names ...string) []string { return slices.Concat(names, calls.SgdParamNames) }

var sgd = Kernel{
	Op: "sgd", Doc: "v = momentum·v + (g + weight_decay·w), w -= lr·v (or the Nesterov step)",
	Operands: []Operand{
		updates("w", "..."), reads("g", Real, "..."), reads("hyper", Scalar, "hyper"),
		optional(updates("v", "...")),
	},
	Params: calls.SgdParamNames,
	Whole:  "hyper",
	Check: func(s *calls.Spec) error {
		if s.Param("momentum") != 0 && len(s.Operands) < 4 {
			return errors.New("momentum needs the operand v")
		}
		return errors.Join(checkHyper(s, 2), checkSGD(s))
	},
	Flops: func(s *calls.Spec) float64 { return sgdFlops(s) * s.Volume(0) },
	Variants: withRef("element by element", sgdRef[float32], sgdRef[float64],
		atLevels("run by run", sgdAt[float32], sgdAt[float64], nil),
		gpu.OnCUDA("four elements per thread", gpu.SgdOnCUDA)),
}

// checkSGD refuses senseless parameters.
func checkSGD(s *calls.Spec) error {
	nesterov := s.Param("nesterov")
	switch {
	case nesterov != 0 && nesterov != 1:
		return errors.New("parameter nesterov is neither 0 nor 1")
	case nesterov == 1 && s.Param("momentum") == 0:
		return errors.New("nesterov needs a momentum")
	}
	return errors.Join(
		realParam(s, "momentum", 0, math.MaxFloat32),
		realParam(s, "weight_decay", 0, math.MaxFloat32))
}

// sgdFlops is the number of operations per element.
func sgdFlops(s *calls.Spec) float64 {
	flops := 2.0
	for _, name := range calls.SgdParamNames {
		if s.Param(name) != 0 {
			flops += 2
		}
	}
	return flops
}

func sgdRef[T calls.Float](call *calls.Call) {
	step := cpu.SgdOf[T](call, 2)
	calls.EachRun(&call.Args[0], &call.Args[1], velocity(call), func(w, g, v []T) {
		for i, grad := range g {
			cpu.SgdElement(&step, &w[i], &v[i], grad)
		}
	})
}

// velocity is the operand v, or w without momentum, when nobody looks at it.
func velocity(call *calls.Call) *calls.Arg {
	if call.Params[0] == 0 {
		return &call.Args[0]
	}
	return &call.Args[3]
}

func sgdAt[T calls.Float](level simd.Level, call *calls.Call) {
	step := cpu.SgdOf[T](call, 2)
	calls.EachRun(&call.Args[0], &call.Args[1], velocity(call), func(w, g, v []T) { step.Step(level, w, g, v) })
}
