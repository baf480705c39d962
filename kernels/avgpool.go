package kernels

// Average pooling. Positions of a window beside the image count as zeros, as in PyTorch with
// count_include_pad, so every window is divided by its number of positions.

var avgpool = Kernel{
	Op: "avgpool", Doc: "y = mean of each window",
	Operands: []Operand{
		writes("y", Real, "n c oh ow"),
		reads("x", Real, "n c "+poolIndices),
	},
	Params: poolParams, Options: poolOptions, Sizes: poolSizes, PerPoint: 1,
	Variants: withRef("the sum of each window in row-major order, divided", avgpoolRef[float32], avgpoolRef[float64],
		onCUDAPool("a window per thread", poolOnCUDA("avgpool", false, 2))),
}

var avgpoolDx = Kernel{
	Op: "avgpool.dx", Doc: "dx = dy/(height·width) spread over each window, summed over windows",
	Operands: []Operand{
		writes("dx", Real, "n c "+poolIndices),
		reads("dy", Real, "n c oh ow"),
	},
	Params: poolParams, Options: poolOptions, Sizes: poolSizes, PerPoint: 1,
	Variants: withRef("zero, then add in the order of dy", avgpoolDxRef[float32], avgpoolDxRef[float64],
		onCUDAPool("an element of dx per thread", spreadOnCUDA("avgpool.dx", false, 2))),
}

func avgpoolRef[T Float](call *Call) {
	p := poolingOf[T](call, 0, -1, 1, 2)
	p.y.each(func(n, c, u, v int) {
		var sum T
		p.eachPixel(n, c, u, v, func(e *T) { sum += *e })
		p.y.elems[p.y.at(n, c, u, v)] = sum / T(p.height*p.width)
	})
}

func avgpoolDxRef[T Float](call *Call) {
	p := poolingOf[T](call, 1, -1, 0, 2)
	p.x.clear()
	p.y.each(func(n, c, u, v int) {
		share := p.y.elems[p.y.at(n, c, u, v)] / T(p.height*p.width)
		p.eachPixel(n, c, u, v, func(e *T) { *e += share })
	})
}

// eachPixel visits the elements of a window in row-major order. Channels come before rows.
func (p *pooling[T]) eachPixel(n, c, u, v int, visit func(e *T)) {
	for i := range p.height {
		for j := range p.width {
			a, b := u*p.stride+i-p.top, v*p.across+j-p.left
			if a >= 0 && a < p.x.extent[2] && b >= 0 && b < p.x.extent[3] {
				visit(&p.x.elems[p.x.at(n, c, a, b)])
			}
		}
	}
}
