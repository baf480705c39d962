package cpu

import (
	"dahl/dag"
	"dahl/kernels/calls"
	"dahl/kernels/simd"
)

// The weight gradient is a product over tiles at each position of the domain: of data, transposed,
// and gradients of results. Some channels are computed together, so that their data stay in the
// second-level cache while all panels of filters meet them. If all tiles are one block, the sums of one
// panel at a time lie in the workspace, else the sums of all panels.

// winogradDw sets dw to the gradient of a convolution of x with respect to its filters, or adds it, and adds to
// db, if not nil, that with respect to its bias.
type winogradDw struct {
	convDwNHWC[float32]
	level simd.Level
	winogradSizes
	image, output       tiledMap
	patch               []float32
	data, outputs, sums []float32 // in the domain
}

// winogradChannels is how many channels are computed together.
const winogradChannels = 64

// winogradDwSizes are the sizes of a weight gradient. Its sums are kept if there are several blocks. Its
// channels are as many as are computed together.
func winogradDwSizes(l simd.Level, channels, filters, tiles int) winogradSizes {
	some := min(channels, winogradChannels)
	s := winogradBlocks(l, some, filters, tiles, winogradTiles)
	if s.tiles < tiles {
		s.kept = s.panelCount * dag.CeilDiv(channels, some)
	}
	return s
}

// dwWorkspace is the elements of a weight gradient's workspace.
func (s *winogradSizes) dwWorkspace() int {
	return simd.WinogradPositions*max(s.channels, s.filters) + inDomain(s.tiles, s.channels) + inDomain(s.tiles, s.filters) + s.kept*s.panelElems()
}

func winogradDwOf(l simd.Level, c convDwNHWC[float32], work []byte) winogradDw {
	tiles := tilesOf(c.dy.Extent[:])
	s := winogradDwSizes(l, c.x.Extent[3], c.dy.Extent[3], tiles)
	w := winogradDw{convDwNHWC: c, level: l, winogradSizes: s}
	rows, columns := c.dy.Extent[1], c.dy.Extent[2]
	w.image = tiledMapOf(c.x, simd.WinogradData, [2]int{c.rows.From, c.columns.From}, rows, columns)
	w.image.norm = c.norm
	w.output = tiledMapOf(c.dy, simd.WinogradSide, [2]int{}, rows, columns)
	w.patch, work = calls.Scratch[float32](work, simd.WinogradPositions*max(s.channels, s.filters))
	w.data, work = calls.Scratch[float32](work, inDomain(s.tiles, s.channels))
	w.outputs, work = calls.Scratch[float32](work, inDomain(s.tiles, s.filters))
	w.sums, _ = calls.Scratch[float32](work, s.kept*s.panelElems())
	return w
}

// all computes the whole gradient.
func (w *winogradDw) all() {
	if w.db != nil {
		addPixels(w.level, w.db, &w.dy, true)
	}
	all := w.output.count()
	for first := 0; first < all; first += w.tiles {
		b := winogradBlock{first: first, tiles: min(w.tiles, all-first), last: first+w.tiles >= all}
		w.output.toDomain(w.level, first, b.tiles, w.outputs, distance(w.tiles, w.filters), w.patch)
		for b.channel = 0; b.channel < w.x.Extent[3]; b.channel += w.channels {
			w.some(b)
		}
	}
}

// winogradBlock is some tiles, and some channels from one on.
type winogradBlock struct {
	first, tiles int
	last         bool // of all tiles
	channel      int
}

// some adds the products of a block and all filters.
func (w *winogradDw) some(b winogradBlock) {
	image := w.image
	image.Map4 = w.image.Part(3, dag.Range{Lo: b.channel, Hi: min(b.channel+w.channels, w.x.Extent[3])})
	image.norm = w.image.norm.channels(b.channel)
	image.toDomain(w.level, b.first, b.tiles, w.data, distance(w.tiles, image.Extent[3]), w.patch)
	for panel := range w.panelCount {
		w.panelOf(b, image.Extent[3], panel)
	}
}

// panelOf adds the products of a block and a panel of filters to their sums. After the last block the sums are
// taken out of the domain.
func (w *winogradDw) panelOf(b winogradBlock, channels, panel int) {
	f := panel * w.panel
	n := min(w.panel, w.filters-f)
	slot := (b.channel/w.channels*w.panelCount + panel) % w.kept
	sums := w.sums[slot*w.panelElems():][:w.panelElems()]
	p := simd.Product[float32]{
		M: channels, N: n, K: b.tiles, Batch: 1, ARow: 1, AStep: channels, BRow: w.filters, CRow: w.panel, Accumulate: b.first > 0,
	}
	for i := range simd.WinogradPositions {
		p.A, p.B, p.C = w.data[i*distance(w.tiles, channels):], w.outputs[i*distance(w.tiles, w.filters)+f:], sums[i*distance(w.channels, w.panel):]
		p.Run(w.level)
	}
	if !b.last {
		return
	}
	t := simd.Winograd{
		Tiles: channels, Channels: n, Accumulate: w.add,
		X: w.dw.Elems[w.dw.At(0, 0, b.channel, f):], XTile: w.dw.Stride[2], XRow: w.dw.Stride[0], XPixel: w.dw.Stride[1],
		Domain: sums, DomainTile: w.panel, Position: distance(w.channels, w.panel),
	}
	t.FilterGradient(w.level)
}

// ConvolutionDwWinograd is conv2d.nhwc.dw by Winograd's algorithm in float32, with the operands of ConvolutionDwAt and without
// Pool.
func ConvolutionDwWinograd(with calls.Attributes) func(simd.Level, *calls.Call) {
	return func(l simd.Level, call *calls.Call) {
		g, work := convGradientOf[float32](call, with)
		w := winogradDwOf(l, g.sums(call), work)
		w.all()
		g.finish(l)
	}
}

// ConvolutionDwWinogradWorkspace is the bytes of data, gradients and sums in the domain of Winograd's algorithm, and with SGD
// of the gradients of w and b, too.
func ConvolutionDwWinogradWorkspace(with calls.Attributes) func(simd.Level, *calls.Spec) int64 {
	return func(l simd.Level, s *calls.Spec) int64 {
		dy, x := s.Operands[1].Shape, s.Operands[2].Shape
		sizes := winogradDwSizes(l, x[3], dy[3], tilesOf(dy))
		return gradientWorkspace(s, with, 4*int64(sizes.dwWorkspace()))
	}
}
