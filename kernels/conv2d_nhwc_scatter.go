package kernels

import "dahl/kernels/simd"

// The gradient of an image of few channels can also be computed from the other side. Pixel v of a
// row of dy adds to the pixels v-l to v-l+k of a row of dx, with l columns of padding. The channels of those follow each
// other and fill vectors better than the channels of one pixel. Rows are summed as in
// conv2d.nhwc, so only one number per column of the window is added up in memory. Pixels of dy
// that are k apart meet different pixels of dx and are computed together.

// scatterPays compares the multiplications of vectors for a row of dx (in pixels, from out)
// either way. It allows scatter one in five for its additions in memory.
func scatterPays(lanes, in, out, filters, channels, k int) bool {
	if lanes == 0 || filters < 8 {
		return false
	}
	vectors := func(n int) int { return (n + lanes - 1) / lanes }
	g := sharedPixels(lanes, in, channels, k, 1)
	gather := in/g*vectors(g*channels)*(k+g-1) + in%g*vectors(channels)*k
	return 5*out*vectors(k*channels) < 4*gather
}

// scatterWorkspace is the bytes of the filters for scatter, or 0 if it pays at no level.
func scatterWorkspace(elementBytes int64, in, out int, wt []int) int64 {
	for _, l := range simd.Levels() {
		if scatterPays(vectorBytes(l)/int(elementBytes), in, out, wt[2], wt[3], wt[1]) {
			return int64(wt[0]*wt[1]*wt[2]*wt[3]) * elementBytes
		}
	}
	return 0
}

// scatters reports whether the gradient is computed by scatter.
func (c *convNHWC[T]) scatters(l simd.Level, wt *map4[T]) bool {
	channels := c.dst.extent[3]
	return c.where.elems == nil && c.dst.stride[2] == channels &&
		scatterPays(vectorBytes(l)/sizeOf[T](), c.dst.extent[2], c.src.extent[2], wt.extent[2], channels, wt.extent[1])
}

// scatter computes the gradient dst of a convolution of stride 1 with turned filters wt, or adds
// to it.
func (c *convNHWC[T]) scatter(l simd.Level, wt *map4[T], g windowing, work []byte) {
	c.w = packScatter(work, wt)
	c.rows, _ = backwardLattice(c.dst.extent[1], c.src.extent[1], wt.extent[0], g.rows, 0)
	c.columns = forwardLattice(c.src.extent[2], c.dst.extent[2], wt.extent[1], g.columns)
	if !c.add {
		c.dst.clear()
	}
	step := cachedSamples(&c.src, &c.dst, &c.w)
	for n := 0; n < c.dst.extent[0]; n += step {
		part := *c
		part.dst, part.src = c.dst.samples(n, min(step, c.dst.extent[0]-n)), c.src.samples(n, step)
		part.scatterAll(l)
	}
}

func (c *convNHWC[T]) scatterAll(l simd.Level) {
	k := c.columns.taps
	for u := 0; u < c.rows.pixels; {
		end, top, bottom := c.rows.zone(u)
		for v := 0; v < c.columns.pixels && top < bottom; {
			after, left, right := c.columns.zone(v)
			for first := v; first < min(v+k, after) && left < right; first++ {
				c.scatterPart(l, u, end, first, after, [4]int{top, bottom, left, right})
			}
			v = after
		}
		u = end
	}
}

// scatterPart adds to rows u to end the contributions of every k-th column of src from v, for
// rows taps[0] to taps[1] and columns taps[2] to taps[3] of the window.
func (c *convNHWC[T]) scatterPart(l simd.Level, u, end, v, after int, taps [4]int) {
	k, channels := c.w.extent[2], c.dst.extent[3]
	from := c.src.at(0, c.rows.from+u+taps[0], v, 0)
	to := c.dst.at(0, u, c.columns.from+v+taps[2], 0)
	inner, outer, rest := arrange(
		walk{count: (after - v + k - 1) / k, source: k * c.src.stride[2], result: k * c.dst.stride[2]},
		walk{count: end - u, source: c.src.stride[1], result: c.dst.stride[1]},
		walk{count: c.dst.extent[0], source: c.src.stride[0], result: c.dst.stride[0]})
	p := simd.Product[T]{
		M: inner.count, N: (taps[3] - taps[2]) * channels, K: c.w.extent[1], Batch: taps[1] - taps[0], Groups: outer.count,
		ARow: inner.source, AStep: 1, ABatch: c.src.stride[1], AGroup: outer.source,
		BRow: c.w.stride[1], BBatch: c.w.stride[0], B: c.w.elems[c.w.at(taps[0], 0, taps[2], 0):],
		CRow: inner.result, CGroup: outer.result, Accumulate: true,
	}
	for range rest.count {
		p.A, p.C = c.src.elems[from:], c.dst.elems[to:]
		p.Run(l)
		from, to = from+rest.source, to+rest.result
	}
}

// packScatter returns the filters as I×F×J×C. The rows of the window are turned round, as in wt;
// its columns are not.
func packScatter[T Float](work []byte, wt *map4[T]) map4[T] {
	rows, columns, filters, channels := wt.extent[0], wt.extent[1], wt.extent[2], wt.extent[3]
	elems, _ := scratch[T](work, rows*columns*filters*channels)
	packed := packed4(elems, [4]int{rows, filters, columns, channels})
	for i := range rows {
		for f := range filters {
			for j := range columns {
				copy(packed.elems[packed.at(i, f, j, 0):], wt.elems[wt.at(i, columns-1-j, f, 0):][:channels])
			}
		}
	}
	return packed
}
