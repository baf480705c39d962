package cpu

import (
	"dahl/kernels/calls"
	"dahl/kernels/simd"
)

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
	g := SharedPixels(lanes, in, channels, k, 1)
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
func (c *convNHWC[T]) scatters(l simd.Level, wt *calls.Map4[T]) bool {
	channels := c.dst.Extent[3]
	return c.where.Elems == nil && c.dst.Stride[2] == channels &&
		scatterPays(vectorBytes(l)/calls.SizeOf[T](), c.dst.Extent[2], c.src.Extent[2], wt.Extent[2], channels, wt.Extent[1])
}

// scatter computes the gradient dst of a convolution of stride 1 with turned filters wt, or adds
// to it.
func (c *convNHWC[T]) scatter(l simd.Level, wt *calls.Map4[T], g calls.Windowing, work []byte) {
	c.w = packScatter(work, wt)
	c.rows, _ = calls.BackwardLattice(c.dst.Extent[1], c.src.Extent[1], wt.Extent[0], g.Rows, 0)
	c.columns = calls.ForwardLattice(c.src.Extent[2], c.dst.Extent[2], wt.Extent[1], g.Columns)
	if !c.add {
		c.dst.Clear()
	}
	step := cachedSamples(&c.src, &c.dst, &c.w)
	for n := 0; n < c.dst.Extent[0]; n += step {
		part := *c
		part.dst, part.src = c.dst.Samples(n, min(step, c.dst.Extent[0]-n)), c.src.Samples(n, step)
		part.scatterAll(l)
	}
}

func (c *convNHWC[T]) scatterAll(l simd.Level) {
	k := c.columns.Taps
	for u := 0; u < c.rows.Pixels; {
		end, top, bottom := c.rows.Zone(u)
		for v := 0; v < c.columns.Pixels && top < bottom; {
			after, left, right := c.columns.Zone(v)
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
	k, channels := c.w.Extent[2], c.dst.Extent[3]
	from := c.src.At(0, c.rows.From+u+taps[0], v, 0)
	to := c.dst.At(0, u, c.columns.From+v+taps[2], 0)
	inner, outer, rest := arrange(
		walk{count: (after - v + k - 1) / k, source: k * c.src.Stride[2], result: k * c.dst.Stride[2]},
		walk{count: end - u, source: c.src.Stride[1], result: c.dst.Stride[1]},
		walk{count: c.dst.Extent[0], source: c.src.Stride[0], result: c.dst.Stride[0]})
	p := simd.Product[T]{
		M: inner.count, N: (taps[3] - taps[2]) * channels, K: c.w.Extent[1], Batch: taps[1] - taps[0], Groups: outer.count,
		ARow: inner.source, AStep: 1, ABatch: c.src.Stride[1], AGroup: outer.source,
		BRow: c.w.Stride[1], BBatch: c.w.Stride[0], B: c.w.Elems[c.w.At(taps[0], 0, taps[2], 0):],
		CRow: inner.result, CGroup: outer.result, Accumulate: true,
	}
	for range rest.count {
		p.A, p.C = c.src.Elems[from:], c.dst.Elems[to:]
		p.Run(l)
		from, to = from+rest.source, to+rest.result
	}
}

// packScatter returns the filters as I×F×J×C. The rows of the window are turned round, as in wt;
// its columns are not.
func packScatter[T calls.Float](work []byte, wt *calls.Map4[T]) calls.Map4[T] {
	rows, columns, filters, channels := wt.Extent[0], wt.Extent[1], wt.Extent[2], wt.Extent[3]
	elems, _ := calls.Scratch[T](work, rows*columns*filters*channels)
	packed := calls.Packed4(elems, [4]int{rows, filters, columns, channels})
	for i := range rows {
		for f := range filters {
			for j := range columns {
				copy(packed.Elems[packed.At(i, f, j, 0):], wt.Elems[wt.At(i, columns-1-j, f, 0):][:channels])
			}
		}
	}
	return packed
}
