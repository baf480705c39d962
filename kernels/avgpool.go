package kernels

// Average pooling. Positions of a window beside the image count as zeros, as in PyTorch with
// count_include_pad, so every window is divided by its number of positions.

var avgpool = Kernel{
	Op: "avgpool.nhwc", Doc: "y = mean of each window",
	Operands: []Operand{
		writes("y", Real, "n oh ow c"),
		reads("x", Real, "n "+poolIndices+" c"),
	},
	Params: poolParams, Options: poolOptions, Sizes: poolSizes, PerPoint: 1,
	Variants: withRef("the sum of each window in row-major order, divided", avgpoolRef[float32], avgpoolRef[float64],
		onCUDAPool("a window per thread", poolOnCUDA("avgpool", false))),
}

var avgpoolDx = Kernel{
	Op: "avgpool.nhwc.dx", Doc: "dx = dy/(height·width) spread over each window, summed over windows",
	Operands: []Operand{
		writes("dx", Real, "n "+poolIndices+" c"),
		reads("dy", Real, "n oh ow c"),
	},
	Params: poolParams, Options: poolOptions, Sizes: poolSizes, PerPoint: 1,
	Variants: withRef("zero, then add in the order of dy", avgpoolDxRef[float32], avgpoolDxRef[float64],
		onCUDAPool("an element of dx per thread", spreadOnCUDA("avgpool.dx", false))),
}

func avgpoolRef[T Float](call *Call) {
	p := poolingOf[T](call, 0, -1, 1)
	p.y.each(func(n, u, v, c int) {
		var sum T
		p.eachPixel(n, u, v, c, func(e *T) { sum += *e })
		p.y.elems[p.y.at(n, u, v, c)] = sum / T(p.height*p.width)
	})
}

func avgpoolDxRef[T Float](call *Call) {
	p := poolingOf[T](call, 1, -1, 0)
	p.x.clear()
	p.y.each(func(n, u, v, c int) {
		share := p.y.elems[p.y.at(n, u, v, c)] / T(p.height*p.width)
		p.eachPixel(n, u, v, c, func(e *T) { *e += share })
	})
}

// eachPixel visits the elements of a window in row-major order.
func (p *pooling[T]) eachPixel(n, u, v, c int, visit func(e *T)) {
	for i := range p.height {
		for j := range p.width {
			a, b := u*p.stride+i-p.top, v*p.across+j-p.left
			if a >= 0 && a < p.x.extent[1] && b >= 0 && b < p.x.extent[2] {
				visit(&p.x.elems[p.x.at(n, a, b, c)])
			}
		}
	}
}
