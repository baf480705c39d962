package cpu

import (
	"dahl/kernels/calls"
	"dahl/kernels/simd"
)

// Where each group has one channel and one filter, a tap of the window is one number per channel. So
// the product of a tap is one of pixels with the same channels, which lie side by side in all operands,
// and nothing is summed over channels. Where a group has one channel and several filters, a copy of the channel for
// each of them makes it so.

// repeats is how many filters read each channel of x. It is 1 if a group has several channels.
func repeats(groups, channels, filters int) int {
	if groups == channels && groups > 1 {
		return filters / groups
	}
	return 1
}

// repeatWorkspace is the bytes of a sample of x with a copy of each channel for each of its filters.
func repeatWorkspace(s *calls.Spec, x, filters int) int64 {
	e := s.Operands[x].Shape
	if repeats(int(calls.Sliding.Value(s, "groups")), e[3], filters) < 2 {
		return 0
	}
	return int64(e[1]*e[2]*filters) * s.Type.SizeBytes()
}

// repeated is sample n of x with some copies of each channel, in the workspace.
func repeated[T calls.Float](x *calls.Map4[T], n, copies int, work []byte) calls.Map4[T] {
	extent := [4]int{1, x.Extent[1], x.Extent[2], x.Extent[3] * copies}
	to, _ := calls.Scratch[T](work, extent[1]*extent[2]*extent[3])
	m := calls.Packed4(to, extent)
	for h := range extent[1] {
		for w := range extent[2] {
			pixel := m.Elems[m.At(0, h, w, 0):][:extent[3]]
			from := x.Elems[x.At(n, h, w, 0):][:x.Extent[3]]
			for i := range copies {
				for c, v := range from {
					pixel[c*copies+i] = v
				}
			}
		}
	}
	return m
}

// repeating computes a convolution with several filters per channel of the source, and reports whether it is one. The gradient of an input, with
// turned filters, is none.
func (c *convNHWC[T]) repeating(l simd.Level, work []byte) bool {
	copies := repeats(c.groups, c.src.Extent[3], c.dst.Extent[3])
	if copies < 2 || c.grouped != 3 || c.w.Stride[3] != 1 {
		return false
	}
	for n := range c.dst.Extent[0] {
		part := c.samples(n, 1)
		part.src, part.groups = repeated(&c.src, n, copies, work), c.dst.Extent[3]
		part.run(l, 0, c.rows.Pixels)
	}
	return true
}

// repeating is the same for the gradient.
func (c *convDwNHWC[T]) repeating(l simd.Level, work []byte) bool {
	copies := repeats(c.groups, c.x.Extent[3], c.dy.Extent[3])
	if copies < 2 {
		return false
	}
	if !c.add {
		c.dw.Clear()
	}
	for n := range c.dy.Extent[0] {
		part := [1]convDwNHWC[T]{*c}
		part[0].dy, part[0].x, part[0].groups = c.dy.Samples(n, 1), repeated(&c.x, n, copies, work), c.dy.Extent[3]
		part[0].chunks(l, part[:])
	}
	return true
}

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

// depthwisePart is part of the gradient of a depthwise convolution. It has the form of such a convolution, with taps for pixels and pixels for
// taps.
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
