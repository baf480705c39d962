package cpu

import (
	"dahl/dag"
	"dahl/kernels/calls"
	"dahl/kernels/simd"
)

// The weight gradient is a product with the transposed image. Its rows are the columns of the
// window and the channels, which follow each other under a pixel of dy. Its groups are the rows
// of the window, and its sums run over pixels. Pixels whose windows miss the same rows and
// columns are summed together, as in the other convolutions.

// convDwNHWC sets dw to the gradient of a convolution of x with respect to its filters, or adds it, and
// adds to db, if not nil, that with respect to its bias.
type convDwNHWC[T calls.Float] struct {
	dw, dy, x     calls.Map4[T]
	db            []T
	add           bool
	rows, columns calls.Lattice
	groups        int
	next          [2][]T // memory to fetch meanwhile
	norm          norm[T]
}

// convDwOf is the gradient of a convolution with a number of rows of pixels, without the gradient of
// the bias.
func convDwOf[T calls.Float](dw, dy, x calls.Map4[T], rows int, g calls.Windowing) convDwNHWC[T] {
	return convDwNHWC[T]{
		dw: dw, dy: dy, x: x, groups: g.Groups,
		rows:    calls.ForwardLattice(rows, x.Extent[1], dw.Extent[0], g.Rows),
		columns: calls.ForwardLattice(dy.Extent[2], x.Extent[2], dw.Extent[1], g.Columns),
	}
}

// all adds the gradient over the whole of dy.
func (c *convDwNHWC[T]) all(l simd.Level, work []byte) {
	if c.norm.room == nil {
		c.asItIs(l, work)
		return
	}
	step := c.norm.samples(&c.x)
	for n := 0; n < c.dy.Extent[0]; n += step {
		part, some := *c, min(step, c.dy.Extent[0]-n)
		part.dy, part.x, part.add = c.dy.Samples(n, some), c.norm.image(l, c.x.Samples(n, some)), c.add || n > 0
		part.asItIs(l, work)
	}
}

// asItIs adds the gradient for the data as they lie in memory. Of many filters some are computed at a time, in the
// workspace: a panel, as in other convolutions.
func (c *convDwNHWC[T]) asItIs(l simd.Level, work []byte) {
	if c.repeating(l, work) {
		return
	}
	filters, width := c.dw.Extent[3], panels(&c.dw, c.groups, c.dy.Extent[0]*c.rows.Pixels*c.columns.Pixels)
	if width == filters {
		if !c.add {
			c.dw.Clear()
		}
		parts, g := c.split(l, work)
		c.chunks(l, parts[:])
		c.fold(&parts[0], g)
		return
	}
	rows, columns := allTaps(&c.dw)
	for f := 0; f < filters; f += width {
		r := dag.Range{Lo: f, Hi: min(f+width, filters)}
		p, some := [1]convDwNHWC[T]{*c}, c.dw.Part(3, r)
		p[0].dw, _ = packed(work, &some, rows, columns)
		clear(p[0].dw.Elems)
		p[0].dy = c.dy.Part(3, r)
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
	rows := c.rows.Pixels
	elems := max(CachedBytes/calls.SizeOf[T](), c.dw.Extent[0]*c.dw.Extent[1]*c.dw.Extent[2]*c.dw.Extent[3])
	perRow := max(1, c.dy.Extent[2]*c.dy.Extent[3]+c.rows.Pace()*c.columns.Pace()*c.columns.Pixels*c.x.Extent[3])
	samples, some := max(1, elems/(perRow*max(rows, 1))), max(1, min(rows, elems/perRow))
	at := chunk{samples: min(samples, c.dy.Extent[0]), end: some}
	for at.samples > 0 {
		next := at
		if at.end < rows {
			next.u, next.end = at.end, min(at.end+some, rows)
		} else {
			next.n, next.u, next.end = at.n+at.samples, 0, some
			next.samples = min(samples, c.dy.Extent[0]-next.n)
		}
		if c.db != nil {
			dy := c.dy.Samples(at.n, at.samples).Part(1, dag.Range{Lo: at.u, Hi: at.end})
			addPixels(l, c.db, &dy, true)
		}
		for i := range parts {
			p := parts[i]
			p.dy, p.x = p.dy.Samples(at.n, at.samples), p.x.Samples(at.n, at.samples)
			if i == 0 && next.samples > 0 {
				p.next = c.reads(next)
			}
			p.run(l, at.u, at.end)
		}
		at = next
	}
}

// reads is the memory of x and dy that a chunk reads, without operands in pieces far from each other.
func (c *convDwNHWC[T]) reads(at chunk) (next [2][]T) {
	last := at.n + at.samples - 1
	row := func(m *calls.Map4[T], from, to int) []T {
		if to <= from { // outside the image
			return nil
		}
		return m.Elems[m.At(at.n, from, 0, 0):m.At(last, to-1, m.Extent[2]-1, m.Extent[3])]
	}
	if c.columns.Pace() == c.columns.Stride {
		bottom := c.rows.From + (at.end-1)*c.rows.Stride + (c.rows.Taps-1)*c.rows.Dilation + 1
		next[0] = row(&c.x, max(0, c.rows.From+at.u*c.rows.Stride), min(c.x.Extent[1], bottom))
	}
	if 2*c.dy.Extent[3] > c.dy.Stride[2] {
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
		part.dw, part.dy, part.x = c.dw.Block(3, g, c.groups), c.dy.Block(3, g, c.groups), c.x.Block(3, g, c.groups)
		part.zones(l, u, end)
	}
}

// zones is run of one group, or of all groups of a depthwise convolution.
func (c *convDwNHWC[T]) zones(l simd.Level, u, end int) {
	if c.groups < 2 && c.dw.Extent[2] >= tapChannels {
		c.taps(l, u, end)
		return
	}
	for u < end && c.columns.Pixels > 0 {
		next, top, bottom := c.rows.Zone(u)
		next = min(next, end)
		for v := 0; v < c.columns.Pixels; {
			after, left, right := c.columns.Zone(v)
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
	for i := range c.rows.Taps {
		top, bottom := c.rows.Inside(i, u, end)
		for j := range c.columns.Taps {
			left, right := c.columns.Inside(j, 0, c.columns.Pixels)
			if top >= bottom || left >= right {
				continue
			}
			p := c.product(top, bottom, left, right, i, j)
			p.M = c.dw.Extent[2]
			p.C = c.dw.Elems[c.dw.At(i, j, 0, 0):]
			p.Next = c.nextPart(i*c.columns.Taps+j, c.rows.Taps*c.columns.Taps)
			p.Run(l)
		}
	}
}

// part adds the gradient from the pixels whose windows lie in x with rows taps[0] to taps[1] and
// columns taps[2] to taps[3].
func (c *convDwNHWC[T]) part(l simd.Level, u, end, v, after int, taps [4]int) {
	row, column := c.rows.Dilation*c.x.Stride[1], c.columns.Dilation*c.x.Stride[2]
	p := c.product(u, end, v, after, taps[0], taps[2])
	p.Groups, p.AGroup, p.CGroup = taps[1]-taps[0], row, c.dw.Stride[0]
	// Columns of the window are rows of one product if they touch and neither x nor dw is cut.
	channels, columns, together := c.dw.Extent[2], taps[3]-taps[2], 1
	if column == channels && c.dw.Stride[1] == channels*c.dw.Stride[2] {
		together = columns
	}
	p.M = together * channels
	x, dy, times := p.A, p.B, p.Outer
	p.Outer = 1                                                // one after the other, so that all blocks of rows find them in the nearest cache
	whole := taps == [4]int{0, c.rows.Taps, 0, c.columns.Taps} // most pixels
	for o := range times {
		p.B = dy[o*p.BOuter:]
		for j := 0; j < columns; j += together {
			p.Next = [2][]T{}
			if whole && j == 0 {
				p.Next = c.nextPart(o, times)
			}
			p.A = x[o*p.AOuter+j*column:]
			p.C = c.dw.Elems[c.dw.At(taps[0], taps[2]+j, 0, 0):]
			p.Run(l)
		}
	}
}

// nextPart is the memory to fetch during product i of several.
func (c *convDwNHWC[T]) nextPart(i, products int) (part [2][]T) {
	for o, next := range c.next {
		part[o] = next[len(next)*i/products : len(next)*(i+1)/products]
	}
	return part
}

// product returns the product of pixels u to end and v to after with the elements under tap i, j of their windows.
func (c *convDwNHWC[T]) product(u, end, v, after, i, j int) simd.Product[T] {
	row := c.rows.From + u*c.rows.Stride + i*c.rows.Dilation
	column := c.columns.From + v*c.columns.Stride + j*c.columns.Dilation
	inner, outer, rest := arrange(
		walk{count: after - v, source: c.columns.Stride * c.x.Stride[2], result: c.dy.Stride[2]},
		walk{count: end - u, source: c.rows.Stride * c.x.Stride[1], result: c.dy.Stride[1]},
		walk{count: c.dy.Extent[0], source: c.x.Stride[0], result: c.dy.Stride[0]})
	return simd.Product[T]{
		A: c.x.Elems[c.x.At(0, row, column, 0):], B: c.dy.Elems[c.dy.At(0, c.rows.First+u, c.columns.First+v, 0):],
		N: c.dw.Extent[3], K: inner.count, Batch: outer.count, Outer: rest.count,
		ARow: 1, AStep: inner.source, ABatch: outer.source, AOuter: rest.source,
		BRow: inner.result, BBatch: outer.result, BOuter: rest.result,
		CRow: c.dw.Stride[2], Accumulate: true,
	}
}

// addPixels sets or adds db[f] = Σ_{n,u,v} dy[n,u,v,f].
func addPixels[T calls.Float](l simd.Level, db []T, dy *calls.Map4[T], add bool) {
	inner, outer, rest := arrange(
		walk{count: dy.Extent[2], source: dy.Stride[2]},
		walk{count: dy.Extent[1], source: dy.Stride[1]},
		walk{count: dy.Extent[0], source: dy.Stride[0]})
	for i := range outer.count {
		for j := range rest.count {
			simd.ColumnSums(l, db, dy.Elems[i*outer.source+j*rest.source:], inner.count, inner.source, add)
			add = true
		}
	}
}
