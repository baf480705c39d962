package cpu

import (
	"dahl/dag"
	"dahl/kernels/calls"
	"dahl/kernels/simd"
)

// The vector variants pool a few rows of the convolution at a time in the workspace. They scatter
// a few rows of the pooled gradient there before they multiply them with the image. So these rows
// stay in the nearest caches.

const (
	// poolRowsBytes is the most that the rows in the workspace take, if they are more than one
	// row of windows.
	poolRowsBytes = 48 << 10
	// overlapRowsBytes is the same for overlapping windows, since rows between two blocks are
	// computed twice.
	overlapRowsBytes = 256 << 10
)

// poolBlock is the part that is pooled at a time: rows of windows of one sample, or whole samples
// if several fit.
type poolBlock[T calls.Float] struct {
	samples, windows int
	rows             calls.Map4[T] // of the convolution, without columns outside all windows
	rest             []byte        // for filters
}

// poolExtents returns the samples, the rows of windows and the extent of a block, from
// the shape of the pooled map.
func poolExtents(pooled []int, size, step, elementBytes int) (samples, windows int, extent [4]int) {
	width := calls.Covered(pooled[2], size, step)
	rowBytes, limit := width*pooled[3]*elementBytes, poolRowsBytes
	if step < size {
		limit = overlapRowsBytes
	}
	windows = max(1, min(pooled[1], (limit/rowBytes-size)/step+1))
	rows := calls.Covered(windows, size, step)
	samples = 1
	if windows == pooled[1] {
		samples = max(1, min(pooled[0], limit/(rows*rowBytes)))
	}
	return samples, windows, [4]int{samples, rows, width, pooled[3]}
}

// Conv2dNHWCPoolWorkspace is the bytes of the rows of the convolution that are pooled at a time, and of copied filters.
func Conv2dNHWCPoolWorkspace(s *calls.Spec) int64 { return poolWorkspaceOf(s, 0, s.Operands[3].Shape) }

// poolWorkspaceOf is the bytes of the block and of the filters of pixels that share vectors, or of a panel. y is the operand with
// the pooled map, and w the extents of the filters, rows and columns first.
func poolWorkspaceOf(s *calls.Spec, y int, w []int) int64 {
	bytes, pooled := s.Type.SizeBytes(), [4]int(s.Operands[y].Shape)
	most, pixels := 0, 0
	for _, filters := range []int{pooled[3], panelWidth(int(bytes), w[0]*w[1]*w[2], w[3])} {
		pooled[3] = filters
		_, _, e := poolExtents(pooled[:], int(s.Param("size")), int(s.Param("step")), int(bytes))
		most, pixels = max(most, e[0]*e[1]*e[2]*e[3]), e[2]
	}
	return int64(most)*bytes + convWorkspaceOf(bytes, pixels, w, columnStride(s))
}

func poolBlockOf[T calls.Float](work []byte, pooled *calls.Map4[T], size, step int) (b poolBlock[T]) {
	var extent [4]int
	b.samples, b.windows, extent = poolExtents(pooled.Extent[:], size, step, calls.SizeOf[T]())
	b.rows.Elems, b.rest = calls.Scratch[T](work, extent[0]*extent[1]*extent[2]*extent[3])
	b.rows = calls.Packed4(b.rows.Elems, extent)
	return b
}

// Conv2dNHWCPoolAt is conv2d.nhwc.pool: the positive part of the maximum of x ⋆ w + b in each window of the pooling. Operands
// are y of n×ph×pw×f, index with the position of each maximum, x of n×h×w×c, w of i×j×c×f, and an optional b of f.
func Conv2dNHWCPoolAt[T calls.Float](l simd.Level, call *calls.Call) {
	size, step := calls.FusedPooling(call.Params)
	p := convPool[T]{
		maxima: maxima[T]{calls.Map4Of[T](&call.Args[0]), calls.Map4Of[uint8](&call.Args[1]), size, step},
		x:      calls.Map4Of[T](&call.Args[2]), w: calls.Map4Of[T](&call.Args[3]),
	}
	if len(call.Args) > 4 {
		p.bias = calls.Data[T](&call.Args[4])
	}
	g := calls.WindowingOf(call.Params)
	filters, width := p.w.Extent[3], p.panels(&p.w, g.Groups)
	for f := 0; f < filters && width < filters; f += width {
		r := dag.Range{Lo: f, Hi: min(f+width, filters)}
		some := p
		some.maxima, some.w = p.filters(r), p.w.Part(3, r)
		if p.bias != nil {
			some.bias = p.bias[r.Lo:r.Hi]
		}
		some.run(l, g, call.Work, true)
	}
	if width == filters {
		p.run(l, g, call.Work, false)
	}
}

// convPool is a convolution of x by filters w with pooling, whose maxima it sets.
type convPool[T calls.Float] struct {
	maxima[T]
	x, w calls.Map4[T]
	bias []T
}

// run computes all windows of all samples, with the filters where they are or copied.
func (m *convPool[T]) run(l simd.Level, g calls.Windowing, work []byte, copied bool) {
	y, index, x, size, step := &m.dy, &m.index, &m.x, m.size, m.step
	block := poolBlockOf(work, y, size, step)
	if copied {
		rows, columns := allTaps(&m.w)
		own, _ := packed(block.rest, &m.w, rows, columns)
		copyTaps(&own, &m.w, rows, columns)
		m.w = own
	}
	c := convNHWC[T]{
		dst: block.rows, src: *x, w: m.w, bias: m.bias, groups: g.Groups, grouped: 3,
		rows:    calls.ForwardLattice(calls.Covered(y.Extent[1], size, step), x.Extent[1], m.w.Extent[0], g.Rows),
		columns: calls.ForwardLattice(block.rows.Extent[2], x.Extent[2], m.w.Extent[1], g.Columns),
	}
	parts := [2]convNHWC[T]{c, {}}
	if !copied {
		parts = c.split(l, block.rest)
	}
	p := simd.Pooling[T]{
		Windows: y.Extent[2], Channels: y.Extent[3], Size: size, Step: step, ReLU: true,
		YRow: y.Stride[1], YPixel: y.Stride[2], IndexRow: index.Stride[1], IndexPixel: index.Stride[2],
		XRow: block.rows.Stride[1], XPixel: block.rows.Stride[2],
	}
	for n := 0; n < y.Extent[0]; n += block.samples {
		samples := min(block.samples, y.Extent[0]-n)
		for u := 0; u < y.Extent[1]; u += block.windows {
			p.Rows = min(block.windows, y.Extent[1]-u)
			for i := range parts {
				parts[i].src.Elems = x.Elems[n*x.Stride[0]:]
				parts[i].dst.Extent[0] = samples
				parts[i].rows.First = -u * step // the block begins there
				parts[i].run(l, u*step, u*step+calls.Covered(p.Rows, size, step))
			}
			for i := range samples {
				p.X = block.rows.Elems[i*block.rows.Stride[0]:]
				p.Y, p.Index = y.Elems[y.At(n+i, u, 0, 0):], index.Elems[index.At(n+i, u, 0, 0):]
				p.Max(l)
			}
		}
	}
}

// convPoolDw adds the gradient of a convolution of x for its filters to dw. It also sets the
// gradient for its bias in db, or adds it, if db is not nil.
type convPoolDw[T calls.Float] struct {
	maxima[T]
	dw, x calls.Map4[T]
	db    []T
	add   bool
}

// all adds the gradients of all filters, or of a panel after the other.
func (g *convPoolDw[T]) all(l simd.Level, over calls.Windowing, work []byte) {
	filters, width := g.dw.Extent[3], g.panels(&g.dw, over.Groups)
	if width == filters {
		g.run(l, over, work, false)
	}
	for f := 0; f < filters && width < filters; f += width {
		r := dag.Range{Lo: f, Hi: min(f+width, filters)}
		some := *g
		some.maxima, some.dw = g.filters(r), g.dw.Part(3, r)
		if g.db != nil {
			some.db = g.db[r.Lo:r.Hi]
		}
		some.run(l, over, work, true)
	}
}

// run adds the gradients where they are, or from a copy.
func (g *convPoolDw[T]) run(l simd.Level, over calls.Windowing, work []byte, copied bool) {
	dy, index, x, size, step := &g.dy, &g.index, &g.x, g.size, g.step
	block := poolBlockOf(work, dy, size, step)
	rows := &block.rows
	dw := g.dw
	if copied {
		rows, columns := allTaps(&dw)
		dw, _ = packed(block.rest, &dw, rows, columns)
		clear(dw.Elems)
	}
	c := convDwOf(dw, *rows, *x, calls.Covered(dy.Extent[1], size, step), over)
	p := simd.Pooling[T]{
		Windows: dy.Extent[2], Channels: dy.Extent[3], Size: size, Step: step, Accumulate: step != size,
		YRow: dy.Stride[1], YPixel: dy.Stride[2], IndexRow: index.Stride[1], IndexPixel: index.Stride[2],
		XRow: rows.Stride[1], XPixel: rows.Stride[2],
	}
	parts, shared := [2]convDwNHWC[T]{c, {}}, 1
	if !copied {
		parts, shared = c.split(l, block.rest)
	}
	add := g.add
	for n := 0; n < dy.Extent[0]; n += block.samples {
		samples := min(block.samples, dy.Extent[0]-n)
		for u := 0; u < dy.Extent[1]; u += block.windows {
			p.Rows = min(block.windows, dy.Extent[1]-u)
			if p.Accumulate {
				clear(rows.Elems)
			}
			for i := range samples {
				p.X = rows.Elems[i*rows.Stride[0]:]
				p.Y, p.Index = dy.Elems[dy.At(n+i, u, 0, 0):], index.Elems[index.At(n+i, u, 0, 0):]
				p.Spread(l)
			}
			height := calls.Covered(p.Rows, size, step)
			for i := range parts {
				parts[i].x.Elems = x.Elems[n*x.Stride[0]:]
				parts[i].dy.Extent[0] = samples
				parts[i].rows.First = -u * step
				parts[i].run(l, u*step, u*step+height)
			}
			if g.db != nil {
				pixels := samples * height * rows.Extent[2] // several samples have all their rows
				simd.ColumnSums(l, g.db, rows.Elems, pixels, rows.Extent[3], add)
				add = true
			}
		}
	}
	c.fold(&parts[0], shared)
	if copied {
		eachShared(&g.dw, &dw, 1, 1, func(one, many []T) { simd.Add(l, one, many) })
	}
}

// maxima is a gradient at the maxima of its windows. size and step are the geometry of the
// windows.
type maxima[T calls.Float] struct {
	dy         calls.Map4[T]
	index      calls.Map4[uint8]
	size, step int
}

// maximaOf takes the maxima from operands dy and index of a call.
func maximaOf[T calls.Float](call *calls.Call, dy, index int) maxima[T] {
	size, step := calls.FusedPooling(call.Params)
	return maxima[T]{calls.Map4Of[T](&call.Args[dy]), calls.Map4Of[uint8](&call.Args[index]), size, step}
}

// filters is the maxima of filters r.
func (m *maxima[T]) filters(r dag.Range) maxima[T] {
	return maxima[T]{m.dy.Part(3, r), m.index.Part(3, r), m.size, m.step}
}

// panels is how many filters of w are taken at a time.
func (m *maxima[T]) panels(w *calls.Map4[T], groups int) int {
	e := &m.dy.Extent
	return panels(w, groups, e[0]*calls.Covered(e[1], m.size, m.step)*calls.Covered(e[2], m.size, m.step))
}
