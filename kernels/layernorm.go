package kernels

import (
	"math"
	"slices"

	"dahl/kernels/calls"
	"dahl/kernels/cpu"
	"dahl/kernels/gpu"
	"dahl/kernels/offload"
)

// Layer normalisation (Ba, Kiros and Hinton, 2016, arXiv:1607.06450) as PyTorch's LayerNorm defines it, and with center = 0 the
// root mean square normalisation (Zhang and Sennrich, 2019, arXiv:1910.07467) as its RMSNorm. Every row x of c elements by itself:
//
//	μ = center·Σ x / c    σ² = Σ (x - μ)² / c    r = 1/√(σ² + eps)    y = w·n + b    for n = (x - μ)·r
//
// With Sum the row is a sum of two, and this sum is a result. The gradient gets another part of the gradient of the row added. A block of a transformer adds a
// residual before it normalises. Variants give the bits of the sum and the normalisation one after the other.
//
// k = μ, r of each row is kept. The gradient is, with g = w·dy and means over a row,
//
//	dx = r·(g - center·mean(g) - n·mean(g·n))    dw = Σ dy·n    db = Σ dy
//
// The reference computes in float64 from the operands, and rounds each result once.

func layerNormWith(k Kernel) Kernel {
	k.Doc = "y = w·(x - k0)·k1 [+ b], k = mean or 0, and 1/√(mean square around k0 + eps) of each row"
	k.Operands = []Operand{
		writes("y", Real, "n c"), writes("k", Real, "n 2"),
		reads("x", Real, "n c"), reads("w", Real, "c"), optional(reads("b", Real, "c")),
	}
	k.Params, k.Whole, k.Check, k.Flops = []string{"center", "eps"}, "c", checkCentered, perElement(8, 0)
	cuda := gpu.LayerNorm
	if k.With.Has(calls.Sum) {
		k.Doc = "s = x + r, y and k = layernorm of s"
		k.Operands = slices.Insert(k.Operands, 2, writes("s", Real, "n c"))
		k.Operands = slices.Insert(k.Operands, 4, reads("r", Real, "n c"))
		k.Flops = perElement(9, 0)
		cuda = gpu.OnCUDA("the sum, then a warp per row", func(c *calls.DeviceCall) []offload.Launch {
			sum, alone := *c, *c
			sum.Args, alone.Args = c.Args[2:5], slices.Delete(slices.Clone(c.Args), 3, 5)
			return append(gpu.ElementsOnCUDA("sum")[0].Launches(&sum), gpu.LayerNorm[0].Launches(&alone)...)
		})
	}
	k.Variants = withRef("row by row, in float64", layerNormRef[float32], layerNormRef[float64],
		atLevels("row by row", cpu.LayerNormAt[float32](k.With), cpu.LayerNormAt[float64](k.With), nil), cuda)
	return k
}

func layerNormDxWith(k Kernel) Kernel {
	k.Doc = "dx = k1·(g - center·mean(g) - n·mean(g·n)), g = w·dy, n = (x - k0)·k1"
	k.Operands = []Operand{
		writes("dx", Real, "n c"), reads("dy", Real, "n c"), reads("x", Real, "n c"), reads("k", Real, "n 2"), reads("w", Real, "c"),
	}
	k.Params, k.Whole, k.Check, k.Flops = []string{"center"}, "c", checkFlag("center"), perElement(10, 0)
	cuda := gpu.LayerNormDx
	if k.With.Has(calls.Sum) {
		k.Doc += ", and r is added to dx"
		k.Operands, k.Flops = append(k.Operands, reads("r", Real, "n c")), perElement(11, 0)
		cuda = gpu.OnCUDA("a warp per row, then the sum", func(c *calls.DeviceCall) []offload.Launch {
			alone, add := *c, *c
			alone.Args, add.Args = c.Args[:5], []calls.DeviceArg{c.Args[0], c.Args[5]}
			return append(gpu.LayerNormDx[0].Launches(&alone), gpu.ElementsOnCUDA("add")[0].Launches(&add)...)
		})
	}
	k.Variants = withRef("row by row, in float64", layerNormDxRef[float32], layerNormDxRef[float64],
		atLevels("row by row", cpu.LayerNormDxAt[float32], cpu.LayerNormDxAt[float64], nil), cuda)
	return k
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
	args := call.Args
	y, k, x := calls.Map2Of[T](&args[0]), calls.Map2Of[T](&args[1]), calls.Map2Of[T](&args[2])
	if len(args) > 5 { // with Sum
		calls.EachRun(&args[2], &args[3], &args[4], func(s, x, r []T) {
			for i, v := range x {
				s[i] = v + r[i]
			}
		})
		args = args[2:]
	}
	w := calls.Data[T](&args[3])
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
			if len(args) > 4 {
				normal = float64(normal) + float64(calls.Data[T](&args[4])[c])
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
			if len(call.Args) > 5 {
				r := calls.Map2Of[T](&call.Args[5])
				out[c] += r.Row(n)[c]
			}
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
