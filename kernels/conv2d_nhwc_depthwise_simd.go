package kernels

import "dahl/kernels/simd"

// Where each group has one channel and one filter, a tap of the window is one number per channel. So
// the product of a tap is one of pixels with the same channels, which lie side by side in all operands,
// and nothing is summed over channels. The pixels are those of a row whose windows have the same taps.

// depthwise reports whether a convolution is of this kind, with filters that lie so.
func (c *convNHWC[T]) depthwise() bool {
	return c.groups > 1 && c.groups == c.src.extent[3] && c.groups == c.dst.extent[3] && c.w.stride[c.grouped] == 1
}

// depthwisePart is part of a depthwise convolution.
func (c *convNHWC[T]) depthwisePart(l simd.Level, u, end, v, after int, taps [4]int) {
	column := c.columns.from + v*c.columns.stride
	p := simd.Pixels[T]{
		N: c.groups, Pixels: after - v,
		CPixel: c.columns.step * c.dst.stride[2], APixel: c.columns.stride * c.src.stride[2],
	}
	for n := range c.dst.extent[0] {
		for r := u; r < end; r++ {
			row := c.rows.from + r*c.rows.stride
			p.C = c.dst.elems[n*c.dst.stride[0]+c.position(&c.dst, r, v):]
			c.begin(&p)
			for i := taps[0]; i < taps[1]; i++ {
				for j := taps[2]; j < taps[3]; j++ {
					p.A = c.src.elems[c.src.at(n, row+i*c.rows.dilation, column+j*c.columns.dilation, 0):]
					p.B = c.w.elems[c.w.at(i, j, 0, 0):]
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
	if !c.relu && c.where.elems == nil {
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
		if c.where.elems != nil {
			for f, x := range c.where.elems[n*c.where.stride[0]+c.position(&c.where, r, v+i):][:p.N] {
				if !(x > 0) {
					to[f] = 0
				}
			}
		}
	}
}

// depthwise is that of the convolution whose gradient this is.
func (c *convDwNHWC[T]) depthwise() bool {
	return c.groups > 1 && c.groups == c.x.extent[3] && c.groups == c.dy.extent[3]
}

// depthwisePart is part of the gradient of a depthwise convolution.
func (c *convDwNHWC[T]) depthwisePart(l simd.Level, u, end, v, after int, taps [4]int) {
	column := c.columns.from + v*c.columns.stride
	p := simd.Pixels[T]{N: c.groups, Pixels: after - v, APixel: c.columns.stride * c.x.stride[2], BPixel: c.dy.stride[2]}
	for n := range c.dy.extent[0] {
		for r := u; r < end; r++ {
			row := c.rows.from + r*c.rows.stride
			p.B = c.dy.elems[c.dy.at(n, c.rows.first+r, c.columns.first+v, 0):]
			for i := taps[0]; i < taps[1]; i++ {
				for j := taps[2]; j < taps[3]; j++ {
					p.A = c.x.elems[c.x.at(n, row+i*c.rows.dilation, column+j*c.columns.dilation, 0):]
					p.C = c.dw.elems[c.dw.at(i, j, 0, 0):]
					p.Run(l)
				}
			}
		}
	}
}
