package kernels

import "dahl/kernels/cuda"

// Convolution of images of c channels with f filters of k×k elements, as in
// PyTorch's conv2d (a cross-correlation). With s the stride, p the padding and i, j
// running over the window:
//
//	y[n,f,u,v]   = b[f] + Σ_{c,i,j} w[f,c,i,j] · x[n,c,u·s+i-p,v·s+j-p]
//	dx[n,c,a,b]  = Σ_{f,i,j: u·s+i-p=a, v·s+j-p=b} w[f,c,i,j] · dy[n,f,u,v]
//	dw[f,c,i,j]  = Σ_{n,u,v} dy[n,f,u,v] · x[n,c,u·s+i-p,v·s+j-p]
//	db[f]        = Σ_{n,u,v} dy[n,f,u,v]
//
// Elements of x outside the image are zero.

var conv2d = Kernel{
	Op: "conv2d", Doc: "y = x ⋆ w + b: cross-correlation with padding and stride",
	Operands: []Operand{
		writes("y", Real, "n f oh ow"),
		reads("x", Real, "n c h w"),
		reads("w", Real, "f c k k"),
		optional(reads("b", Real, "f")),
	},
	Params: []string{"pad", "stride"},
	Work:   func(s *Spec) (float64, int64) { return convFlops(s, 0, 1, 2) + biasFlops(s, 3, 0), s.Bytes() },
	Variants: withRef("the sum as written", conv2dRef[float32], conv2dRef[float64],
		atLevels("conv2d.nhwc of a few samples at a time in the workspace", conv2dAt[float32], conv2dAt[float64], turnedWorkspace(0, 1, 2, false)),
		convolutionFirst.maps.variants(convolutionFirst.forwardProducts, "pad", "stride"),
		libraryConvolution{convolution: &convolutionFirst, kind: cuda.Forward, x: 1, y: 0, w: 2}.variants("pad", "stride")),
}

var conv2dDx = Kernel{
	Op: "conv2d.dx", Doc: "dx = gradient of conv2d with respect to x",
	Operands: []Operand{
		sums("dx", "n c h w"),
		reads("dy", Real, "n f oh ow"),
		reads("w", Real, "f c k k"),
	},
	Params: []string{"pad", "stride"},
	Work:   func(s *Spec) (float64, int64) { return convFlops(s, 1, 1, 2), s.Bytes() },
	Variants: withRef("the sum as written", conv2dDxRef[float32], conv2dDxRef[float64],
		atLevels("conv2d.nhwc.dx of a few samples at a time in the workspace", conv2dDxAt[float32], conv2dDxAt[float64], turnedWorkspace(1, 0, 2, true)),
		convolutionFirst.maps.variants(convolutionFirst.inputProducts, "pad", "stride"),
		libraryConvolution{convolution: &convolutionFirst, kind: cuda.InputGradient, x: 0, y: 1, w: 2}.variants("pad", "stride")),
}

var conv2dDw = Kernel{
	Op: "conv2d.dw", Doc: "dw, db = gradients of conv2d with respect to w and b",
	Operands: []Operand{
		sums("dw", "f c k k"),
		reads("dy", Real, "n f oh ow"),
		reads("x", Real, "n c h w"),
		optional(sums("db", "f")),
	},
	Params: []string{"pad", "stride"},
	Work:   func(s *Spec) (float64, int64) { return convFlops(s, 1, 1, 0) + biasFlops(s, 3, 1), s.Bytes() },
	Variants: withRef("the sum as written", conv2dDwRef[float32], conv2dDwRef[float64],
		atLevels("conv2d.nhwc.dw of a few samples at a time in the workspace", conv2dDwAt[float32], conv2dDwAt[float64], turnedWorkspace(1, 2, 0, false)),
		convolutionFirst.weights.variants(convolutionFirst.weightProducts, "pad", "stride"),
		libraryConvolution{convolution: &convolutionFirst, kind: cuda.WeightGradient, x: 2, y: 1, w: 0}.variants("pad", "stride")),
}

// convFlops counts all taps, those on the padding included. Operand y is the map of the filters w,
// which are counted by one of its dimensions.
func convFlops(s *Spec, y, filters, w int) float64 {
	return 2 * s.volume(y) * s.volume(w) / float64(s.Operands[y].Shape[filters])
}

// conv2dRef computes the sum over c, i, j in this order and adds the bias last.
func conv2dRef[T Float](call *Call) {
	y, x := map4Of[T](&call.Args[0]).as(&nhwcTiles), map4Of[T](&call.Args[1]).as(&nhwcTiles)
	convRef(call, y, x, map4Of[T](&call.Args[2]).as(&hwioTiles), 1, false)
}

// conv2dDxRef computes the sum over f, i, j in this order, then stores or adds it.
func conv2dDxRef[T Float](call *Call) {
	dx, dy, w := map4Of[T](&call.Args[0]), map4Of[T](&call.Args[1]), map4Of[T](&call.Args[2])
	pad, stride := int(call.Params[0]), int(call.Params[1])
	add := call.Args[0].Accumulates()
	dx.each(func(n, c, a, b int) {
		var sum T
		for f := range w.extent[0] {
			for i := range w.extent[2] {
				for j := range w.extent[3] {
					u, v := a+pad-i, b+pad-j
					if u < 0 || v < 0 || u%stride != 0 || v%stride != 0 {
						continue
					}
					u, v = u/stride, v/stride
					if u < dy.extent[2] && v < dy.extent[3] {
						sum += w.elems[w.at(f, c, i, j)] * dy.elems[dy.at(n, f, u, v)]
					}
				}
			}
		}
		put(&dx.elems[dx.at(n, c, a, b)], sum, add)
	})
}

func conv2dDwRef[T Float](call *Call) {
	dy, x := map4Of[T](&call.Args[1]).as(&nhwcTiles), map4Of[T](&call.Args[2]).as(&nhwcTiles)
	convDwRef(call, map4Of[T](&call.Args[0]).as(&hwioTiles), dy, x)
}
