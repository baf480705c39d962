package kernels

import (
	"fmt"
	"math"

	"dahl/kernels/calls"
	"dahl/kernels/cpu"
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

// Marks of the places of one token z in sequences of tokens i. They say where padding is, and where the second part of a sample is that a token
// parts from the first one:
//
//	behind = 0    y[n,t] = [i[n,t] ≠ z]
//	behind = 1    y[n,t] = [i[n,s] = z for exactly one s < t]
var marks = Kernel{
	Op: "marks", Doc: "y = 1 where i is not the token, or with behind = 1 where the token is once before, else 0",
	Operands: []Operand{writes("y", Index, "n t"), reads("i", Index, "n t")},
	Params:   []string{"token", "behind"}, Whole: "t",
	Check: func(s *calls.Spec) error {
		if _, err := intParam(s, "token", 0, math.MaxInt32); err != nil {
			return err
		}
		return checkFlag("behind")(s)
	},
	Flops:    perElement(1, 0),
	Variants: withRef("token by token", marksOf, marksOf, gpu.OnCUDA("a sample per thread", gpu.MarksOnCUDA)),
}

func marksOf(c *calls.Call) {
	y, from := calls.Map2Of[int32](&c.Args[0]), calls.Map2Of[int32](&c.Args[1])
	token, behind := int32(c.Params[0]), c.Params[1] == 1
	for n := range y.Rows {
		before, to := 0, y.Row(n)
		for t, v := range from.Row(n) {
			marked := v != token
			if behind {
				marked = before == 1
			}
			to[t] = 0
			if marked {
				to[t] = 1
			}
			if v == token {
				before++
			}
		}
	}
}

// Rotary positions (Su et al., "RoFormer", 2021, arXiv:2104.09864), in the order of Llama's features: of each head of D, an even number, the
// pair of feature i and i+D/2 at position t is turned by the angle t·base^(-2i/D). rotary.table has the cosines of all angles of a
// position and then their sines. A product of a query and a key depends on the distance of their positions alone. The gradient is turned back.

var rotaryTable = Kernel{
	Op: "rotary.table", Doc: "table = cos and sin of t·base^(-2i/d) for i < d/2",
	Operands: []Operand{writes("table", Real, "t d")},
	Params:   []string{"base"}, Whole: "t d",
	Check: func(s *calls.Spec) error {
		if err := checkEven(s.Operands[0].Shape[1]); err != nil {
			return err
		}
		return realParam(s, "base", 1, math.MaxFloat32)
	},
	Flops:    perElement(20, 0),
	Variants: withRef("in float64", rotaryTableRef[float32], rotaryTableRef[float64], gpu.RotaryTable),
}

var rotary = Kernel{
	Op: "rotary", Doc: "y = x, each pair of its heads turned by the angles of the table, or with back = 1 turned back",
	Operands: []Operand{writes("y", Real, "n t h:d"), reads("x", Real, "n t h:d"), reads("table", Real, "t d")},
	Options:  "heads=1", Params: []string{"back"}, Sizes: "h=heads", Whole: "d",
	Check: func(s *calls.Spec) error {
		if err := checkEven(s.Operands[2].Shape[1]); err != nil {
			return err
		}
		return checkFlag("back")(s)
	},
	Flops:    perElement(3, 0),
	Variants: withRef("pair by pair", rotaryRef[float32], rotaryRef[float64], gpu.Rotary),
}

// checkEven refuses an odd number of features of a head.
func checkEven(features int) error {
	if features%2 == 1 {
		return fmt.Errorf("heads of %d features; rotary positions turn pairs", features)
	}
	return nil
}

func rotaryTableRef[T calls.Float](c *calls.Call) {
	table := calls.Map2Of[T](&c.Args[0])
	for t := range table.Rows {
		row, half := table.Row(t), table.Columns/2
		for i := range half {
			angle := float64(t) * math.Pow(c.Params[0], -float64(2*i)/float64(table.Columns))
			row[i], row[half+i] = T(math.Cos(angle)), T(math.Sin(angle))
		}
	}
}

func rotaryRef[T calls.Float](c *calls.Call) {
	y, x, table := &c.Args[0], &c.Args[1], calls.Map2Of[T](&c.Args[2])
	heads, back, half := int(c.Params[0]), c.Params[1] == 1, table.Columns/2
	for n := range x.Shape[0] {
		for t := range x.Shape[1] {
			cos, sin := table.Row(t)[:half], table.Row(t)[half:]
			for h := range heads {
				to, from := cpu.Features[T](y, n, t, h, 2*half), cpu.Features[T](x, n, t, h, 2*half)
				for i, c := range cos {
					a, b, s := from[i], from[half+i], sin[i]
					if back {
						s = -s
					}
					to[i], to[half+i] = T(a*c)-T(b*s), T(b*c)+T(a*s)
				}
			}
		}
	}
}
