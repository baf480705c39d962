package kernels

import (
	"errors"
	"math"

	"dahl/kernels/calls"
	"dahl/kernels/cpu"
	"dahl/kernels/gpu"
	"dahl/kernels/simd"
)

// Adam (Kingma and Ba, 2015, arXiv:1412.6980) as PyTorch defines it (torch.optim.Adam), and with
// decoupled = 1 AdamW (Loshchilov and Hutter, 2019, arXiv:1711.05101; torch.optim.AdamW), element
// by element, for step t from 1:
//
//	g ← factor·g                       if the gradient is clipped
//	g ← g + weight_decay·w             Adam: the penalty is part of the gradient
//	w ← (1 - lr·weight_decay)·w        AdamW: the weight shrinks apart from the step
//	m ← beta1·m + (1-beta1)·g
//	v ← beta2·v + (1-beta2)·g²
//	w ← w - lr/(1-beta1^t) · m / (sqrt(v)/sqrt(1-beta2^t) + eps)
//
// hyper is {lr, t}, or {lr, t, factor} as clip writes it. Every product is rounded before it is added,
// so that all variants give equal bits in any build.

var adam = Kernel{
	Op: "adam", Doc: "m, v = moments of g; w -= lr·m̂/(√v̂ + eps), of the shrunk w where the decay is decoupled",
	Operands: []Operand{
		updates("w", "..."), reads("g", Real, "..."), reads("hyper", Scalar, "hyper"),
		updates("m", "..."), updates("v", "...").positive(),
	},
	Params: []string{"beta1", "beta2", "eps", "weight_decay", "decoupled"},
	Whole:  "hyper",
	Check: func(s *calls.Spec) error {
		_, err := intParam(s, "decoupled", 0, 1)
		return errors.Join(err, checkHyper(s, 2),
			realParam(s, "beta1", 0, 1), realParam(s, "beta2", 0, 1),
			realParam(s, "eps", 0, math.MaxFloat32), realParam(s, "weight_decay", 0, math.MaxFloat32))
	},
	Flops: perElement(14, 0),
	Variants: withRef("element by element", adamRef[float32], adamRef[float64],
		atLevels("run by run", adamAt[float32], adamAt[float64], nil),
		gpu.OnCUDA("four elements per thread", gpu.AdamOnCUDA)),
}

// adamOf is the step of a call. What depends on the step's number only is computed in float64.
func adamOf[T calls.Float](call *calls.Call) simd.Adam[T] {
	lr, t := calls.Data[float64](&call.Args[2])[0], calls.Data[float64](&call.Args[2])[1]
	beta1, beta2, decay := call.Params[0], call.Params[1], call.Params[3]
	step := simd.Adam[T]{
		Beta1: T(beta1), Gain1: T(1 - beta1), Beta2: T(beta2), Gain2: T(1 - beta2),
		Rate: T(lr / (1 - math.Pow(beta1, t))), Root: T(math.Sqrt(1 - math.Pow(beta2, t))),
		Eps: T(call.Params[2]), Decay: T(decay), Keep: 1, Factor: T(cpu.StepFactor(&call.Args[2])),
	}
	if call.Params[4] != 0 {
		step.Decay, step.Keep = 0, T(1-float64(lr*decay))
	}
	return step
}

// eachAdamRun visits the runs of the operands that have an element per weight.
func eachAdamRun[T calls.Float](call *calls.Call, visit func(w, g, m, v []T)) {
	args := [...]*calls.Arg{&call.Args[0], &call.Args[1], &call.Args[3], &call.Args[4]}
	outer, rows, run := calls.Runs(args[:]...)
	for r := range rows {
		var part [4][]T
		for i, a := range args {
			part[i] = calls.Data[T](a)[a.Offset(outer, r):][:run]
		}
		visit(part[0], part[1], part[2], part[3])
	}
}

func adamRef[T calls.Float](call *calls.Call) {
	step := adamOf[T](call)
	eachAdamRun(call, func(w, g, m, v []T) {
		for i, grad := range g {
			grad = T(step.Factor * grad)
			if step.Decay != 0 {
				grad += T(step.Decay * w[i])
			}
			m[i] = T(step.Beta1*m[i]) + T(step.Gain1*grad)
			v[i] = T(step.Beta2*v[i]) + T(step.Gain2*grad*grad)
			w[i] = T(step.Keep * w[i])
			w[i] -= step.Rate * m[i] / (T(math.Sqrt(float64(v[i])))/step.Root + step.Eps)
		}
	})
}

func adamAt[T calls.Float](level simd.Level, call *calls.Call) {
	step := adamOf[T](call)
	eachAdamRun(call, func(w, g, m, v []T) { step.Step(level, w, g, m, v) })
}
