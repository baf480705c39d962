package kernels

import (
	"dahl/kernels/calls"
	"dahl/kernels/gpu"
	"dahl/kernels/simd"
)

// An embedding of v tokens has a row of w for each of them, and learned positions have a row of p for each place of a sequence:
//
//	y[n]   = w[i[n]]                 dw[v]   = Σ over n with i[n] = v of dy[n]
//	y[n,t] = x[n,t] + p[t]           dp[t]   = Σ_n dy[n,t]
//
// Rows are added in the order of n, in all variants, so that these give equal bits.

var embedding = Kernel{
	Op: "embedding", Doc: "y[n] = w[i[n]]",
	Operands: []Operand{writes("y", Real, "n d"), reads("w", Real, "v d"), reads("i", Index, "n").below("v")},
	Whole:    "v",
	Moved:    gathered,
	Variants: withRef("a copy", rowsRef[float32], rowsRef[float64], gpu.OnCUDA("four elements per thread", gpu.LoadRowsOnCUDA)),
}

var embeddingDw = Kernel{
	Op: "embedding.dw", Doc: "dw[i[n]] += dy[n], in the order of n",
	Operands: []Operand{sums("dw", "v d"), reads("dy", Real, "n d"), reads("i", Index, "n").below("v")},
	Whole:    "v",
	Flops:    perElement(1, 1),
	Variants: withRef("row by row", embeddingDwAt[float32], embeddingDwAt[float64],
		gpu.OnCUDA("a warp has every so many rows of dw, and looks for them among all n", gpu.EmbeddingDwOnCUDA)),
}

var positions = Kernel{
	Op: "positions", Doc: "y[n,t] = x[n,t] + p[t]",
	Operands: []Operand{writes("y", Real, "n t d"), reads("x", Real, "n t d"), reads("p", Real, "t d")},
	Flops:    perElement(1, 0),
	Variants: withRef("row by row", positionsAt[float32](simd.Go), positionsAt[float64](simd.Go),
		atLevels("copied and added row by row", eachPosition[float32], eachPosition[float64], nil),
		gpu.OnCUDA("four elements per thread", gpu.PositionsOnCUDA)),
}

var positionsDw = Kernel{
	Op: "positions.dw", Doc: "dp[t] = Σ_n dy[n,t]",
	Operands: []Operand{sums("dp", "t d"), reads("dy", Real, "n t d")},
	Flops:    perElement(1, 1),
	Variants: withRef("row by row", positionsDwAt[float32](simd.Go), positionsDwAt[float64](simd.Go),
		atLevels("row by row", sumPositions[float32], sumPositions[float64], nil),
		gpu.OnCUDA("a thread per element", gpu.PositionsDwOnCUDA)),
}

// begun is a row to which a kernel adds.
func begun[T calls.Float](a *calls.Arg, row []T) []T {
	if !a.Accumulates() {
		clear(row)
	}
	return row
}

func embeddingDwAt[T calls.Float](call *calls.Call) {
	dw, dy := calls.Map2Of[T](&call.Args[0]), calls.Map2Of[T](&call.Args[1])
	for v := range dw.Rows {
		begun(&call.Args[0], dw.Row(v))
	}
	for n, token := range calls.Data[int32](&call.Args[2]) {
		sum := dw.Row(int(token))
		for d, g := range dy.Row(n) {
			sum[d] += g
		}
	}
}

func positionsAt[T calls.Float](l simd.Level) func(*calls.Call) {
	return func(call *calls.Call) { eachPosition[T](l, call) }
}

func eachPosition[T calls.Float](l simd.Level, call *calls.Call) {
	y, x, p := &call.Args[0], &call.Args[1], calls.Map2Of[T](&call.Args[2])
	for n := range y.Shape[0] {
		for t := range y.Shape[1] {
			to := calls.Data[T](y)[n*y.Stride[0]+t*y.Stride[1]:][:p.Columns]
			copy(to, calls.Data[T](x)[n*x.Stride[0]+t*x.Stride[1]:])
			simd.Add(l, to, p.Row(t))
		}
	}
}

func positionsDwAt[T calls.Float](l simd.Level) func(*calls.Call) {
	return func(call *calls.Call) { sumPositions[T](l, call) }
}

func sumPositions[T calls.Float](l simd.Level, call *calls.Call) {
	dp, dy := calls.Map2Of[T](&call.Args[0]), &call.Args[1]
	for t := range dp.Rows {
		sum := begun(&call.Args[0], dp.Row(t))
		for n := range dy.Shape[0] {
			simd.Add(l, sum, calls.Data[T](dy)[n*dy.Stride[0]+t*dy.Stride[1]:][:dp.Columns])
		}
	}
}
