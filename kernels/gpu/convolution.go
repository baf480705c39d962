package gpu

import (
	"fmt"

	"dahl/kernels/calls"
)

// Convolutions on CUDA devices are products of windows of the image with
// filters. The rows of a product are pixels and its columns channels. The gradient of the bias is one
// more tap of the window, a row of ones.

// Convolution is the order of filters, and the products.
type Convolution struct {
	filters, turned filterLayout // of the convolution, and of the gradient of its input
	Maps, Weights   *productFamily
}

// ConvolutionLast is the convolution of channels-last images: filters are i×j×c×f, and turned filters are i×j×f×c.
var ConvolutionLast = Convolution{
	filters: filterLayout{0, 1, 2, 3, false}, turned: filterLayout{0, 1, 3, 2, true},
	Maps: &productFamily{
		module: "conv2d_nhwc", name: "conv2d_nhwc", takes: takesEven,
		simt:   []productTile{tile128x64, tile64x64, tile128x32, tile128x16},
		simt64: []productTile{tile64x64},
		tensor: []productTile{tensor64x64, tensor128x32},
	},
	Weights: &productFamily{
		module: "conv2d_nhwc", name: "conv2d_nhwc_dw", transposedA: true, takes: takesEven,
		simt:   []productTile{tile64x64, tile64x32, tile16x32, tile16x16},
		simt64: []productTile{tile64x64, wide16x32},
		tensor: []productTile{tensor64x64, tensor32x32},
	},
}

// UnpooledWeights is the family of conv2d.nhwc.pool.dw.
var UnpooledWeights = &productFamily{
	module: "conv2d_nhwc_pool", name: "conv2d_nhwc_pool_dw", takes: takesEven,
	simt:   []productTile{tile64x64, tile64x32, tile16x32, tile16x16},
	simt64: []productTile{tile64x64, wide16x32},
	tensor: []productTile{tensor64x64, tensor32x32},
}

// filterLayout says which dimensions of the operand are rows and columns of the window, channels
// and filters. reversed: the window's rows and columns run backwards.
type filterLayout struct {
	i, j, c, f int
	reversed   bool
}

// tap is the address of tap (i, j) of the first channel and filter.
func (l filterLayout) tap(w *calls.DeviceArg, size int64, i, j int) uint64 {
	if l.reversed {
		i, j = w.Shape[l.i]-1-i, w.Shape[l.j]-1-j
	}
	return w.Addr + uint64(int64(i*w.Stride[l.i]+j*w.Stride[l.j])*size)
}

// every is the distance between every n-th row and column of the window.
func (l filterLayout) every(w *calls.DeviceArg, n int) (i, j int) {
	if l.reversed {
		n = -n
	}
	return n * w.Stride[l.i], n * w.Stride[l.j]
}

// forward is a convolution of x with filters w. The result has the given pixels.
func (c *Convolution) forward(call *calls.DeviceCall, x, w int, pixels calls.Triple) productParams {
	xs, ws := &call.Args[x], &call.Args[w]
	rows, columns := ws.Shape[c.filters.i], ws.Shape[c.filters.j]
	channels, filters := ws.Shape[c.filters.c], ws.Shape[c.filters.f]
	i, j := c.filters.every(ws, 1)
	window := windowOperand(xs, forwardSweep(pixels, rows, columns, calls.WindowingOf(call.Params))).vectorised(call.Type, channels)
	other := mapOperand(ws.Addr, calls.Triple{rows, columns, channels}, calls.Triple{i, j, ws.Stride[c.filters.c]}, filters, ws.Stride[c.filters.f]).vectorised(call.Type, filters)
	return productParams{a: window, b: other, m: window.pixels, n: other.taps, k: window.taps}
}

// forwardSweep moves a convolution's window over its input.
func forwardSweep(pixels calls.Triple, rows, columns int, g calls.Windowing) sweep {
	return sweep{pixels: pixels, rows: rows, columns: columns, step: g.Rows.Stride, direction: g.Rows.Dilation, originRow: -g.Rows.Before, originColumn: -g.Columns.Before}
}

// takesEven fails where rows and columns differ in stride or dilation. The kernels have one of
// each.
func takesEven(s *calls.Spec) error {
	if _, slides := s.Params.Get("stride"); !slides {
		return nil // a dense layer
	}
	value := func(name string) float64 { return calls.Sliding.Value(s, name) }
	if value("column_stride") != value("stride") || value("column_dilation") != value("dilation") {
		return fmt.Errorf("%s: the kernel for CUDA has one stride and one dilation for rows and columns", s.Op)
	}
	return nil
}

// ForwardProducts is the one product of conv2d.nhwc. Operands are y, x, w and an optional b; rows are the pixels of y, columns
// its filters, and terms the elements of a window.
func (c *Convolution) ForwardProducts(call *calls.DeviceCall) []productParams {
	y := &call.Args[0]
	p := c.forward(call, 1, 2, y.Pixels())
	p.bias = call.Bias(3)
	p.relu, p.add = flag(calls.Rectifies(call.Params)), flag(y.Accumulates())
	p.result(y.Addr, y.Pixels(), y.Strides(), y.Stride[3])
	return []productParams{p}
}

// phase is one of the phases of the gradient of an image's rows (or columns) under a stride.
// Pixels first, first+stride, … meet only the taps tap, tap+every, … of the window. Pixel a of
// them meets pixel a + origin - t·dilation of dy at tap t of these. So each phase is a convolution
// without a stride, see BackwardLattice.
type phase struct{ first, pixels, tap, taps, every, origin, dilation int }

// phases are the phases of an extent. A window shorter than the stride leaves some without taps.
func phases(extent, out, k int, a calls.Axis) []phase {
	var all []phase
	for first := range min(a.Stride, extent) {
		l, taps := calls.BackwardLattice(extent, out, k, a, first)
		p := phase{first: first, pixels: l.Pixels, taps: l.Taps, every: taps.Every, dilation: l.Dilation}
		if l.Taps > 0 {
			p.tap = k - 1 - taps.First - (l.Taps-1)*taps.Every // of the window before turning
			p.origin = l.From + (l.Taps-1)*l.Dilation
		}
		all = append(all, p)
	}
	return all
}

// InputProducts are the phases of the gradient of the input, whose filters may be turned.
func (c *Convolution) InputProducts(call *calls.DeviceCall) []productParams {
	dx, dy, w, g := call.Args[0].Pixels(), call.Args[1].Pixels(), call.Args[2].Shape, calls.WindowingOf(call.Params)
	var all []productParams
	for _, rows := range phases(dx[1], dy[1], w[c.turned.i], g.Rows) {
		for _, columns := range phases(dx[2], dy[2], w[c.turned.j], g.Columns) {
			all = append(all, c.inputPhase(call, rows, columns))
		}
	}
	return all
}

func (c *Convolution) inputPhase(call *calls.DeviceCall, rows, columns phase) productParams {
	dx, dy, w := &call.Args[0], &call.Args[1], &call.Args[2]
	stride, size := calls.WindowingOf(call.Params).Rows.Stride, call.Type.SizeBytes()
	channels, filters := w.Shape[c.turned.c], w.Shape[c.turned.f]
	pixels := calls.Triple{dx.Shape[0], rows.pixels, columns.pixels}
	window := windowOperand(dy, sweep{
		pixels: pixels, rows: rows.taps, columns: columns.taps, step: 1, direction: -rows.dilation,
		originRow: rows.origin, originColumn: columns.origin,
	}).vectorised(call.Type, filters)
	i, j := c.turned.every(w, rows.every)
	other := mapOperand(c.turned.tap(w, size, rows.tap, columns.tap), calls.Triple{rows.taps, columns.taps, filters},
		calls.Triple{i, j, w.Stride[c.turned.f]}, channels, w.Stride[c.turned.c]).vectorised(call.Type, channels)
	p := productParams{a: window, b: other, m: window.pixels, n: other.taps, k: window.taps}
	p.add = flag(dx.Accumulates())
	place := func(a *calls.DeviceArg) (uint64, calls.Triple) {
		s := a.Strides()
		first := int64(rows.first*s[1] + columns.first*s[2])
		return a.Addr + uint64(first*size), calls.Triple{s[0], s[1] * stride, s[2] * stride}
	}
	address, strides := place(dx)
	p.result(address, pixels, strides, dx.Stride[3])
	if len(call.Args) > 3 {
		x := &call.Args[3]
		address, strides := place(x)
		p.companion(address, strides, x.Stride[3])
	}
	return p
}

// gradient is the product of the window of x, transposed, with dy over pixels; db is the
// operand of the bias, if there is one.
func (c *Convolution) gradient(call *calls.DeviceCall, dy productOperand, x, db int, pixels calls.Triple) productParams {
	dw := &call.Args[0]
	p := c.gradientFor(call, c.filters, dy, x, gradientSweep(call, c.filters, pixels))
	p.add = flag(dw.Accumulates())
	if db < len(call.Args) {
		p.bias, p.addBias = call.Args[db].Addr, flag(call.Args[db].Accumulates())
		p.withOnes()
	}
	return p
}

// gradientSweep moves the window of filters in operand 0 over the call's image.
func gradientSweep(call *calls.DeviceCall, at filterLayout, pixels calls.Triple) sweep {
	w := call.Args[0].Shape
	return forwardSweep(pixels, w[at.i], w[at.j], calls.WindowingOf(call.Params))
}

// gradientFor is the same product for operand 0 in a given layout.
func (c *Convolution) gradientFor(call *calls.DeviceCall, at filterLayout, dy productOperand, x int, s sweep) productParams {
	w := &call.Args[0]
	channels := w.Shape[at.c]
	window := windowOperand(&call.Args[x], s).vectorised(call.Type, channels)
	p := productParams{a: window, b: dy, m: window.taps, n: dy.taps, k: window.pixels}
	i, j := at.every(w, 1)
	p.result(w.Addr, calls.Triple{s.rows, s.columns, channels}, calls.Triple{i, j, w.Stride[at.c]}, w.Stride[at.f])
	return p
}

// withOnes adds the gradient of the bias.
func (p *productParams) withOnes() { p.a, p.m, p.ones = p.a.withOnes(), p.m+1, rowOfOnes }

// GradientProducts is the gradient of the weights, or with SGD their step. With Pool, dy is in its pooled form.
func (c *Convolution) GradientProducts(with calls.Attributes) products {
	return func(call *calls.DeviceCall) []productParams {
		dy, x := &call.Args[1], 2
		pixels := dy.Pixels()
		var other productOperand
		var pool productPooling
		if with.Has(calls.Pool) {
			x, pixels = 3, coveredPixels(call, dy)
			other, pool = unpooled(call, 1, 2)
		} else {
			other = imageOperand(dy).vectorised(call.Type, dy.Shape[3])
		}
		var p productParams
		if with.Has(calls.SGD) {
			p = c.descent(call, with, other, x, gradientSweep(call, asPyTorch, pixels))
		} else {
			p = c.gradient(call, other, x, x+1, pixels)
		}
		p.pool = pool
		return []productParams{p}
	}
}
