package kernels

import (
	"errors"
	"fmt"
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

// Clipping of gradients by their norm (Pascanu, Mikolov and Bengio, 2013, arXiv:1211.5063) as PyTorch
// defines it (torch.nn.utils.clip_grad_norm_ with norm_type 2), of all gradients of a step together:
//
//	norm   = √Σ g²                          over all elements of all gradients
//	factor = min(1, max_norm/(norm + 10⁻⁶))
//	g      ← factor·g
//
// squares is the sum of one part of one gradient, in a place of its own. clip adds these sums in their
// order, so that the factor does not depend on the order of tasks. It writes what the steps of
// optimisers read in place of hyper, {lr, t, factor}, and they multiply the gradient as they read it.
// Sums and factor are float64 whatever the type of the gradients.

var squares = Kernel{
	Op: "squares", Doc: "s = Σ g²",
	Operands: []Operand{writes("s", Scalar, "1"), reads("g", Real, "...")},
	Flops:    perElement(2, 1),
	Variants: withRef("in float64, element by element", squaresRef[float32], squaresRef[float64],
		atLevels("dot products of runs with themselves", squaresAt[float32], squaresAt[float64], squaresWorkspace),
		gpu.SquaresOnCUDA()),
}

var clipNorm = Kernel{
	Op: "clip", Doc: "clipped = {lr, t, min(1, max_norm/(√Σ s + 1e-6))}",
	Operands: []Operand{writes("clipped", Scalar, "3"), reads("hyper", Scalar, "2"), reads("s", Scalar, "n")},
	Params:   []string{"max_norm"},
	Whole:    "n",
	Check: func(s *calls.Spec) error {
		if s.Param("max_norm") == 0 {
			return errors.New("parameter max_norm is 0, and the step would be 0")
		}
		return realParam(s, "max_norm", 0, math.Inf(1))
	},
	Flops: perElement(1, 2),
	Variants: withRef("in index order", clipRef, clipRef,
		gpu.OnCUDA("one block, then a tree", gpu.ClipOnCUDA)),
}

// clipEps is PyTorch's addition to the norm.
const clipEps = 1e-6

func squaresRef[T calls.Float](call *calls.Call) {
	g := &call.Args[1]
	outer, rows, run := calls.Runs(g)
	sum := 0.0
	for r := range rows {
		for _, v := range calls.Data[T](g)[g.Offset(outer, r):][:run] {
			sum += float64(float64(v) * float64(v))
		}
	}
	calls.Data[float64](&call.Args[0])[0] = sum
}

func squaresWorkspace(*calls.Spec) int64 { return 64 }

func squaresAt[T calls.Float](level simd.Level, call *calls.Call) {
	g := &call.Args[1]
	outer, rows, run := calls.Runs(g)
	product, _ := calls.Scratch[T](call.Work, 1)
	sum := 0.0
	for r := range rows {
		v := calls.Data[T](g)[g.Offset(outer, r):][:run]
		d := simd.Dot[T]{M: 1, N: 1, K: run, A: v, B: v, C: product}
		d.Run(level)
		sum += float64(product[0])
	}
	calls.Data[float64](&call.Args[0])[0] = sum
}

func clipRef(call *calls.Call) {
	clipped, hyper := calls.Data[float64](&call.Args[0]), calls.Data[float64](&call.Args[1])
	sum := 0.0
	for _, s := range calls.Data[float64](&call.Args[2]) {
		sum += s
	}
	factor := call.Params[0] / (math.Sqrt(sum) + clipEps)
	if factor > 1 {
		factor = 1
	}
	clipped[0], clipped[1], clipped[2] = hyper[0], hyper[1], factor
}

// checkHyper refuses an operand hyper with an extent of neither {lr, t} nor {lr, t, factor}. i is its index.
func checkHyper(s *calls.Spec, i int) error {
	if n := s.Operands[i].Shape[0]; n != 2 && n != 3 {
		return fmt.Errorf("hyper[0] is %d, want 2, or 3 with the factor of a clipped gradient", n)
	}
	return nil
}
