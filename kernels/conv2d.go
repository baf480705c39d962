package kernels

import "dahl/kernels/cuda"

// Convolution of images of c channels with f filters of i×j elements, as in
// PyTorch's conv2d (a cross-correlation). With s the stride, t rows of padding above the image, l
// columns to its left, and i, j running over the window:
//
//	y[n,f,u,v]   = b[f] + Σ_{c,i,j} w[f,c,i,j] · x[n,c,u·s+i-t,v·s+j-l]
//	dx[n,c,a,b]  = Σ_{f,i,j: u·s+i-t=a, v·s+j-l=b} w[f,c,i,j] · dy[n,f,u,v]
//	dw[f,c,i,j]  = Σ_{n,u,v} dy[n,f,u,v] · x[n,c,u·s+i-t,v·s+j-l]
//	db[f]        = Σ_{n,u,v} dy[n,f,u,v]
//
// Elements of x outside the image are zero. How many there are below it and to its right follows
// from the extents. Parts of a convolution may begin inside the image that they know: there t and
// l are negative.

var conv2d = Kernel{
	Op: "conv2d", Doc: "y = x ⋆ w + b: cross-correlation with padding and stride",
	Operands: []Operand{
		sums("y", "n f oh ow"),
		reads("x", Real, "n c "+windowIndices),
		reads("w", Real, "f c i j"),
		optional(reads("b", Real, "f")),
	},
	Params:   slidingParams,
	PerPoint: 2,
	Flops:    func(s *Spec) float64 { return biasFlops(s, 3, 0) },
	Variants: withRef("the sum as written", conv2dRef[float32], conv2dRef[float64],
		atLevels("conv2d.nhwc of a few samples at a time in the workspace", conv2dAt[float32], conv2dAt[float64], turnedWorkspace(0, 1, 2, false)),
		convolutionFirst.maps.variants(convolutionFirst.forwardProducts, slidingParams...),
		libraryConvolution{convolution: &convolutionFirst, kind: cuda.Forward, x: 1, y: 0, w: 2}.variants(slidingParams...)),
}

var conv2dDx = Kernel{
	Op: "conv2d.dx", Doc: "dx = gradient of conv2d with respect to x",
	Operands: []Operand{
		sums("dx", "n c "+windowIndices),
		reads("dy", Real, "n f oh ow"),
		reads("w", Real, "f c i j"),
	},
	Params:   slidingParams,
	PerPoint: 2,
	Variants: withRef("the sum as written", conv2dDxRef[float32], conv2dDxRef[float64],
		atLevels("conv2d.nhwc.dx of a few samples at a time in the workspace", conv2dDxAt[float32], conv2dDxAt[float64], turnedWorkspace(1, 0, 2, true)),
		convolutionFirst.maps.variants(convolutionFirst.inputProducts, slidingParams...),
		libraryConvolution{convolution: &convolutionFirst, kind: cuda.InputGradient, x: 0, y: 1, w: 2}.variants(slidingParams...)),
}

var conv2dDw = Kernel{
	Op: "conv2d.dw", Doc: "dw, db = gradients of conv2d with respect to w and b",
	Operands: []Operand{
		sums("dw", "f c i j"),
		reads("dy", Real, "n f oh ow"),
		reads("x", Real, "n c "+windowIndices),
		optional(sums("db", "f")),
	},
	Params:   slidingParams,
	PerPoint: 2,
	Flops:    func(s *Spec) float64 { return biasFlops(s, 3, 1) },
	Variants: withRef("the sum as written", conv2dDwRef[float32], conv2dDwRef[float64],
		atLevels("conv2d.nhwc.dw of a few samples at a time in the workspace", conv2dDwAt[float32], conv2dDwAt[float64], turnedWorkspace(1, 2, 0, false)),
		convolutionFirst.weights.variants(convolutionFirst.weightProducts, slidingParams...),
		libraryConvolution{convolution: &convolutionFirst, kind: cuda.WeightGradient, x: 2, y: 1, w: 0}.variants(slidingParams...)),
}

// windowIndices are rows and columns of an image under windows, and slidingParams are the
// parameters of their statement.
const windowIndices = "oh*stride+i-top ow*stride+j-left"

var (
	slidingParams = []string{"stride", "top", "left"}
	reluParams    = append(slidingParams[:3:3], "relu")
)

// windowing is how windows lie over an image. The first begins top rows above it and left columns
// to its left.
type windowing struct{ stride, top, left int }

// windowingOf are the windows of a call whose first parameters are slidingParams.
func windowingOf(params []float64) windowing {
	return windowing{int(params[0]), int(params[1]), int(params[2])}
}

// conv2dRef computes the sum over c, i, j in this order and adds the bias last.
func conv2dRef[T Float](call *Call) {
	y, x := map4Of[T](&call.Args[0]).as(&nhwcTiles), map4Of[T](&call.Args[1]).as(&nhwcTiles)
	convRef(call, y, x, map4Of[T](&call.Args[2]).as(&hwioTiles), 1, false)
}

// conv2dDxRef computes the sum over f, i, j in this order, then stores or adds it.
func conv2dDxRef[T Float](call *Call) {
	dx, dy, w := map4Of[T](&call.Args[0]), map4Of[T](&call.Args[1]), map4Of[T](&call.Args[2])
	g, add := windowingOf(call.Params), call.Args[0].Accumulates()
	dx.each(func(n, c, a, b int) {
		var sum T
		for f := range w.extent[0] {
			for i := range w.extent[2] {
				for j := range w.extent[3] {
					u, v := a+g.top-i, b+g.left-j
					if u < 0 || v < 0 || u%g.stride != 0 || v%g.stride != 0 {
						continue
					}
					u, v = u/g.stride, v/g.stride
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
