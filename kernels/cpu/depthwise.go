package cpu

import "dahl/kernels/simd"

// Where each group has one channel and one filter, a tap of the window is one number per channel. So
// the product of a tap is one of pixels with the same channels, which lie side by side in all operands,
// and nothing is summed over channels.

// depthwise reports whether the convolution is depthwise, with filters side by side.
func (c *convNHWC[T]) depthwise() bool {
	return c.groups > 1 && c.groups == c.src.Extent[3] && c.groups == c.dst.Extent[3] && c.w.Stride[c.grouped] == 1
}

// depthwisePart is part of a depthwise convolution.
func (c *convNHWC[T]) depthwisePart(l simd.Level, u, end, v, after int, taps [4]int) {
	from, to, where := c.corner(u, v, taps)
	inner, outer, rest := c.walks(u, end, v, after)
	p := simd.Depthwise[T]{
		N: c.groups, Pixels: inner.count, Groups: outer.count, Rows: taps[1] - taps[0], Columns: taps[3] - taps[2],
		B: c.w.Elems[c.w.At(taps[0], taps[2], 0, 0):], BRow: c.w.Stride[0], BColumn: c.w.Stride[1],
		APixel: inner.source, AGroup: outer.source, ARow: c.rows.Dilation * c.src.Stride[1], AColumn: c.columns.Dilation * c.src.Stride[2],
		CPixel: inner.result, CGroup: outer.result, WherePixel: inner.where, WhereGroup: outer.where,
		Bias: c.bias, ReLU: c.relu, Accumulate: c.add,
	}
	for range rest.count {
		p.A, p.C = c.src.Elems[from:], c.dst.Elems[to:]
		if c.where.Elems != nil {
			p.Where = c.where.Elems[where:]
		}
		p.Run(l)
		from, to, where = from+rest.source, to+rest.result, where+rest.where
	}
}

// depthwise reports whether the gradient belongs to a depthwise convolution.
func (c *convDwNHWC[T]) depthwise() bool {
	return c.groups > 1 && c.groups == c.x.Extent[3] && c.groups == c.dy.Extent[3]
}

// depthwisePart is part of the gradient of a depthwise convolution. It has the form of such a convolution, whose pixels are taps, and whose
// taps are pixels.
func (c *convDwNHWC[T]) depthwisePart(l simd.Level, u, end, v, after int, taps [4]int) {
	row := c.rows.From + u*c.rows.Stride + taps[0]*c.rows.Dilation
	column := c.columns.From + v*c.columns.Stride + taps[2]*c.columns.Dilation
	p := simd.Depthwise[T]{
		N: c.groups, Pixels: taps[3] - taps[2], Groups: taps[1] - taps[0], Rows: end - u, Columns: after - v,
		C: c.dw.Elems[c.dw.At(taps[0], taps[2], 0, 0):], CPixel: c.dw.Stride[1], CGroup: c.dw.Stride[0], Accumulate: true,
		APixel: c.columns.Dilation * c.x.Stride[2], AGroup: c.rows.Dilation * c.x.Stride[1],
		ARow: c.rows.Stride * c.x.Stride[1], AColumn: c.columns.Stride * c.x.Stride[2],
		BRow: c.dy.Stride[1], BColumn: c.dy.Stride[2],
	}
	for n := range c.dy.Extent[0] {
		p.A = c.x.Elems[c.x.At(n, row, column, 0):]
		p.B = c.dy.Elems[c.dy.At(n, c.rows.First+u, c.columns.First+v, 0):]
		p.Run(l)
	}
}
