package kernels

import "dahl/kernels/simd"

// The weight gradient is a product with the transposed image. Its rows are the columns of the
// window and the channels, which follow each other under a pixel of dy. Its groups are the rows
// of the window, and its sums run over pixels. Pixels whose windows miss the same rows and
// columns are summed together, as in the other convolutions.

// convDwNHWC adds to dw the gradient of a convolution of x with respect to its filters,
// and to db, if not nil, that with respect to its bias.
type convDwNHWC[T Float] struct {
	dw, dy, x     map4[T]
	db            []T
	rows, columns lattice
	groups        int
}

func conv2dNHWCDwAt[T Float](l simd.Level, call *Call) {
	dw, dy, x := map4Of[T](&call.Args[0]), map4Of[T](&call.Args[1]), map4Of[T](&call.Args[2])
	c := convDwOf(dw, dy, x, dy.extent[1], windowingOf(call.Params))
	if !call.Args[0].Accumulates() {
		c.dw.clear()
	}
	if len(call.Args) > 3 {
		c.db = Data[T](&call.Args[3])
		if !call.Args[3].Accumulates() {
			clear(c.db)
		}
	}
	c.all(l, call.Work)
}

func conv2dNHWCDwWorkspace(s *Spec) int64 {
	dw, dy := s.Operands[0].Shape, s.Operands[1].Shape
	return wideWorkspace(s.Type.SizeBytes(), dy[2], dw[0], dw[1], dw[2], dw[3], columnStride(s))
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

// all adds the gradient over the whole of dy, some samples at a time.
func (c *convDwNHWC[T]) all(l simd.Level, work []byte) {
	parts, g := c.split(l, work)
	step := cachedSamples(&c.x, &c.dy, &c.dw)
	for n := 0; n < c.dy.extent[0]; n += step {
		if c.db != nil { // first, since reading dy from end to end brings it to the cache fastest
			dy := c.dy.samples(n, min(step, c.dy.extent[0]-n))
			addPixels(l, c.db, &dy, true)
		}
		for i := range parts {
			p := parts[i]
			p.dy, p.x = p.dy.samples(n, min(step, c.dy.extent[0]-n)), p.x.samples(n, step)
			p.run(l, 0, p.rows.pixels)
		}
	}
	c.fold(&parts[0], g)
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

// part adds the gradient from the pixels whose windows lie in x with rows taps[0] to taps[1] and
// columns taps[2] to taps[3].
func (c *convDwNHWC[T]) part(l simd.Level, u, end, v, after int, taps [4]int) {
	dy := c.dy.at(0, c.rows.first+u, c.columns.first+v, 0)
	row, column := c.rows.dilation*c.x.stride[1], c.columns.dilation*c.x.stride[2]
	from := c.x.at(0, c.rows.from+u*c.rows.stride, c.columns.from+v*c.columns.stride, 0) + taps[0]*row + taps[2]*column
	inner, outer, rest := arrange(
		walk{count: after - v, source: c.columns.stride * c.x.stride[2], result: c.dy.stride[2]},
		walk{count: end - u, source: c.rows.stride * c.x.stride[1], result: c.dy.stride[1]},
		walk{count: c.dy.extent[0], source: c.x.stride[0], result: c.dy.stride[0]})
	p := simd.Product[T]{
		N: c.dw.extent[3], K: inner.count, Batch: outer.count, Groups: taps[1] - taps[0],
		ARow: 1, AStep: inner.source, ABatch: outer.source, AGroup: row,
		BRow: inner.result, BBatch: outer.result,
		CRow: c.dw.stride[2], CGroup: c.dw.stride[0],
		Accumulate: true,
	}
	// Columns of the window are rows of one product if they touch and neither x nor dw is cut.
	channels, columns, together := c.dw.extent[2], taps[3]-taps[2], 1
	if column == channels && c.dw.stride[1] == channels*c.dw.stride[2] {
		together = columns
	}
	p.M = together * channels
	for range rest.count {
		p.B = c.dy.elems[dy:]
		for j := 0; j < columns; j += together {
			p.A = c.x.elems[from+j*column:]
			p.C = c.dw.elems[c.dw.at(taps[0], taps[2]+j, 0, 0):]
			p.Run(l)
		}
		from, dy = from+rest.source, dy+rest.result
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
