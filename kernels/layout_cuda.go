package kernels

import "dahl/kernels/cuda"

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

// layoutTile is the rows and columns of a tile, and layoutRows the threads of a column.
const layoutTile, layoutRows = 32, 8

// layoutOnCUDA moves tiles of a conversion in which dimension d of the output is dimension
// from[d] of the input; flipped reverses the first two dimensions of the output. The
// dimensions of the output named by rows are together the contiguous ones of the output,
// those named by columns the contiguous ones of the input, each outermost first; outer is
// the one that is left, or -1.
func layoutOnCUDA(from [4]int, flipped bool, rows, columns []int, outer int) Variant {
	return onCUDA("tiles of 32×32 through shared memory", func(c *DeviceCall) []cuda.Launch {
		y, x := &c.Args[0], &c.Args[1]
		p := layoutParams{Y: y.Addr, X: x.Addr, Outer: 1}
		in := [4]int64{}
		for d, f := range from {
			in[d] = int64(x.Stride[f])
			if flipped && d < 2 {
				p.X += uint64(in[d] * int64(y.Shape[d]-1) * x.Type.SizeBytes())
				in[d] = -in[d]
			}
		}
		p.Rows, p.Columns = layoutAxis(y, in, rows), layoutAxis(y, in, columns)
		if outer >= 0 {
			p.Outer, p.InOuter, p.OutOuter = int32(y.Shape[outer]), in[outer], int64(y.Stride[outer])
		}
		p.Tiles = int32(blocksOf(int(p.Columns.Count), layoutTile))
		tiles := uint32(p.Tiles) * blocksOf(int(p.Rows.Count), layoutTile)
		return []cuda.Launch{{
			Module: "layout", Symbol: c.symbol("layout"), Params: cuda.Params(p),
			Block: [3]uint32{layoutTile, layoutRows, 1},
			Grid:  [3]uint32{tiles, min(uint32(p.Outer), layersOf(tiles)), 1},
		}}
	}, nil)
}

// layoutAxis is some dimensions of y as one, with their distances in x.
func layoutAxis(y *DeviceArg, in [4]int64, dims []int) axisParams {
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
