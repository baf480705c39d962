package kernels

import "dahl/kernels/simd"

// Pooling follows a panel of results. These lie in the workspace: some rows of windows of one sample, or
// whole samples if several are a block of tiles.

// winogradPoolExtents are samples, rows of windows, and results of a panel that are in the workspace at a time.
func winogradPoolExtents(s *winogradSizes, pooled []int, size, step int) (samples, windows int, extent [4]int) {
	width := covered(pooled[2], size, step)
	across := ceilDiv(width, simd.WinogradSide)
	rows := simd.WinogradSide * max(1, s.tiles/across)
	samples, windows = 1, max(1, min(pooled[1], (rows-size)/step+1))
	rows = covered(windows, size, step)
	if windows == pooled[1] {
		samples = max(1, min(pooled[0], s.tiles/(ceilDiv(rows, simd.WinogradSide)*across)))
	}
	return samples, windows, [4]int{samples, rows, width, s.panel}
}

// winogradPoolSizes are those of a convolution whose pooled map has some shape, and winogradPoolExtents.
func winogradPoolSizes(l simd.Level, channels int, pooled []int, size, step int) (s winogradSizes, samples, windows int, extent [4]int) {
	tiles := tilesOf([]int{pooled[0], covered(pooled[1], size, step), covered(pooled[2], size, step)})
	s = winogradSizesOf(l, channels, pooled[3], tiles)
	samples, windows, extent = winogradPoolExtents(&s, pooled, size, step)
	s.tiles = tilesOf(extent[:])
	return s, samples, windows, extent
}

func conv2dNHWCPoolWinograd(l simd.Level, call *Call) {
	y, index := map4Of[float32](&call.Args[0]), map4Of[uint8](&call.Args[1])
	x, f := map4Of[float32](&call.Args[2]), map4Of[float32](&call.Args[3])
	g := windowingOf(call.Params)
	size, step := fusedPooling(call.Params)
	s, samples, windows, extent := winogradPoolSizes(l, x.extent[3], y.extent[:], size, step)
	elems, work := scratch[float32](call.Work, extent[0]*extent[1]*extent[2]*extent[3])
	part := packed4(elems, extent)
	w := winograd{convNHWC: convNHWC[float32]{dst: part, w: f, columns: forwardLattice(extent[2], x.extent[2], 3, g.columns)}}
	if len(call.Args) > 4 {
		w.bias = Data[float32](&call.Args[4])
	}
	w.over(l, s, work)
	p := simd.Pooling[float32]{
		Windows: y.extent[2], Size: size, Step: step, ReLU: true,
		YRow: y.stride[1], YPixel: y.stride[2], IndexRow: index.stride[1], IndexPixel: index.stride[2],
		XRow: part.stride[1], XPixel: part.stride[2],
	}
	for n := 0; n < y.extent[0]; n += samples {
		w.dst.extent[0] = min(samples, y.extent[0]-n)
		w.src = x.samples(n, w.dst.extent[0])
		for u := 0; u < y.extent[1]; u += windows {
			p.Rows = min(windows, y.extent[1]-u)
			w.dst.extent[1] = covered(p.Rows, size, step)
			w.rows = forwardLattice(w.dst.extent[1], x.extent[1], 3, g.rows)
			w.rows.from += u * step
			w.tile()
			w.block(0, w.source.count(), func(f, filters int) {
				w.results(0, w.source.count(), f, filters, part.elems)
				p.Channels = filters
				for i := range w.dst.extent[0] {
					p.X = part.elems[i*part.stride[0]:]
					p.Y, p.Index = y.elems[y.at(n+i, u, 0, f):], index.elems[index.at(n+i, u, 0, f):]
					p.Max(l)
				}
			})
		}
	}
}

func conv2dNHWCPoolWinogradWorkspace(l simd.Level, s *Spec) int64 {
	sizes, _, _, e := winogradPoolSizes(l, s.Operands[2].Shape[3], s.Operands[0].Shape, int(s.Param("size")), int(s.Param("step")))
	return 4 * int64(e[0]*e[1]*e[2]*e[3]+sizes.workspace())
}
