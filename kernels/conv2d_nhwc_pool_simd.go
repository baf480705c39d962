package kernels

import (
	"dahl/dag"
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
type poolBlock[T Float] struct {
	samples, windows int
	rows             map4[T] // of the convolution, without columns outside all windows
	rest             []byte  // for filters
}

// poolExtents returns the samples, the rows of windows and the extent of a block, from
// the shape of the pooled map.
func poolExtents(pooled []int, size, step, elementBytes int) (samples, windows int, extent [4]int) {
	width := covered(pooled[2], size, step)
	rowBytes, limit := width*pooled[3]*elementBytes, poolRowsBytes
	if step < size {
		limit = overlapRowsBytes
	}
	windows = max(1, min(pooled[1], (limit/rowBytes-size)/step+1))
	rows := covered(windows, size, step)
	samples = 1
	if windows == pooled[1] {
		samples = max(1, min(pooled[0], limit/(rows*rowBytes)))
	}
	return samples, windows, [4]int{samples, rows, width, pooled[3]}
}

func conv2dNHWCPoolWorkspace(s *Spec) int64 { return poolWorkspaceOf(s, 0, s.Operands[3].Shape) }

// poolWorkspaceOf is the bytes of the block and of the filters of pixels that share vectors, or of a panel. y is the operand with
// the pooled map, and w the extents of the filters, rows and columns first.
func poolWorkspaceOf(s *Spec, y int, w []int) int64 {
	bytes, pooled := s.Type.SizeBytes(), [4]int(s.Operands[y].Shape)
	most, pixels := 0, 0
	for _, filters := range []int{pooled[3], panelWidth(int(bytes), w[0]*w[1]*w[2], w[3])} {
		pooled[3] = filters
		_, _, e := poolExtents(pooled[:], int(s.Param("size")), int(s.Param("step")), int(bytes))
		most, pixels = max(most, e[0]*e[1]*e[2]*e[3]), e[2]
	}
	return int64(most)*bytes + convWorkspaceOf(bytes, pixels, w, columnStride(s))
}

func poolBlockOf[T Float](work []byte, pooled *map4[T], size, step int) (b poolBlock[T]) {
	var extent [4]int
	b.samples, b.windows, extent = poolExtents(pooled.extent[:], size, step, sizeOf[T]())
	b.rows.elems, b.rest = scratch[T](work, extent[0]*extent[1]*extent[2]*extent[3])
	b.rows = packed4(b.rows.elems, extent)
	return b
}

func conv2dNHWCPoolAt[T Float](l simd.Level, call *Call) {
	size, step := fusedPooling(call.Params)
	p := convPool[T]{
		maxima: maxima[T]{map4Of[T](&call.Args[0]), map4Of[uint8](&call.Args[1]), size, step},
		x:      map4Of[T](&call.Args[2]), w: map4Of[T](&call.Args[3]),
	}
	if len(call.Args) > 4 {
		p.bias = Data[T](&call.Args[4])
	}
	g := windowingOf(call.Params)
	filters, width := p.w.extent[3], p.panels(&p.w, g.groups)
	for f := 0; f < filters && width < filters; f += width {
		r := dag.Range{Lo: f, Hi: min(f+width, filters)}
		some := p
		some.maxima, some.w = p.filters(r), p.w.part(3, r)
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
type convPool[T Float] struct {
	maxima[T]
	x, w map4[T]
	bias []T
}

// run computes all windows of all samples, with the filters where they are or copied.
func (m *convPool[T]) run(l simd.Level, g windowing, work []byte, copied bool) {
	y, index, x, size, step := &m.dy, &m.index, &m.x, m.size, m.step
	block := poolBlockOf(work, y, size, step)
	if copied {
		rows, columns := allTaps(&m.w)
		own, _ := packed(block.rest, &m.w, rows, columns)
		copyTaps(&own, &m.w, rows, columns)
		m.w = own
	}
	c := convNHWC[T]{
		dst: block.rows, src: *x, w: m.w, bias: m.bias, groups: g.groups, grouped: 3,
		rows:    forwardLattice(covered(y.extent[1], size, step), x.extent[1], m.w.extent[0], g.rows),
		columns: forwardLattice(block.rows.extent[2], x.extent[2], m.w.extent[1], g.columns),
	}
	parts := [2]convNHWC[T]{c, {}}
	if !copied {
		parts = c.split(l, block.rest)
	}
	p := simd.Pooling[T]{
		Windows: y.extent[2], Channels: y.extent[3], Size: size, Step: step, ReLU: true,
		YRow: y.stride[1], YPixel: y.stride[2], IndexRow: index.stride[1], IndexPixel: index.stride[2],
		XRow: block.rows.stride[1], XPixel: block.rows.stride[2],
	}
	for n := 0; n < y.extent[0]; n += block.samples {
		samples := min(block.samples, y.extent[0]-n)
		for u := 0; u < y.extent[1]; u += block.windows {
			p.Rows = min(block.windows, y.extent[1]-u)
			for i := range parts {
				parts[i].src.elems = x.elems[n*x.stride[0]:]
				parts[i].dst.extent[0] = samples
				parts[i].rows.first = -u * step // the block begins there
				parts[i].run(l, u*step, u*step+covered(p.Rows, size, step))
			}
			for i := range samples {
				p.X = block.rows.elems[i*block.rows.stride[0]:]
				p.Y, p.Index = y.elems[y.at(n+i, u, 0, 0):], index.elems[index.at(n+i, u, 0, 0):]
				p.Max(l)
			}
		}
	}
}

// convPoolDw adds the gradient of a convolution of x for its filters to dw. It also sets the
// gradient for its bias in db, or adds it, if db is not nil.
type convPoolDw[T Float] struct {
	maxima[T]
	dw, x map4[T]
	db    []T
	add   bool
}

// all adds the gradients of all filters, or of a panel after the other.
func (g *convPoolDw[T]) all(l simd.Level, over windowing, work []byte) {
	filters, width := g.dw.extent[3], g.panels(&g.dw, over.groups)
	if width == filters {
		g.run(l, over, work, false)
	}
	for f := 0; f < filters && width < filters; f += width {
		r := dag.Range{Lo: f, Hi: min(f+width, filters)}
		some := *g
		some.maxima, some.dw = g.filters(r), g.dw.part(3, r)
		if g.db != nil {
			some.db = g.db[r.Lo:r.Hi]
		}
		some.run(l, over, work, true)
	}
}

// run adds the gradients where they are, or from a copy.
func (g *convPoolDw[T]) run(l simd.Level, over windowing, work []byte, copied bool) {
	dy, index, x, size, step := &g.dy, &g.index, &g.x, g.size, g.step
	block := poolBlockOf(work, dy, size, step)
	rows := &block.rows
	dw := g.dw
	if copied {
		rows, columns := allTaps(&dw)
		dw, _ = packed(block.rest, &dw, rows, columns)
		clear(dw.elems)
	}
	c := convDwOf(dw, *rows, *x, covered(dy.extent[1], size, step), over)
	p := simd.Pooling[T]{
		Windows: dy.extent[2], Channels: dy.extent[3], Size: size, Step: step, Accumulate: step != size,
		YRow: dy.stride[1], YPixel: dy.stride[2], IndexRow: index.stride[1], IndexPixel: index.stride[2],
		XRow: rows.stride[1], XPixel: rows.stride[2],
	}
	parts, shared := [2]convDwNHWC[T]{c, {}}, 1
	if !copied {
		parts, shared = c.split(l, block.rest)
	}
	add := g.add
	for n := 0; n < dy.extent[0]; n += block.samples {
		samples := min(block.samples, dy.extent[0]-n)
		for u := 0; u < dy.extent[1]; u += block.windows {
			p.Rows = min(block.windows, dy.extent[1]-u)
			if p.Accumulate {
				clear(rows.elems)
			}
			for i := range samples {
				p.X = rows.elems[i*rows.stride[0]:]
				p.Y, p.Index = dy.elems[dy.at(n+i, u, 0, 0):], index.elems[index.at(n+i, u, 0, 0):]
				p.Spread(l)
			}
			height := covered(p.Rows, size, step)
			for i := range parts {
				parts[i].x.elems = x.elems[n*x.stride[0]:]
				parts[i].dy.extent[0] = samples
				parts[i].rows.first = -u * step
				parts[i].run(l, u*step, u*step+height)
			}
			if g.db != nil {
				pixels := samples * height * rows.extent[2] // several samples have all their rows
				simd.ColumnSums(l, g.db, rows.elems, pixels, rows.extent[3], add)
				add = true
			}
		}
	}
	c.fold(&parts[0], shared)
	if copied {
		eachShared(&g.dw, &dw, 1, 1, func(one, many []T) { simd.Add(l, one, many) })
	}
}
