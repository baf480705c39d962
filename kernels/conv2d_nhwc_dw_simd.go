package kernels

import (
	"dahl/dag"
	"dahl/kernels/simd"
)

// The weight gradient is a product with the transposed image. Its rows are the columns of the
// window and the channels, which follow each other under a pixel of dy. Its groups are the rows
// of the window, and its sums run over pixels. Pixels whose windows miss the same rows and
// columns are summed together, as in the other convolutions.

// convDwNHWC sets dw to the gradient of a convolution of x with respect to its filters, or adds it, and
// adds to db, if not nil, that with respect to its bias.
type convDwNHWC[T Float] struct {
	dw, dy, x     map4[T]
	db            []T
	add           bool
	rows, columns lattice
	groups        int
	next          [2][]T // memory to fetch meanwhile
	norm          norm[T]
}

// convDwOf is the gradient of a convolution with so many rows of pixels, without the gradient of
// the bias.
func convDwOf[T Float](dw, dy, x map4[T], rows int, g windowing) convDwNHWC[T] {
	return convDwNHWC[T]{
		dw: dw, dy: dy, x: x, groups: g.groups,
		rows:    forwardLattice(rows, x.extent[1], dw.extent[0], g.rows),
		columns: forwardLattice(dy.extent[2], x.extent[2], dw.extent[1], g.columns),
	}
}

// all adds the gradient over the whole of dy.
func (c *convDwNHWC[T]) all(l simd.Level, work []byte) {
	if c.norm.room == nil {
		c.asItIs(l, work)
		return
	}
	step := c.norm.samples(&c.x)
	for n := 0; n < c.dy.extent[0]; n += step {
		part, some := *c, min(step, c.dy.extent[0]-n)
		part.dy, part.x, part.add = c.dy.samples(n, some), c.norm.image(l, c.x.samples(n, some)), c.add || n > 0
		part.asItIs(l, work)
	}
}

// asItIs adds the gradient for the data as they lie in memory. Of many filters some are computed at a time, in the
// workspace: a panel, as in other convolutions.
func (c *convDwNHWC[T]) asItIs(l simd.Level, work []byte) {
	filters, width := c.dw.extent[3], panels(&c.dw, c.groups, c.dy.extent[0]*c.rows.pixels*c.columns.pixels)
	if width == filters {
		if !c.add {
			c.dw.clear()
		}
		parts, g := c.split(l, work)
		c.chunks(l, parts[:])
		c.fold(&parts[0], g)
		return
	}
	rows, columns := allTaps(&c.dw)
	for f := 0; f < filters; f += width {
		r := dag.Range{Lo: f, Hi: min(f+width, filters)}
		p, some := [1]convDwNHWC[T]{*c}, c.dw.part(3, r)
		p[0].dw, _ = packed(work, &some, rows, columns)
		clear(p[0].dw.elems)
		p[0].dy = c.dy.part(3, r)
		if c.db != nil {
			p[0].db = c.db[r.Lo:r.Hi]
		}
		p[0].chunks(l, p[:])
		eachShared(&some, &p[0].dw, 1, 1, func(one, many []T) {
			if c.add {
				simd.Add(l, one, many)
			} else {
				copy(one, many)
			}
		})
	}
}

// chunk is some samples of dy from n, or rows u to end of one.
type chunk struct{ n, samples, u, end int }

// chunks adds the gradients of parts, some samples or rows of one at a time, so that what is read of x
// and dy stays in the second-level cache. What the next ones read is fetched meanwhile.
func (c *convDwNHWC[T]) chunks(l simd.Level, parts []convDwNHWC[T]) {
	rows := c.rows.pixels
	elems := max(cachedBytes/sizeOf[T](), c.dw.extent[0]*c.dw.extent[1]*c.dw.extent[2]*c.dw.extent[3])
	perRow := max(1, c.dy.extent[2]*c.dy.extent[3]+c.rows.pace()*c.columns.pace()*c.columns.pixels*c.x.extent[3])
	samples, some := max(1, elems/(perRow*max(rows, 1))), max(1, min(rows, elems/perRow))
	at := chunk{samples: min(samples, c.dy.extent[0]), end: some}
	for at.samples > 0 {
		next := at
		if at.end < rows {
			next.u, next.end = at.end, min(at.end+some, rows)
		} else {
			next.n, next.u, next.end = at.n+at.samples, 0, some
			next.samples = min(samples, c.dy.extent[0]-next.n)
		}
		if c.db != nil {
			dy := c.dy.samples(at.n, at.samples).part(1, dag.Range{Lo: at.u, Hi: at.end})
			addPixels(l, c.db, &dy, true)
		}
		for i := range parts {
			p := parts[i]
			p.dy, p.x = p.dy.samples(at.n, at.samples), p.x.samples(at.n, at.samples)
			if i == 0 && next.samples > 0 {
				p.next = c.reads(next)
			}
			p.run(l, at.u, at.end)
		}
		at = next
	}
}

// reads is the memory of x and dy that a chunk reads, without what is read in pieces far from each other.
func (c *convDwNHWC[T]) reads(at chunk) (next [2][]T) {
	last := at.n + at.samples - 1
	row := func(m *map4[T], from, to int) []T {
		if to <= from { // beside the image
			return nil
		}
		return m.elems[m.at(at.n, from, 0, 0):m.at(last, to-1, m.extent[2]-1, m.extent[3])]
	}
	if c.columns.pace() == c.columns.stride {
		bottom := c.rows.from + (at.end-1)*c.rows.stride + (c.rows.taps-1)*c.rows.dilation + 1
		next[0] = row(&c.x, max(0, c.rows.from+at.u*c.rows.stride), min(c.x.extent[1], bottom))
	}
	if 2*c.dy.extent[3] > c.dy.stride[2] {
		next[1] = row(&c.dy, at.u, at.end)
	}
	return next
}

// run adds the gradient over rows u to end of dy, of all samples.
func (c *convDwNHWC[T]) run(l simd.Level, u, end int) {
	if c.groups < 2 || c.depthwise() {
		c.zones(l, u, end)
		return
	}
	part := *c
	part.groups = 1
	for g := range c.groups {
		part.dw, part.dy, part.x = c.dw.block(3, g, c.groups), c.dy.block(3, g, c.groups), c.x.block(3, g, c.groups)
		part.zones(l, u, end)
	}
}

// zones is run of one group, or of all groups of a depthwise convolution.
func (c *convDwNHWC[T]) zones(l simd.Level, u, end int) {
	if c.groups < 2 && c.dw.extent[2] >= tapChannels {
		c.taps(l, u, end)
		return
	}
	for u < end && c.columns.pixels > 0 {
		next, top, bottom := c.rows.zone(u)
		next = min(next, end)
		for v := 0; v < c.columns.pixels; {
			after, left, right := c.columns.zone(v)
			if top == bottom || left == right {
				// nothing to add
			} else if c.groups > 1 {
				c.depthwisePart(l, u, next, v, after, [4]int{top, bottom, left, right})
			} else {
				c.part(l, u, next, v, after, [4]int{top, bottom, left, right})
			}
			v = after
		}
		u = next
	}
}

// tapChannels is how many channels are enough rows of a product. Then each tap of the window is a
// product of its own, over all pixels for which it lies in the image, so that each element of the
// gradient is read and written once.
const tapChannels = 24

// taps adds the gradient over rows u to end of dy, tap by tap.
func (c *convDwNHWC[T]) taps(l simd.Level, u, end int) {
	for i := range c.rows.taps {
		top, bottom := c.rows.inside(i, u, end)
		for j := range c.columns.taps {
			left, right := c.columns.inside(j, 0, c.columns.pixels)
			if top >= bottom || left >= right {
				continue
			}
			p := c.product(top, bottom, left, right, i, j)
			p.M = c.dw.extent[2]
			p.C = c.dw.elems[c.dw.at(i, j, 0, 0):]
			p.Next = c.nextPart(i*c.columns.taps+j, c.rows.taps*c.columns.taps)
			p.Run(l)
		}
	}
}

// part adds the gradient from the pixels whose windows lie in x with rows taps[0] to taps[1] and
// columns taps[2] to taps[3].
func (c *convDwNHWC[T]) part(l simd.Level, u, end, v, after int, taps [4]int) {
	row, column := c.rows.dilation*c.x.stride[1], c.columns.dilation*c.x.stride[2]
	p := c.product(u, end, v, after, taps[0], taps[2])
	p.Groups, p.AGroup, p.CGroup = taps[1]-taps[0], row, c.dw.stride[0]
	// Columns of the window are rows of one product if they touch and neither x nor dw is cut.
	channels, columns, together := c.dw.extent[2], taps[3]-taps[2], 1
	if column == channels && c.dw.stride[1] == channels*c.dw.stride[2] {
		together = columns
	}
	p.M = together * channels
	x, dy, times := p.A, p.B, p.Outer
	p.Outer = 1                                                // one after the other, so that all blocks of rows find them in the nearest cache
	whole := taps == [4]int{0, c.rows.taps, 0, c.columns.taps} // most pixels
	for o := range times {
		p.B = dy[o*p.BOuter:]
		for j := 0; j < columns; j += together {
			p.Next = [2][]T{}
			if whole && j == 0 {
				p.Next = c.nextPart(o, times)
			}
			p.A = x[o*p.AOuter+j*column:]
			p.C = c.dw.elems[c.dw.at(taps[0], taps[2]+j, 0, 0):]
			p.Run(l)
		}
	}
}

// nextPart is the memory to fetch beside one of so many products.
func (c *convDwNHWC[T]) nextPart(i, products int) (part [2][]T) {
	for o, next := range c.next {
		part[o] = next[len(next)*i/products : len(next)*(i+1)/products]
	}
	return part
}

// product is that of pixels u to end and v to after with what lies under tap i, j of their windows.
func (c *convDwNHWC[T]) product(u, end, v, after, i, j int) simd.Product[T] {
	row := c.rows.from + u*c.rows.stride + i*c.rows.dilation
	column := c.columns.from + v*c.columns.stride + j*c.columns.dilation
	inner, outer, rest := arrange(
		walk{count: after - v, source: c.columns.stride * c.x.stride[2], result: c.dy.stride[2]},
		walk{count: end - u, source: c.rows.stride * c.x.stride[1], result: c.dy.stride[1]},
		walk{count: c.dy.extent[0], source: c.x.stride[0], result: c.dy.stride[0]})
	return simd.Product[T]{
		A: c.x.elems[c.x.at(0, row, column, 0):], B: c.dy.elems[c.dy.at(0, c.rows.first+u, c.columns.first+v, 0):],
		N: c.dw.extent[3], K: inner.count, Batch: outer.count, Outer: rest.count,
		ARow: 1, AStep: inner.source, ABatch: outer.source, AOuter: rest.source,
		BRow: inner.result, BBatch: outer.result, BOuter: rest.result,
		CRow: c.dw.stride[2], Accumulate: true,
	}
}

// addPixels sets or adds db[f] = Σ_{n,u,v} dy[n,u,v,f].
func addPixels[T Float](l simd.Level, db []T, dy *map4[T], add bool) {
	inner, outer, rest := arrange(
		walk{count: dy.extent[2], source: dy.stride[2]},
		walk{count: dy.extent[1], source: dy.stride[1]},
		walk{count: dy.extent[0], source: dy.stride[0]})
	for i := range outer.count {
		for j := range rest.count {
			simd.ColumnSums(l, db, dy.elems[i*outer.source+j*rest.source:], inner.count, inner.source, add)
			add = true
		}
	}
}
