package cpu

import (
	"dahl/dag"
	"dahl/kernels/calls"
	"dahl/kernels/simd"
)

// Layer normalisations row by row, see kernels.layerNorm.

// LayerNormAt is the variant of layernorm at a level.
func LayerNormAt[T calls.Float](l simd.Level, c *calls.Call) {
	y, k, x, w := calls.Map2Of[T](&c.Args[0]), calls.Map2Of[T](&c.Args[1]), calls.Map2Of[T](&c.Args[2]), calls.Data[T](&c.Args[3])
	b := optional[T](c, 4)
	for i := range x.Rows {
		n := simd.RowNormOf(l, x.Row(i), c.Params[0] == 1, c.Params[1])
		k.Row(i)[0], k.Row(i)[1] = n.Mean, n.Inverse
		n.Normalise(l, y.Row(i), x.Row(i), w, b)
	}
}

// LayerNormDxAt is the variant of layernorm.dx.
func LayerNormDxAt[T calls.Float](l simd.Level, c *calls.Call) {
	dx, dy, x, k := calls.Map2Of[T](&c.Args[0]), calls.Map2Of[T](&c.Args[1]), calls.Map2Of[T](&c.Args[2]), calls.Map2Of[T](&c.Args[3])
	w := calls.Data[T](&c.Args[4])
	for i := range x.Rows {
		n := simd.RowNorm[T]{Mean: k.Row(i)[0], Inverse: k.Row(i)[1]}
		n.Gradient(l, dx.Row(i), x.Row(i), dy.Row(i), w, c.Params[0] == 1)
	}
}

// LayerNormDwAt is the variant of layernorm.dw.
func LayerNormDwAt[T calls.Float](l simd.Level, c *calls.Call) {
	dw, dy, x, k := &c.Args[0], calls.Map2Of[T](&c.Args[1]), calls.Map2Of[T](&c.Args[2]), calls.Map2Of[T](&c.Args[3])
	db := optional[T](c, 4)
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
func optional[T calls.Float](c *calls.Call, i int) []T {
	if i >= len(c.Args) {
		return nil
	}
	return calls.Data[T](&c.Args[i])
}
