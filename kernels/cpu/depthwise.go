package cpu

import "dahl/kernels/simd"

// Where each group has one channel and one filter, a tap of the window is one number per channel. So
// the product of a tap is one of pixels with the same channels, which lie side by side in all operands,
// and nothing is summed over channels. Such pixels share a row, and their windows have the same taps.

// depthwise reports whether the convolution is depthwise, with filters side by side.
func (c *convNHWC[T]) depthwise() bool {
	return c.groups > 1 && c.groups == c.src.Extent[3] && c.groups == c.dst.Extent[3] && c.w.Stride[c.grouped] == 1
}

// depthwisePart is part of a depthwise convolution.
func (c *convNHWC[T]) depthwisePart(l simd.Level, u, end, v, after int, taps [4]int) {
	column := c.columns.From + v*c.columns.Stride
	p := simd.Pixels[T]{
		N: c.groups, Pixels: after - v,
		CPixel: c.columns.Step * c.dst.Stride[2], APixel: c.columns.Stride * c.src.Stride[2],
	}
	for n := range c.dst.Extent[0] {
		for r := u; r < end; r++ {
			row := c.rows.From + r*c.rows.Stride
			p.C = c.dst.Elems[n*c.dst.Stride[0]+c.position(&c.dst, r, v):]
			c.begin(&p)
			for i := taps[0]; i < taps[1]; i++ {
				for j := taps[2]; j < taps[3]; j++ {
					p.A = c.src.Elems[c.src.At(n, row+i*c.rows.Dilation, column+j*c.columns.Dilation, 0):]
					p.B = c.w.Elems[c.w.At(i, j, 0, 0):]
					p.Run(l)
				}
			}
			c.finish(&p, n, r, v)
		}
	}
}

// begin sets pixels of the result to the bias or zero, unless the products are added to them.
func (c *convNHWC[T]) begin(p *simd.Pixels[T]) {
	for i := 0; i < p.Pixels && !c.add; i++ {
		if to := p.C[i*p.CPixel:][:p.N]; c.bias != nil {
			copy(to, c.bias)
		} else {
			clear(to)
		}
	}
}

// finish cuts pixels of the result off, from row r and column v of the lattices on.
func (c *convNHWC[T]) finish(p *simd.Pixels[T], n, r, v int) {
	if !c.relu && c.where.Elems == nil {
		return
	}
	for i := range p.Pixels {
		to := p.C[i*p.CPixel:][:p.N]
		if c.relu {
			for f, y := range to {
				if y < 0 {
					to[f] = 0
				}
			}
		}
		if c.where.Elems != nil {
			for f, x := range c.where.Elems[n*c.where.Stride[0]+c.position(&c.where, r, v+i):][:p.N] {
				if !(x > 0) {
					to[f] = 0
				}
			}
		}
	}
}

// depthwise reports whether the gradient belongs to a depthwise convolution.
func (c *convDwNHWC[T]) depthwise() bool {
	return c.groups > 1 && c.groups == c.x.Extent[3] && c.groups == c.dy.Extent[3]
}

// depthwisePart is part of the gradient of a depthwise convolution.
func (c *convDwNHWC[T]) depthwisePart(l simd.Level, u, end, v, after int, taps [4]int) {
	column := c.columns.From + v*c.columns.Stride
	p := simd.Pixels[T]{N: c.groups, Pixels: after - v, APixel: c.columns.Stride * c.x.Stride[2], BPixel: c.dy.Stride[2]}
	for n := range c.dy.Extent[0] {
		for r := u; r < end; r++ {
			row := c.rows.From + r*c.rows.Stride
			p.B = c.dy.Elems[c.dy.At(n, c.rows.First+r, c.columns.First+v, 0):]
			for i := taps[0]; i < taps[1]; i++ {
				for j := taps[2]; j < taps[3]; j++ {
					p.A = c.x.Elems[c.x.At(n, row+i*c.rows.Dilation, column+j*c.columns.Dilation, 0):]
					p.C = c.dw.Elems[c.dw.At(i, j, 0, 0):]
					p.Run(l)
				}
			}
		}
	}
}
