package gpu

import (
	"dahl/kernels/calls"
	"dahl/kernels/offload"
)

// Conversions between layouts on a CUDA device, see cuda/layout.cu.

// axisParams mirrors Axis of cuda/layout.cu.
type axisParams struct {
	Extent1, Extent2 cudaDivision
	Count            int32
	In, Out          [3]int32
}

// layoutParams mirrors LayoutParams of cuda/layout.cu.
type layoutParams struct {
	Y, X              uint64
	Rows, Columns     axisParams
	InOuter, OutOuter int64
	Outer, Tiles      int32
}

// layoutPair mirrors LayoutPair of cuda/layout.cu.
type layoutPair struct {
	First, Second             layoutParams
	FirstTiles, SecondTiles   int32
	FirstLayers, SecondLayers int32
}

// layoutTile is the rows and columns of a tile, and layoutRows the threads of a column.
const layoutTile, layoutRows = 32, 8

// MoveOnCUDA moves operand 1 of a call to operand 0.
func MoveOnCUDA(l *calls.LayoutTiles) func(*calls.DeviceCall) []offload.Launch {
	return func(c *calls.DeviceCall) []offload.Launch {
		p, tiles, layers := moveParams(l, &c.Args[0], &c.Args[1])
		return []offload.Launch{{
			Module: "layout", Symbol: c.Symbol("layout"), Params: offload.Params(p),
			Block: [3]uint32{layoutTile, layoutRows, 1}, Grid: [3]uint32{tiles, layers, 1},
		}}
	}
}

// BothOnCUDA is the first conversion and, if there is an operand 2, the second one to that
// operand, in one launch.
func BothOnCUDA(first, second *calls.LayoutTiles) func(*calls.DeviceCall) []offload.Launch {
	return func(c *calls.DeviceCall) []offload.Launch {
		if len(c.Args) < 3 {
			return MoveOnCUDA(first)(c)
		}
		p, tiles, layers := moveParams(first, &c.Args[0], &c.Args[1])
		q, otherTiles, otherLayers := moveParams(second, &c.Args[2], &c.Args[1])
		return []offload.Launch{{
			Module: "layout", Symbol: c.Symbol("layout.pair"),
			Params: offload.Params(layoutPair{p, q, int32(tiles), int32(otherTiles), int32(layers), int32(otherLayers)}),
			Block:  [3]uint32{layoutTile, layoutRows, 1}, Grid: [3]uint32{tiles*layers + otherTiles*otherLayers, 1, 1},
		}}
	}
}

// moveParams are the parameters of the move of x to y. y is cut into tiles, and its outer dimension
// into layers.
func moveParams(l *calls.LayoutTiles, y, x *calls.DeviceArg) (p layoutParams, tiles, layers uint32) {
	p = layoutParams{Y: y.Addr, X: x.Addr, Outer: 1}
	in := [4]int64{}
	for d, f := range l.From {
		in[d] = int64(x.Stride[f])
		if l.Flipped && d < 2 {
			p.X += uint64(in[d] * int64(y.Shape[d]-1) * x.Type.SizeBytes())
			in[d] = -in[d]
		}
	}
	p.Rows, p.Columns = layoutAxis(y, in, l.Rows), layoutAxis(y, in, l.Columns)
	if l.Outer >= 0 {
		p.Outer, p.InOuter, p.OutOuter = int32(y.Shape[l.Outer]), in[l.Outer], int64(y.Stride[l.Outer])
	}
	p.Tiles = int32(blocksOf(int(p.Columns.Count), layoutTile))
	tiles = uint32(p.Tiles) * blocksOf(int(p.Rows.Count), layoutTile)
	return p, tiles, min(uint32(p.Outer), layersOf(tiles))
}

// layoutAxis combines some dimensions of y into one, with their distances in x.
func layoutAxis(y *calls.DeviceArg, in [4]int64, dims []int) axisParams {
	a := axisParams{Count: 1}
	extent := [3]int{1, 1, 1}
	for i, d := range dims {
		to := 3 - len(dims) + i
		extent[to], a.In[to], a.Out[to] = y.Shape[d], int32(in[d]), int32(y.Stride[d])
		a.Count *= int32(y.Shape[d])
	}
	a.Extent1, a.Extent2 = divideBy(extent[1]), divideBy(extent[2])
	return a
}
