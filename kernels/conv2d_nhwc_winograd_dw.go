package kernels

import "dahl/kernels/simd"

// The weight gradient is a product over tiles at each position of the domain: of data, transposed,
// and gradients of results. If all tiles are one block, the sums of one panel of filters at a time
// lie in the workspace, else those of all.

// winogradDw adds to dw the gradient of a convolution of x with respect to its filters, and to db, if not
// nil, that with respect to its bias.
type winogradDw struct {
	convDwNHWC[float32]
	level simd.Level
	winogradSizes
	image, output       tiledMap
	patch               []float32
	data, outputs, sums []float32 // in the domain
}

// outputTile is the distance of tiles of results' gradients.
func (s *winogradSizes) outputTile() int { return simd.WinogradPositions*s.filters + winogradGap }

// winogradDwSizes are those of a weight gradient, whose sums are kept if there are several blocks.
func winogradDwSizes(l simd.Level, channels, filters, tiles int) winogradSizes {
	s := winogradSizesOf(l, channels, filters, tiles)
	s.kept = s.panels
	if tiles <= s.tiles {
		s.kept = 1
	}
	return s
}

// dwWorkspace is the elements of a weight gradient's workspace.
func (s *winogradSizes) dwWorkspace() int {
	return simd.WinogradPositions*max(s.channels, s.filters) + s.tiles*(s.dataTile+s.outputTile()) + s.kept*s.panelElems()
}

func winogradDwOf(l simd.Level, c convDwNHWC[float32], work []byte) winogradDw {
	tiles := tilesOf(c.dy.extent[:])
	s := winogradDwSizes(l, c.x.extent[3], c.dy.extent[3], tiles)
	w := winogradDw{convDwNHWC: c, level: l, winogradSizes: s}
	rows, columns := c.dy.extent[1], c.dy.extent[2]
	w.image = tiledMapOf(c.x, simd.WinogradData, [2]int{c.rows.from, c.columns.from}, rows, columns)
	w.output = tiledMapOf(c.dy, simd.WinogradSide, [2]int{}, rows, columns)
	w.patch, work = scratch[float32](work, simd.WinogradPositions*max(s.channels, s.filters))
	w.data, work = scratch[float32](work, s.tiles*s.dataTile)
	w.outputs, work = scratch[float32](work, s.tiles*s.outputTile())
	w.sums, _ = scratch[float32](work, s.kept*s.panelElems())
	return w
}

// all adds the whole gradient.
func (w *winogradDw) all() {
	if w.db != nil {
		addPixels(w.level, w.db, &w.dy, true)
	}
	all := w.output.count()
	for first := 0; first < all; first += w.tiles {
		count := min(w.tiles, all-first)
		w.image.toDomain(w.level, simd.Winograd{Domain: w.data, DomainTile: w.dataTile, Position: w.channels}, (*simd.Winograd).Data, first, count, w.patch)
		w.output.toDomain(w.level, simd.Winograd{Domain: w.outputs, DomainTile: w.outputTile(), Position: w.filters}, (*simd.Winograd).Gradient, first, count, w.patch)
		for panel := range w.panels {
			w.add(panel, count, first > 0, first+count == all)
		}
	}
}

// add adds the products of a block to the sums of a panel. The last block's are taken out of the domain.
func (w *winogradDw) add(panel, count int, more, last bool) {
	f := panel * w.panel
	n := min(w.panel, w.filters-f)
	sums := w.sums[panel%w.kept*w.panelElems():][:w.panelElems()]
	p := simd.Product[float32]{
		M: w.channels, N: n, K: count, Batch: 1, ARow: 1, AStep: w.dataTile, BRow: w.outputTile(), CRow: w.panel, Accumulate: more,
	}
	for i := range simd.WinogradPositions {
		p.A, p.B, p.C = w.data[i*w.channels:], w.outputs[i*w.filters+f:], sums[i*w.panelPosition:]
		p.Run(w.level)
	}
	if !last {
		return
	}
	t := simd.Winograd{
		Tiles: w.channels, Channels: n, Accumulate: true,
		X: w.dw.elems[f:], XTile: w.dw.stride[2], XRow: w.dw.stride[0], XPixel: w.dw.stride[1],
		Domain: sums, DomainTile: w.panel, Position: w.panelPosition,
	}
	t.FilterGradient(w.level)
}

func conv2dNHWCDwWinograd(l simd.Level, call *Call) {
	dw, dy, x := map4Of[float32](&call.Args[0]), map4Of[float32](&call.Args[1]), map4Of[float32](&call.Args[2])
	c := convDwOf(dw, dy, x, dy.extent[1], windowingOf(call.Params))
	if !call.Args[0].Accumulates() {
		c.dw.clear()
	}
	if len(call.Args) > 3 {
		c.db = Data[float32](&call.Args[3])
		if !call.Args[3].Accumulates() {
			clear(c.db)
		}
	}
	w := winogradDwOf(l, c, call.Work)
	w.all()
}

// winogradDwWorkspace is for a weight gradient with the image, the gradient of the result and the filters in
// operands x, dy and w.
func conv2dNHWCDwWinogradWorkspace(l simd.Level, s *Spec) int64 {
	dy, x := s.Operands[1].Shape, s.Operands[2].Shape
	sizes := winogradDwSizes(l, x[3], dy[3], tilesOf(dy))
	return 4 * int64(sizes.dwWorkspace())
}

func conv2dNHWCDwSGDWinograd(l simd.Level, call *Call) {
	d, work := convDescentOf[float32](call, 4)
	dy, x := map4Of[float32](&call.Args[2]), map4Of[float32](&call.Args[3])
	c := convDwOf(d.dw, dy, x, dy.extent[1], windowingOf(call.Params))
	c.db = d.db
	w := winogradDwOf(l, c, work)
	w.all()
	d.run(l)
}

func conv2dNHWCDwSGDWinogradWorkspace(l simd.Level, s *Spec) int64 {
	dy, x := s.Operands[2].Shape, s.Operands[3].Shape
	sizes := winogradDwSizes(l, x[3], dy[3], tilesOf(dy))
	return convDescentWorkspace(s, 4*int64(sizes.dwWorkspace()))
}
