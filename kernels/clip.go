package kernels

import (
	"errors"
	"fmt"
	"math"

	"dahl/kernels/offload"
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
		squaresOnCUDA()),
}

var clipNorm = Kernel{
	Op: "clip", Doc: "clipped = {lr, t, min(1, max_norm/(√Σ s + 1e-6))}",
	Operands: []Operand{writes("clipped", Scalar, "3"), reads("hyper", Scalar, "2"), reads("s", Scalar, "n")},
	Params:   []string{"max_norm"},
	Whole:    "n",
	Check: func(s *Spec) error {
		if s.Param("max_norm") == 0 {
			return errors.New("parameter max_norm is 0, and the step would be 0")
		}
		return realParam(s, "max_norm", 0, math.Inf(1))
	},
	Flops: perElement(1, 2),
	Variants: withRef("in index order", clipRef, clipRef,
		onCUDA("one block, then a tree", clipOnCUDA)),
}

// clipEps is PyTorch's addition to the norm.
const clipEps = 1e-6

func squaresRef[T Float](call *Call) {
	g := &call.Args[1]
	outer, rows, run := runs(g)
	sum := 0.0
	for r := range rows {
		for _, v := range Data[T](g)[g.offset(outer, r):][:run] {
			sum += float64(float64(v) * float64(v))
		}
	}
	Data[float64](&call.Args[0])[0] = sum
}

func squaresWorkspace(*Spec) int64 { return 64 }

func squaresAt[T Float](level simd.Level, call *Call) {
	g := &call.Args[1]
	outer, rows, run := runs(g)
	product, _ := scratch[T](call.Work, 1)
	sum := 0.0
	for r := range rows {
		v := Data[T](g)[g.offset(outer, r):][:run]
		d := simd.Dot[T]{M: 1, N: 1, K: run, A: v, B: v, C: product}
		d.Run(level)
		sum += float64(product[0])
	}
	Data[float64](&call.Args[0])[0] = sum
}

func clipRef(call *Call) {
	clipped, hyper := Data[float64](&call.Args[0]), Data[float64](&call.Args[1])
	sum := 0.0
	for _, s := range Data[float64](&call.Args[2]) {
		sum += s
	}
	factor := call.Params[0] / (math.Sqrt(sum) + clipEps)
	if factor > 1 {
		factor = 1
	}
	clipped[0], clipped[1], clipped[2] = hyper[0], hyper[1], factor
}

// stepFactor is what a step multiplies the gradient by: the third number of hyper where a call has
// one.
func stepFactor(hyper *Arg) float64 {
	if hyper.Shape[0] < 3 {
		return 1
	}
	return Data[float64](hyper)[2]
}

// checkHyper refuses an operand hyper, of that index, that is neither {lr, t} nor {lr, t, factor}.
func checkHyper(s *Spec, i int) error {
	if n := s.Operands[i].Shape[0]; n != 2 && n != 3 {
		return fmt.Errorf("hyper[0] is %d, want 2, or 3 with the factor of a clipped gradient", n)
	}
	return nil
}

// squaresParams mirrors SquaresParams of cuda/elementwise.cu.
type squaresParams struct {
	Rows    rowsParams
	G       stridedParams
	Partial uint64
}

// squaresOnCUDA is a sum per block, and a sum of these where there are several.
func squaresOnCUDA() []Variant {
	all := onCUDA("four elements per thread, a tree per block, and one of the blocks", func(c *DeviceCall) []offload.Launch {
		blocks := 0
		launches := func(partial uint64) []offload.Launch {
			return elementwise([]*DeviceArg{&c.Args[1]}, 0, func(r rowsParams, o []stridedParams) offload.Launch {
				p := squaresParams{r, o[0], partial + 8*uint64(blocks)}
				blocks += gridOf(int(r.Total))
				return offload.Launch{Module: "elementwise", Symbol: c.symbol("squares"), Params: offload.Params(p)}
			})
		}
		if l := launches(c.Args[0].Addr); blocks == 1 {
			return l
		}
		blocks = 0
		all := launches(c.Work)
		return append(all, offload.Launch{
			Module: "reduce", Symbol: c.symbol("total"), Params: offload.Params(reduceParams{c.Args[0].Addr, c.Work, int32(blocks)}),
			Block: [3]uint32{1024, 1, 1}, Grid: [3]uint32{1, 1, 1},
		})
	})
	all[0].MostElements = cudaMost
	all[0].WorkspaceBytes = func(s *Spec) int64 {
		shape, launches := s.Operands[1].Shape, int64(1)
		for _, e := range shape[:max(0, len(shape)-4)] { // see rowLaunches
			launches *= int64(e)
		}
		return 8 * cudaBlocks * launches
	}
	return all
}

// clipParams mirrors ClipParams of cuda/reduce.cu.
type clipParams struct {
	Clipped, Hyper, Values uint64
	MaxNorm                float64
	Count                  int32
}

func clipOnCUDA(c *DeviceCall) []offload.Launch {
	return []offload.Launch{{
		Module: "reduce", Symbol: c.symbol("clip"),
		Params: offload.Params(clipParams{c.Args[0].Addr, c.Args[1].Addr, c.Args[2].Addr, c.Params[0], int32(c.Args[2].Shape[0])}),
		Block:  [3]uint32{1024, 1, 1}, Grid: [3]uint32{1, 1, 1},
	}}
}
