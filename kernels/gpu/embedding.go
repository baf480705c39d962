package gpu

import (
	"slices"

	"dahl/kernels/calls"
	"dahl/kernels/offload"
)

// Gradients of embeddings and of learned positions on a CUDA device, see cuda/embedding.cu.

// embeddingParams mirrors EmbeddingParams of cuda/embedding.cu.
type embeddingParams struct {
	Sum, Dy, Index       uint64
	SumRow, DyRow, DyOf  int64
	Rows, Columns, Terms int32
	Add                  int32
}

// embeddingTeams is how many warps in the grid share the rows of some columns.
const embeddingTeams = 128

// EmbeddingDwOnCUDA adds rows of dy to the rows of tokens.
func EmbeddingDwOnCUDA(c *calls.DeviceCall) []offload.Launch {
	dw, dy := &c.Args[0], &c.Args[1]
	return []offload.Launch{{
		Module: "embedding", Symbol: c.Symbol("embedding.dw"), Block: [3]uint32{cudaThreads, 1, 1},
		Grid: [3]uint32{blocksOf(dw.Shape[1], 32), embeddingTeams * 32 / cudaThreads, 1},
		Params: offload.Params(embeddingParams{
			Sum: dw.Addr, Dy: dy.Addr, Index: c.Args[2].Addr, SumRow: int64(dw.Stride[0]), DyRow: int64(dy.Stride[0]),
			Rows: index32(dw.Shape[0]), Columns: index32(dw.Shape[1]), Terms: index32(dy.Shape[0]), Add: flag(dw.Accumulates()),
		}),
	}}
}

// PositionsDwOnCUDA adds the samples up.
func PositionsDwOnCUDA(c *calls.DeviceCall) []offload.Launch {
	dp, dy := &c.Args[0], &c.Args[1]
	return []offload.Launch{{
		Module: "embedding", Symbol: c.Symbol("positions.dw"), Block: [3]uint32{cudaThreads, 1, 1},
		Grid: [3]uint32{blocksOf(dp.Shape[1], cudaThreads), uint32(min(dp.Shape[0], cudaBlocks)), 1},
		Params: offload.Params(embeddingParams{
			Sum: dp.Addr, Dy: dy.Addr, SumRow: int64(dp.Stride[0]), DyRow: int64(dy.Stride[1]), DyOf: int64(dy.Stride[0]),
			Rows: index32(dp.Shape[0]), Columns: index32(dp.Shape[1]), Terms: index32(dy.Shape[0]), Add: flag(dp.Accumulates()),
		}),
	}}
}

// PositionsOnCUDA is a sum with an operand that all samples share.
func PositionsOnCUDA(c *calls.DeviceCall) []offload.Launch {
	y, shared := &c.Args[0], c.Args[2]
	shared.Shape, shared.Stride = y.Shape, slices.Insert(slices.Clone(shared.Stride), 0, 0)
	return elements(c, "elementwise", "sum", []*calls.DeviceArg{y, &c.Args[1], &shared})
}

// shiftParams mirrors ShiftParams of cuda/embedding.cu.
type shiftParams struct {
	Y, X, C                     uint64
	YOf, YRow, XOf, XRow        int64
	Samples, Positions, Columns int32
	From, Before                int32
}

// ShiftOnCUDA copies rows of x or the token.
func ShiftOnCUDA(c *calls.DeviceCall) []offload.Launch {
	y, x := &c.Args[0], &c.Args[1]
	p := shiftParams{
		Y: y.Addr, X: x.Addr, YOf: int64(y.Stride[0]), YRow: int64(y.Stride[1]), XOf: int64(x.Stride[0]), XRow: int64(x.Stride[1]),
		Samples: index32(y.Shape[0]), Positions: index32(y.Shape[1]), Columns: index32(y.Shape[2]), From: index32(x.Shape[1]), Before: c.Param(0),
	}
	if len(c.Args) > 2 {
		p.C = c.Args[2].Addr
	}
	return []offload.Launch{{
		Module: "embedding", Symbol: c.Symbol("shift"), Block: [3]uint32{cudaThreads, 1, 1},
		Grid: [3]uint32{blocksOf(y.Shape[2], cudaThreads), uint32(min(y.Shape[0]*y.Shape[1], cudaBlocks)), 1}, Params: offload.Params(p),
	}}
}

// marksParams mirrors MarksParams of cuda/embedding.cu.
type marksParams struct {
	Y, Index           uint64
	YRow, IndexRow     int64
	Token, Behind      int32
	Samples, Positions int32
}

// MarksOnCUDA goes through the tokens of each sample.
func MarksOnCUDA(c *calls.DeviceCall) []offload.Launch {
	y, index := &c.Args[0], &c.Args[1]
	return []offload.Launch{{
		Module: "embedding", Symbol: "marks", Block: [3]uint32{cudaThreads, 1, 1}, Grid: [3]uint32{blocksOf(y.Shape[0], cudaThreads), 1, 1},
		Params: offload.Params(marksParams{
			Y: y.Addr, Index: index.Addr, YRow: int64(y.Stride[0]), IndexRow: int64(index.Stride[0]), Token: c.Param(0), Behind: c.Param(1),
			Samples: index32(y.Shape[0]), Positions: index32(y.Shape[1]),
		}),
	}}
}
