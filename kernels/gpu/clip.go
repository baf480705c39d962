package gpu

import (
	"dahl/kernels/calls"
	"dahl/kernels/offload"
)

// squaresParams mirrors SquaresParams of cuda/elementwise.cu.
type squaresParams struct {
	Rows    rowsParams
	G       stridedParams
	Partial uint64
}

// SquaresOnCUDA is a sum per block, and a sum of these where there are several.
func SquaresOnCUDA() []calls.Variant {
	all := OnCUDA("four elements per thread, a tree per block, and one of the blocks", func(c *calls.DeviceCall) []offload.Launch {
		blocks := 0
		launches := func(partial uint64) []offload.Launch {
			return elementwise([]*calls.DeviceArg{&c.Args[1]}, 0, func(r rowsParams, o []stridedParams) offload.Launch {
				p := squaresParams{r, o[0], partial + 8*uint64(blocks)}
				blocks += gridOf(int(r.Total))
				return offload.Launch{Module: "elementwise", Symbol: c.Symbol("squares"), Params: offload.Params(p)}
			})
		}
		if l := launches(c.Args[0].Addr); blocks == 1 {
			return l
		}
		blocks = 0
		all := launches(c.Work)
		return append(all, offload.Launch{
			Module: "reduce", Symbol: c.Symbol("total"), Params: offload.Params(reduceParams{c.Args[0].Addr, c.Work, int32(blocks)}),
			Block: [3]uint32{1024, 1, 1}, Grid: [3]uint32{1, 1, 1},
		})
	})
	all[0].MostElements = cudaMost
	all[0].WorkspaceBytes = func(s *calls.Spec) int64 {
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

// ClipOnCUDA launches clip with one block: clipped = {lr, t, min(1, max_norm/(√Σ s + 1e-6))}. Operands are clipped of 3, hyper
// of 2, and the sums of squares s of n numbers.
func ClipOnCUDA(c *calls.DeviceCall) []offload.Launch {
	return []offload.Launch{{
		Module: "reduce", Symbol: c.Symbol("clip"),
		Params: offload.Params(clipParams{c.Args[0].Addr, c.Args[1].Addr, c.Args[2].Addr, c.Params[0], int32(c.Args[2].Shape[0])}),
		Block:  [3]uint32{1024, 1, 1}, Grid: [3]uint32{1, 1, 1},
	}}
}
