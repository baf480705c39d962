package gpu

import "dahl/kernels/calls"

// Descent on CUDA devices of weights that read images with channels last is the product of the
// gradient over a result in PyTorch's layout of the weights. A block's stores then lie filters
// apart, which costs a sector for each element. Weights are few in comparison with maps and stay in the
// second-level cache.

// asPyTorch is PyTorch's layout of filters.
var asPyTorch = filterLayout{i: 2, j: 3, c: 1, f: 0}

// descent is the step by the gradient with respect to dy. The operand with the rate follows x.
func (c *Convolution) descent(call *calls.DeviceCall, with calls.Attributes, dy productOperand, x int, s sweep) productParams {
	p := c.gradientFor(call, asPyTorch, dy, x, s)
	_, vw := calls.AfterHyper(x+1, with)
	if !with.Has(calls.NoBias) {
		p.withOnes()
	}
	if p.descends(call, x+1, with) {
		v := &call.Args[vw]
		i, j := asPyTorch.every(v, 1)
		p.companion(v.Addr, calls.Triple{i, j, v.Stride[asPyTorch.c]}, v.Stride[asPyTorch.f])
	}
	return p
}

// descends makes the gradient a step of descent of the weights, and of the bias if the gradient has a place of ones. It
// reports whether there are velocities. The last parameters of the call are the parameters of sgd.
func (p *productParams) descends(call *calls.DeviceCall, hyper int, with calls.Attributes) bool {
	params := call.Params[len(call.Params)-len(calls.SgdParamNames):]
	b, vw := calls.AfterHyper(hyper, with)
	p.after, p.hyper = afterDescend, call.Args[hyper].Addr
	p.momentum, p.nesterov, p.weightDecay = params[0], flag(params[1] != 0), params[2]
	if b > 0 {
		p.bias = call.Args[b].Addr
	}
	if b > 0 && p.momentum != 0 {
		p.biasVelocity = call.Args[vw+1].Addr
	}
	return p.momentum != 0
}

// MappedDescent is the descent of a dense layer that is Mapped: of a convolution with one pixel
// per sample and the map as its window.
func MappedDescent(with calls.Attributes) products {
	return func(call *calls.DeviceCall) []productParams {
		w, dy := &call.Args[0], &call.Args[1]
		pixels := calls.Triple{dy.Shape[0], 1, 1}
		other := mapOperand(dy.Addr, pixels, calls.Triple{dy.Stride[0], 0, 0}, dy.Shape[1], 1).vectorised(call.Type, dy.Shape[1])
		s := sweep{pixels: pixels, rows: w.Shape[asPyTorch.i], columns: w.Shape[asPyTorch.j], step: 1, direction: 1}
		return []productParams{ConvolutionLast.descent(call, with, other, 2, s)}
	}
}
