package kernels

import (
	"math"

	"dahl/kernels/calls"
	"dahl/kernels/cpu"
	"dahl/kernels/gpu"
)

// Layer normalisation (Ba, Kiros and Hinton, 2016, arXiv:1607.06450) as PyTorch's LayerNorm defines it, and with center = 0 the
// root mean square normalisation (Zhang and Sennrich, 2019, arXiv:1910.07467) as its RMSNorm. Every row x of c elements by itself:
//
//	μ = center·Σ x / c    σ² = Σ (x - μ)² / c    r = 1/√(σ² + eps)    y = w·n + b    for n = (x - μ)·r
//
// k = μ, r of each row is kept. The gradient is, with g = w·dy and means over a row,
//
//	dx = r·(g - center·mean(g) - n·mean(g·n))    dw = Σ dy·n    db = Σ dy
//
// The reference computes in float64 from the operands, and rounds each result once.

var layerNorm = Kernel{
	Op: "layernorm", Doc: "y = w·(x - k0)·k1 [+ b], k = mean or 0, and 1/√(mean square around k0 + eps) of each row",
	Operands: []Operand{
		writes("y", Real, "n c"), writes("k", Real, "n 2"),
		reads("x", Real, "n c"), reads("w", Real, "c"), optional(reads("b", Real, "c")),
	},
	Params: []string{"center", "eps"}, Whole: "c", Check: checkCentered, Flops: perElement(8, 0),
	Variants: withRef("row by row, in float64", layerNormRef[float32], layerNormRef[float64],
		atLevels("row by row", cpu.LayerNormAt[float32], cpu.LayerNormAt[float64], nil), gpu.LayerNorm),
}

var layerNormDx = Kernel{
	Op: "layernorm.dx", Doc: "dx = k1·(g - center·mean(g) - n·mean(g·n)), g = w·dy, n = (x - k0)·k1",
	Operands: []Operand{
		writes("dx", Real, "n c"), reads("dy", Real, "n c"), reads("x", Real, "n c"), reads("k", Real, "n 2"), reads("w", Real, "c"),
	},
	Params: []string{"center"}, Whole: "c", Check: checkFlag("center"), Flops: perElement(10, 0),
	Variants: withRef("row by row, in float64", layerNormDxRef[float32], layerNormDxRef[float64],
		atLevels("row by row", cpu.LayerNormDxAt[float32], cpu.LayerNormDxAt[float64], nil), gpu.LayerNormDx),
}

var layerNormDw = Kernel{
	Op: "layernorm.dw", Doc: "dw = Σ dy·(x - k0)·k1, db = Σ dy over all rows",
	Operands: []Operand{
		sums("dw", "c"), reads("dy", Real, "n c"), reads("x", Real, "n c"), reads("k", Real, "n 2"), optional(sums("db", "c")),
	},
	Flops: perElement(5, 1),
	Variants: withRef("column by column, in float64", layerNormDwRef[float32], layerNormDwRef[float64],
		atLevels("row by row", cpu.LayerNormDwAt[float32], cpu.LayerNormDwAt[float64], nil), gpu.LayerNormDw),
}

func checkCentered(s *calls.Spec) error {
	if _, err := intParam(s, "center", 0, 1); err != nil {
		return err
	}
	return realParam(s, "eps", 0, math.Inf(1))
}

func layerNormRef[T calls.Float](call *calls.Call) {
	y, k, x, w := calls.Map2Of[T](&call.Args[0]), calls.Map2Of[T](&call.Args[1]), calls.Map2Of[T](&call.Args[2]), calls.Data[T](&call.Args[3])
	for n := range x.Rows {
		row, out, count := x.Row(n), y.Row(n), float64(x.Columns)
		var mean, squares float64
		if call.Params[0] == 1 {
			for _, v := range row {
				mean += float64(v)
			}
			mean /= count
		}
		for _, v := range row {
			d := float64(v) - mean
			squares += float64(d * d)
		}
		inverse := 1 / math.Sqrt(squares/count+call.Params[1])
		k.Row(n)[0], k.Row(n)[1] = T(mean), T(inverse)
		for c, v := range row {
			normal := float64((float64(v)-mean)*inverse) * float64(w[c])
			if len(call.Args) > 4 {
				normal = float64(normal) + float64(calls.Data[T](&call.Args[4])[c])
			}
			out[c] = T(normal)
		}
	}
}

func layerNormDxRef[T calls.Float](call *calls.Call) {
	dx, dy, x := calls.Map2Of[T](&call.Args[0]), calls.Map2Of[T](&call.Args[1]), calls.Map2Of[T](&call.Args[2])
	k, w := calls.Map2Of[T](&call.Args[3]), calls.Data[T](&call.Args[4])
	for n := range x.Rows {
		grad, row, out := dy.Row(n), x.Row(n), dx.Row(n)
		mean, inverse := float64(k.Row(n)[0]), float64(k.Row(n)[1])
		of := func(c int) (g, normal float64) {
			return float64(float64(grad[c]) * float64(w[c])), float64((float64(row[c]) - mean) * inverse)
		}
		var sum, products float64
		for c := range row {
			g, normal := of(c)
			sum, products = sum+g, products+float64(g*normal)
		}
		sum, products = call.Params[0]*sum/float64(x.Columns), products/float64(x.Columns)
		for c := range row {
			g, normal := of(c)
			out[c] = T(inverse * (g - sum - float64(normal*products)))
		}
	}
}

func layerNormDwRef[T calls.Float](call *calls.Call) {
	dy, x, k := calls.Map2Of[T](&call.Args[1]), calls.Map2Of[T](&call.Args[2]), calls.Map2Of[T](&call.Args[3])
	for c := range x.Columns {
		var products, sum float64
		for n := range x.Rows {
			g := float64(dy.Row(n)[c])
			products += float64(g * float64((float64(x.Row(n)[c])-float64(k.Row(n)[0]))*float64(k.Row(n)[1])))
			sum += g
		}
		dw := &call.Args[0]
		calls.Put(&calls.Data[T](dw)[c], T(products), dw.Accumulates())
		if len(call.Args) > 4 {
			db := &call.Args[4]
			calls.Put(&calls.Data[T](db)[c], T(sum), db.Accumulates())
		}
	}
}
