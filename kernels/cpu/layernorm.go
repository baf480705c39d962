package cpu

import (
	"dahl/dag"
	"dahl/kernels/calls"
	"dahl/kernels/simd"
)

// Layer normalisations row by row, see kernels.layerNorm.

// LayerNormAt is the variant of layernorm at a level.
func LayerNormAt[T calls.Float](with calls.Attributes) func(simd.Level, *calls.Call) {
	return func(l simd.Level, c *calls.Call) {
		args := c.Args
		y, k, x := calls.Map2Of[T](&args[0]), calls.Map2Of[T](&args[1]), calls.Map2Of[T](&args[2])
		var of, rest calls.Map2[T]
		if with.Has(calls.Sum) {
			of, rest, args = calls.Map2Of[T](&args[3]), calls.Map2Of[T](&args[4]), args[2:]
		}
		w, b := calls.Data[T](&args[3]), optional[T](args, 4)
		for i := range x.Rows {
			if with.Has(calls.Sum) {
				copy(x.Row(i), of.Row(i))
				simd.Add(l, x.Row(i), rest.Row(i))
			}
			n := simd.RowNormOf(l, x.Row(i), c.Params[0] == 1, c.Params[1])
			k.Row(i)[0], k.Row(i)[1] = n.Mean, n.Inverse
			n.Normalise(l, y.Row(i), x.Row(i), w, b)
		}
	}
}

// LayerNormDxAt is the variant of layernorm.dx.
func LayerNormDxAt[T calls.Float](l simd.Level, c *calls.Call) {
	dx, dy, x, k := calls.Map2Of[T](&c.Args[0]), calls.Map2Of[T](&c.Args[1]), calls.Map2Of[T](&c.Args[2]), calls.Map2Of[T](&c.Args[3])
	w := calls.Data[T](&c.Args[4])
	for i := range x.Rows {
		n := simd.RowNorm[T]{Mean: k.Row(i)[0], Inverse: k.Row(i)[1]}
		n.Gradient(l, dx.Row(i), x.Row(i), dy.Row(i), w, c.Params[0] == 1)
		if len(c.Args) > 5 { // with Sum
			rest := calls.Map2Of[T](&c.Args[5])
			simd.Add(l, dx.Row(i), rest.Row(i))
		}
	}
}

// LayerNormDwAt is the variant of layernorm.dw.
func LayerNormDwAt[T calls.Float](l simd.Level, c *calls.Call) {
	dw, dy, x, k := &c.Args[0], calls.Map2Of[T](&c.Args[1]), calls.Map2Of[T](&c.Args[2]), calls.Map2Of[T](&c.Args[3])
	db := optional[T](c.Args, 4)
	if !dw.Accumulates() {
		clear(calls.Data[T](dw))
	}
	if db != nil && c.Args[4].Mode == dag.Write {
		clear(db)
	}
	for i := range x.Rows {
		n := simd.RowNorm[T]{Mean: k.Row(i)[0], Inverse: k.Row(i)[1]}
		n.AddWeights(l, calls.Data[T](dw), x.Row(i), dy.Row(i), db)
	}
}

// optional is an operand of one dimension that a call may lack.
func optional[T calls.Float](args []calls.Arg, i int) []T {
	if i >= len(args) {
		return nil
	}
	return calls.Data[T](&args[i])
}
