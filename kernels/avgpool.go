package kernels

// Average pooling without padding over size×size windows.

var avgpool = Kernel{
	Op: "avgpool", Doc: "y = mean of each window",
	Operands: []Operand{
		writes("y", Real, "n c oh ow"),
		reads("x", Real, "n c h w"),
	},
	Params: []string{"size", "stride"},
	Work:   poolWork(0),
	Variants: withRef("the sum of each window in row-major order, divided", avgpoolRef[float32], avgpoolRef[float64],
		onCUDA("a window per thread", poolOnCUDA("avgpool", false, 2))),
}

var avgpoolDx = Kernel{
	Op: "avgpool.dx", Doc: "dx = dy/size² spread over each window, summed over windows",
	Operands: []Operand{
		writes("dx", Real, "n c h w"),
		reads("dy", Real, "n c oh ow"),
	},
	Params: []string{"size", "stride"},
	Work:   poolWork(1),
	Variants: withRef("zero, then add in the order of dy", avgpoolDxRef[float32], avgpoolDxRef[float64],
		onCUDA("an element of dx per thread", spreadOnCUDA("avgpool.dx", false, 2))),
}

func avgpoolRef[T Float](call *Call) {
	y, x := map4Of[T](&call.Args[0]), map4Of[T](&call.Args[1])
	size, stride := int(call.Params[0]), int(call.Params[1])
	y.each(func(n, c, u, v int) {
		var sum T
		for i := range size {
			at := x.at(n, c, u*stride+i, v*stride)
			for _, e := range x.elems[at : at+size] {
				sum += e
			}
		}
		y.elems[y.at(n, c, u, v)] = sum / T(size*size)
	})
}

func avgpoolDxRef[T Float](call *Call) {
	dx, dy := map4Of[T](&call.Args[0]), map4Of[T](&call.Args[1])
	size, stride := int(call.Params[0]), int(call.Params[1])
	dx.clear()
	dy.each(func(n, c, u, v int) {
		share := dy.elems[dy.at(n, c, u, v)] / T(size*size)
		for i := range size {
			at := dx.at(n, c, u*stride+i, v*stride)
			for j := range size {
				dx.elems[at+j] += share
			}
		}
	})
}
