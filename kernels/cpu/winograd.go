package cpu

import (
	"fmt"

	"dahl/dag"
	"dahl/kernels/calls"
	"dahl/kernels/simd"
)

// Convolutions by 3×3 filters at stride 1 through Winograd's domain, see [simd.Winograd]. Sixteen
// results of a tile take 36 products of channels with filters there instead of 144.
//
// Some tiles are computed together. At each position of the domain they are the rows of a product
// with the filters. The filters come in panels of two vectors, whose rows follow each other in
// memory. So a block of tiles is: its data into the domain; then, for each panel, the filters
// into the domain, 36 products, and the results out of it. Most of what lies in the domain at a time
// stays in the second-level cache. Where the filters of all panels would not, each block makes its
// own again, which is faster than to fetch them from further away.
//
// Elements outside of an image are zeros of a copy of the tile. NaN or an infinity spreads over all results of
// the tiles that read it.

const (
	// winogradTiles is how many tiles are computed together, at most all. They are more where their data
	// take less than winogradDataBytes, and twice as many where each block makes its own filters.
	winogradTiles     = 64
	winogradDataBytes = 512 << 10
	// winogradFilterBytes bounds the filters that are kept in the domain from one block to the next.
	winogradFilterBytes = 4 << 20
	// winogradGap is elements between positions, so that these do not fall on the same lines of a cache.
	winogradGap = 16
)

// winogradSizes is how a convolution or a weight gradient is cut into blocks and panels.
type winogradSizes struct {
	channels, filters int
	tiles             int // of a block
	panel, panelCount int // filters of a panel, and panels
	kept              int // panels in the workspace
}

// winogradSizesOf returns the sizes of a convolution with a number of tiles in all.
func winogradSizesOf(l simd.Level, channels, filters, tiles int) winogradSizes {
	s := winogradBlocks(l, channels, filters, tiles, winogradTiles)
	if 4*s.panelCount*s.panelElems() > winogradFilterBytes {
		s = winogradBlocks(l, channels, filters, tiles, 2*winogradTiles)
		s.kept = 1
	}
	return s
}

// winogradBlocks cuts tiles into equal blocks of about as many as said, and keeps all panels if there is
// more than one block.
func winogradBlocks(l simd.Level, channels, filters, tiles, together int) winogradSizes {
	s := winogradSizes{channels: channels, filters: filters, panel: winogradPanel(l), kept: 1}
	s.panelCount = dag.CeilDiv(filters, s.panel)
	blocks := dag.CeilDiv(tiles, max(together, winogradDataBytes/(4*simd.WinogradPositions*channels)))
	if s.tiles = dag.CeilDiv(tiles, blocks); blocks > 1 {
		s.kept = s.panelCount
	}
	return s
}

// distance is the elements from one position to the next, with some rows each. inDomain is the elements of all, without a gap
// after the last.
func distance(rows, row int) int { return rows*row + winogradGap }
func inDomain(rows, row int) int { return simd.WinogradPositions*distance(rows, row) - winogradGap }

// panelElems is the elements of a panel of filters in the domain, with a row per channel.
func (s *winogradSizes) panelElems() int { return inDomain(s.channels, s.panel) }

// winogradPanel is two vectors of a level, which the fastest products of many rows take.
func winogradPanel(l simd.Level) int { return max(16, 2*vectorBytes(l)/4) }

// WinogradTaken fails for convolutions other than by 3×3 filters at stride 1. window is the operand with the
// filters and the dimension of their rows.
func WinogradTaken(window, dim int) func(*calls.Spec) error {
	return func(s *calls.Spec) error {
		w := s.Operands[window].Shape
		if w[dim] != 3 || w[dim+1] != 3 {
			return fmt.Errorf("%s: filters of %d×%d, and Winograd's are 3×3", s.Op, w[dim], w[dim+1])
		}
		for _, name := range []string{"stride", "column_stride", "dilation", "column_dilation", "groups"} {
			if v := calls.Sliding.Value(s, name); v != 1 {
				return fmt.Errorf("%s: %s is %g, and Winograd's is 1", s.Op, name, v)
			}
		}
		return nil
	}
}

// WinogradDoc describes the variants by Winograd's algorithm in tables of variants.
const WinogradDoc = "36 products in the domain of Winograd's F(4×4,3×3) for each tile of 4×4 results"

// WinogradVariants are the variants "winograd-…" of an operation, one per level with vectors, in float32. Without
// vectors the transforms take as long as they save.
func WinogradVariants(doc string, run func(simd.Level, *calls.Call), takes func(*calls.Spec) error, workspace func(simd.Level, *calls.Spec) int64) []calls.Variant {
	var all []calls.Variant
	for _, l := range simd.Levels()[1:] {
		all = append(all, calls.Variant{
			Name: "winograd-" + l.String(), Doc: doc, Level: l, Transforms: true, Types: []dag.DType{dag.Float32},
			Run32: func(c *calls.Call) { run(l, c) },
			Takes: takes, WorkspaceBytes: func(s *calls.Spec) int64 { return workspace(l, s) },
		})
	}
	return all
}

// tiledMap is a map as tiles of side×side pixels, data or gradients of results. Every fourth row and column
// begins one, the first at from.
type tiledMap struct {
	calls.Map4[float32]
	side         int
	from         [2]int
	down, across int
	norm         norm[float32]
}

func tiledMapOf(m calls.Map4[float32], side int, from [2]int, rows, columns int) tiledMap {
	return tiledMap{Map4: m, side: side, from: from, down: dag.CeilDiv(rows, simd.WinogradSide), across: dag.CeilDiv(columns, simd.WinogradSide)}
}

func (t *tiledMap) count() int { return t.Extent[0] * t.down * t.across }

// eachRun visits tiles first to first+count in runs within a row of tiles. Tile number column of row
// row of sample n is number at of those.
func (t *tiledMap) eachRun(first, count int, visit func(at, n, row, column, tiles int)) {
	for at := 0; at < count; {
		row, column := (first+at)/t.across, (first+at)%t.across
		tiles := min(t.across-column, count-at)
		visit(at, row/t.down, row%t.down, column, tiles)
		at += tiles
	}
}

// pixel is the position of the first pixel of a tile, in the map or outside.
func (t *tiledMap) pixel(row, column int) (u, v int) {
	return t.from[0] + row*simd.WinogradSide, t.from[1] + column*simd.WinogradSide
}

// inside is how many tiles of a row lie in the map, of a number of tiles from a column on. Zero means that the first does not.
func (t *tiledMap) inside(row, column, tiles int) int {
	u, v := t.pixel(row, column)
	if u < 0 || v < 0 || u+t.side > t.Extent[1] || v+t.side > t.Extent[2] {
		return 0
	}
	return min(tiles, (t.Extent[2]-v-t.side)/simd.WinogradSide+1)
}

// toDomain takes tiles first to first+count to the domain, where positions are as far apart as said. patch
// is room for a tile.
func (t *tiledMap) toDomain(l simd.Level, first, count int, domain []float32, position int, patch []float32) {
	w := simd.Winograd{Channels: t.Extent[3], DomainTile: t.Extent[3], Position: position}
	t.eachRun(first, count, func(at, n, row, column, tiles int) {
		for done := 0; done < tiles; {
			w.Domain = domain[(at+done)*w.DomainTile:]
			w.Tiles = t.inside(row, column+done, tiles-done)
			if t.norm.room != nil {
				w.Tiles = min(tiles-done, t.roomForTiles())
				width := t.normalise(l, n, row, column+done, w.Tiles)
				w.X, w.XTile, w.XRow, w.XPixel = t.norm.room, simd.WinogradSide*w.Channels, width*w.Channels, w.Channels
			} else if w.Tiles > 0 {
				u, v := t.pixel(row, column+done)
				w.X, w.XTile, w.XRow, w.XPixel = t.Elems[t.At(n, u, v, 0):], simd.WinogradSide*t.Stride[2], t.Stride[1], t.Stride[2]
			} else {
				t.copyTile(n, row, column+done, patch)
				w.Tiles = 1
				w.X, w.XTile, w.XRow, w.XPixel = patch, 0, t.side*w.Channels, w.Channels
			}
			if t.side == simd.WinogradData {
				w.Data(l)
			} else {
				w.Gradient(l)
			}
			done += w.Tiles
		}
	})
}

// normedTiles is the most tiles of a row that are normalised at a time, so that their pixels stay in the first caches.
const normedTiles = 8

// WinogradPatch is the elements of data that are normalised at a time for an image, with the pixels under windows beyond it.
func WinogradPatch(x []int) int {
	tiles := min(normedTiles, dag.CeilDiv(x[2]+simd.WinogradData-simd.WinogradSide, simd.WinogradSide))
	return simd.WinogradData * (simd.WinogradSide*tiles + simd.WinogradData - simd.WinogradSide) * x[3]
}

// roomForTiles is how many tiles of a row are normalised at a time. Wide padding has more of them than room was made for.
func (t *tiledMap) roomForTiles() int {
	pixels := len(t.norm.room) / (t.side * t.Extent[3])
	return min(normedTiles, (pixels-t.side)/simd.WinogradSide+1)
}

// normalise puts the normalised data of some tiles of a row into their room, with zeros for pixels outside the map. It
// returns the pixels of a row there.
func (t *tiledMap) normalise(l simd.Level, n, row, column, tiles int) int {
	channels, width := t.Extent[3], simd.WinogradSide*(tiles-1)+t.side
	u, v := t.pixel(row, column)
	left := max(0, -v)
	right := max(left, min(width, t.Extent[2]-v))
	for i := range t.side {
		line := t.norm.room[i*width*channels:][:width*channels]
		if u+i < 0 || u+i >= t.Extent[1] || left == right {
			clear(line)
			continue
		}
		clear(line[:left*channels])
		t.norm.pixels(l, line[left*channels:], t.Elems[t.At(n, u+i, v+left, 0):], t.Stride[2], right-left, channels)
		clear(line[right*channels:])
	}
	return width
}

// copyTile copies a tile, with zeros for pixels outside the map.
func (t *tiledMap) copyTile(n, row, column int, patch []float32) {
	channels := t.Extent[3]
	clear(patch[:t.side*t.side*channels])
	u, v := t.pixel(row, column)
	left, right := max(0, -v), min(t.side, t.Extent[2]-v)
	for i := max(0, -u); i < min(t.side, t.Extent[1]-u) && left < right; i++ {
		to, from := patch[i*t.side*channels:], t.Elems[t.At(n, u+i, v+left, 0):]
		if t.Stride[2] == channels {
			copy(to[left*channels:right*channels], from)
			continue
		}
		for j := left; j < right; j++ {
			copy(to[j*channels:][:channels], from[(j-left)*t.Stride[2]:])
		}
	}
}

// winograd is a convolution through the domain.
type winograd struct {
	convNHWC[float32]
	level simd.Level
	winogradSizes
	source          tiledMap
	ready           int // panels of filters that are in the domain, if all are kept there
	patch           []float32
	data, sums, inU []float32 // in the domain: the block's data and results of a panel; filters
}

// workspace is the elements of a convolution's workspace.
func (s *winogradSizes) workspace() int {
	return simd.WinogradPositions*s.channels + inDomain(s.tiles, s.channels) + inDomain(s.tiles, s.panel) + s.kept*s.panelElems()
}

// prepare sets the sizes of a convolution, and takes the workspace.
func (w *winograd) prepare(l simd.Level, s winogradSizes, work []byte) {
	w.level, w.winogradSizes = l, s
	w.patch, work = calls.Scratch[float32](work, simd.WinogradPositions*s.channels)
	w.data, work = calls.Scratch[float32](work, inDomain(s.tiles, s.channels))
	w.sums, work = calls.Scratch[float32](work, inDomain(s.tiles, s.panel))
	w.inU, _ = calls.Scratch[float32](work, s.kept*s.panelElems())
}

// tile cuts the source into the tiles of the result.
func (w *winograd) tile() {
	w.source = tiledMapOf(w.src, simd.WinogradData, [2]int{w.rows.From, w.columns.From}, w.dst.Extent[1], w.dst.Extent[2])
	w.source.Extent[0], w.source.norm = w.dst.Extent[0], w.norm
}

// all computes the whole map.
func (w *winograd) all() {
	w.tile()
	for first := 0; first < w.source.count(); first += w.tiles {
		count := min(w.tiles, w.source.count()-first)
		w.block(first, count, func(f, n int) { w.results(first, count, f, n, w.dst.Elems[f:]) })
	}
}

// block computes some tiles in the domain, and hands over n filters of their results from f on.
func (w *winograd) block(first, count int, results func(f, n int)) {
	w.source.toDomain(w.level, first, count, w.data, distance(w.tiles, w.channels), w.patch)
	for panel := range w.panelCount {
		f := panel * w.panel
		n := min(w.panel, w.winogradSizes.filters-f)
		u := w.filtersOf(panel, f, n)
		p := simd.Product[float32]{M: count, N: n, K: w.channels, Batch: 1, ARow: w.channels, AStep: 1, BRow: w.panel, CRow: w.panel}
		for i := range simd.WinogradPositions {
			p.A, p.B, p.C = w.data[i*distance(w.tiles, w.channels):], u[i*distance(w.channels, w.panel):], w.sums[i*distance(w.tiles, w.panel):]
			p.Run(w.level)
		}
		results(f, n)
	}
}

// filtersOf is a panel of filters in the domain.
func (w *winograd) filtersOf(panel, f, n int) []float32 {
	slot := panel % w.kept
	u := w.inU[slot*w.panelElems():][:w.panelElems()]
	if w.kept == w.panelCount && panel < w.ready {
		return u
	}
	t := simd.Winograd{
		Tiles: w.channels, Channels: n,
		X: w.w.Elems[f:], XTile: w.w.Stride[2], XRow: w.w.Stride[0], XPixel: w.w.Stride[1],
		Domain: u, DomainTile: w.panel, Position: distance(w.channels, w.panel),
	}
	t.Filter(w.level)
	w.ready = max(w.ready, panel+1)
	return u
}

// results takes n filters of the results from f on out of the domain, to a map as dst is.
func (w *winograd) results(first, count, f, n int, dst []float32) {
	to := simd.Winograd{
		Channels: n, XTile: simd.WinogradSide * w.dst.Stride[2], XRow: w.dst.Stride[1], XPixel: w.dst.Stride[2],
		DomainTile: w.panel, Position: distance(w.tiles, w.panel), Accumulate: w.add, ReLU: w.relu,
		WhereTile: simd.WinogradSide * w.where.Stride[2], WhereRow: w.where.Stride[1], WherePixel: w.where.Stride[2],
	}
	if w.bias != nil {
		to.Bias = w.bias[f:]
	}
	w.source.eachRun(first, count, func(at, sample, row, column, tiles int) {
		u := row * simd.WinogradSide
		to.Rows = min(simd.WinogradSide, w.dst.Extent[1]-u)
		for done := 0; done < tiles; done += to.Tiles {
			v := (column + done) * simd.WinogradSide
			left := w.dst.Extent[2] - v
			to.Columns, to.Tiles = min(simd.WinogradSide, left), max(1, min(tiles-done, left/simd.WinogradSide))
			to.Domain = w.sums[(at+done)*to.DomainTile:]
			to.X = dst[w.dst.At(sample, u, v, 0):]
			if w.where.Elems != nil {
				to.Where = w.where.Elems[w.where.At(sample, u, v, f):]
			}
			to.Result(w.level)
		}
	})
}

// Conv2dNHWCWinograd is conv2d.nhwc by Winograd's F(4×4,3×3) (Lavin and Gray, arXiv:1509.09308), with the operands of
// Conv2dNHWCAt in float32.
func Conv2dNHWCWinograd(l simd.Level, call *calls.Call) {
	w := winograd{convNHWC: convolutionOf[float32](call)}
	w.prepare(l, winogradSizesOf(l, w.src.Extent[3], w.dst.Extent[3], tilesOf(w.dst.Extent[:])), call.Work)
	w.all()
}

// tilesOf is the tiles of a map of results.
func tilesOf(shape []int) int {
	return shape[0] * dag.CeilDiv(shape[1], simd.WinogradSide) * dag.CeilDiv(shape[2], simd.WinogradSide)
}

// WinogradWorkspace is for a convolution with the source and the result in operands src and dst.
func WinogradWorkspace(src, dst int) func(simd.Level, *calls.Spec) int64 {
	return func(l simd.Level, s *calls.Spec) int64 {
		from, to := s.Operands[src].Shape, s.Operands[dst].Shape
		sizes := winogradSizesOf(l, from[3], to[3], tilesOf(to))
		return 4 * int64(sizes.workspace())
	}
}

// Conv2dNHWCDxWinograd is the convolution of dy with the turned filters.
func Conv2dNHWCDxWinograd(l simd.Level, call *calls.Call) {
	dx, dy, wt := calls.Map4Of[float32](&call.Args[0]), calls.Map4Of[float32](&call.Args[1]), calls.Map4Of[float32](&call.Args[2])
	g := calls.WindowingOf(call.Params)
	w := winograd{convNHWC: convNHWC[float32]{dst: dx, src: dy, w: wt, add: call.Args[0].Accumulates()}}
	w.rows, _ = calls.BackwardLattice(dx.Extent[1], dy.Extent[1], 3, g.Rows, 0)
	w.columns, _ = calls.BackwardLattice(dx.Extent[2], dy.Extent[2], 3, g.Columns, 0)
	if len(call.Args) > 3 {
		w.where = calls.Map4Of[float32](&call.Args[3])
	}
	w.prepare(l, winogradSizesOf(l, dy.Extent[3], dx.Extent[3], tilesOf(dx.Extent[:])), call.Work)
	w.all()
}
