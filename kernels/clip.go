package kernels

import (
	"errors"
	"fmt"
	"math"

	"dahl/kernels/calls"
	"dahl/kernels/gpu"
	"dahl/kernels/simd"
)

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
