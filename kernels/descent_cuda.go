package kernels

// Descent on CUDA devices of weights that read images with channels last is the product of the
// gradient over a result in PyTorch's layout of the weights. A block's stores then lie filters
// apart, which costs a sector for each element. Weights are few beside maps and stay in the
// second-level cache.

// asPyTorch is PyTorch's layout of filters.
var asPyTorch = filterLayout{i: 2, j: 3, c: 1, f: 0}

// descent is the step by the gradient with respect to dy; hyper is the operand with the rate.
func (c *convolution) descent(call *DeviceCall, dy productOperand, x, hyper int, s sweep) productParams {
	p := c.gradientFor(call, asPyTorch, dy, x, s)
	c.withOnes(&p)
	if p.descends(call, hyper) {
		vw := &call.Args[hyper+1]
		i, j := asPyTorch.every(vw, 1)
		p.beside(vw.Addr, c.taps(i, j, vw.Stride[asPyTorch.c]), vw.Stride[asPyTorch.f])
	}
	return p
}

func (c *convolution) descentProducts(call *DeviceCall) []productParams {
	dy := &call.Args[2]
	other := c.layout.mapOf(dy).vectorised(call.Type, c.layout.channels(dy))
	return []productParams{c.descent(call, other, 3, 4, gradientSweep(call, asPyTorch, c.layout.pixels(dy)))}
}

// unpooledDescent is the descent of a convolution with pooling.
func unpooledDescent(call *DeviceCall) []productParams {
	dy, pool := unpooled(call, 2, 3)
	p := convolutionLast.descent(call, dy, 4, 5, gradientSweep(call, asPyTorch, coveredPixels(call, &call.Args[2])))
	p.pool = pool
	return []productParams{p}
}

// denseNHWCDescent is the descent of a dense layer. It is that of a convolution with one pixel
// per sample whose window is the map.
func denseNHWCDescent(call *DeviceCall) []productParams {
	w, dy := &call.Args[0], &call.Args[2]
	pixels := triple{dy.Shape[0], 1, 1}
	other := mapOperand(dy.Addr, pixels, triple{dy.Stride[0], 0, 0}, dy.Shape[1], 1).vectorised(call.Type, dy.Shape[1])
	s := sweep{pixels: pixels, rows: w.Shape[asPyTorch.i], columns: w.Shape[asPyTorch.j], step: 1, direction: 1}
	return []productParams{convolutionLast.descent(call, other, 3, 4, s)}
}
