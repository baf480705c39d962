package cpu

import (
	"dahl/dag"
	"dahl/kernels/calls"
	"dahl/kernels/simd"
)

// Pooling follows a panel of results. These lie in the workspace: some rows of windows of one sample, or
// whole samples if several are a block of tiles.

// winogradPoolExtents are samples, rows of windows, and results of a panel that are in the workspace at a time.
func winogradPoolExtents(s *winogradSizes, pooled []int, size, step int) (samples, windows int, extent [4]int) {
	width := calls.Covered(pooled[2], size, step)
	across := dag.CeilDiv(width, simd.WinogradSide)
	rows := simd.WinogradSide * max(1, s.tiles/across)
	samples, windows = 1, max(1, min(pooled[1], (rows-size)/step+1))
	rows = calls.Covered(windows, size, step)
	if windows == pooled[1] {
		samples = max(1, min(pooled[0], s.tiles/(dag.CeilDiv(rows, simd.WinogradSide)*across)))
	}
	return samples, windows, [4]int{samples, rows, width, s.panel}
}

// winogradPoolSizes are the sizes of a convolution from the shape of its pooled map, and winogradPoolExtents.
func winogradPoolSizes(l simd.Level, channels int, pooled []int, size, step int) (s winogradSizes, samples, windows int, extent [4]int) {
	tiles := tilesOf([]int{pooled[0], calls.Covered(pooled[1], size, step), calls.Covered(pooled[2], size, step)})
	s = winogradSizesOf(l, channels, pooled[3], tiles)
	samples, windows, extent = winogradPoolExtents(&s, pooled, size, step)
	s.tiles = tilesOf(extent[:])
	return s, samples, windows, extent
}

// Conv2dNHWCPoolWinograd is conv2d.nhwc.pool by Winograd's algorithm, with the operands of Conv2dNHWCPoolAt in float32.
func Conv2dNHWCPoolWinograd(l simd.Level, call *calls.Call) {
	y, index := calls.Map4Of[float32](&call.Args[0]), calls.Map4Of[uint8](&call.Args[1])
	x, f := calls.Map4Of[float32](&call.Args[2]), calls.Map4Of[float32](&call.Args[3])
	g := calls.WindowingOf(call.Params)
	size, step := calls.FusedPooling(call.Params)
	s, samples, windows, extent := winogradPoolSizes(l, x.Extent[3], y.Extent[:], size, step)
	elems, work := calls.Scratch[float32](call.Work, extent[0]*extent[1]*extent[2]*extent[3])
	part := calls.Packed4(elems, extent)
	w := winograd{convNHWC: convNHWC[float32]{dst: part, w: f, columns: calls.ForwardLattice(extent[2], x.Extent[2], 3, g.Columns)}}
	if len(call.Args) > 4 {
		w.bias = calls.Data[float32](&call.Args[4])
	}
	w.prepare(l, s, work)
	p := simd.Pooling[float32]{
		Windows: y.Extent[2], Size: size, Step: step, ReLU: true,
		YRow: y.Stride[1], YPixel: y.Stride[2], IndexRow: index.Stride[1], IndexPixel: index.Stride[2],
		XRow: part.Stride[1], XPixel: part.Stride[2],
	}
	for n := 0; n < y.Extent[0]; n += samples {
		w.dst.Extent[0] = min(samples, y.Extent[0]-n)
		w.src = x.Samples(n, w.dst.Extent[0])
		for u := 0; u < y.Extent[1]; u += windows {
			p.Rows = min(windows, y.Extent[1]-u)
			w.dst.Extent[1] = calls.Covered(p.Rows, size, step)
			w.rows = calls.ForwardLattice(w.dst.Extent[1], x.Extent[1], 3, g.Rows)
			w.rows.From += u * step
			w.tile()
			w.block(0, w.source.count(), func(f, filters int) {
				w.results(0, w.source.count(), f, filters, part.Elems)
				p.Channels = filters
				for i := range w.dst.Extent[0] {
					p.X = part.Elems[i*part.Stride[0]:]
					p.Y, p.Index = y.Elems[y.At(n+i, u, 0, f):], index.Elems[index.At(n+i, u, 0, f):]
					p.Max(l)
				}
			})
		}
	}
}

// Conv2dNHWCPoolWinogradWorkspace is the bytes of the results that are pooled at a time, and of all parts in the domain of
// Winograd's algorithm.
func Conv2dNHWCPoolWinogradWorkspace(l simd.Level, s *calls.Spec) int64 {
	sizes, _, _, e := winogradPoolSizes(l, s.Operands[2].Shape[3], s.Operands[0].Shape, int(s.Param("size")), int(s.Param("step")))
	return 4 * int64(e[0]*e[1]*e[2]*e[3]+sizes.workspace())
}
