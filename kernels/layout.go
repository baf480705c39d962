package kernels

// Conversions between layouts: pure moves of every element. Images are N×C×H×W or
// channels-last N×H×W×C; weights are PyTorch's F×C×K×K, or for channels-last
// convolutions K×K×C×F and, flipped in both directions of the window for the
// gradient of the input, K×K×F×C.

var toNHWC = conversion("nhwc", "y[n,h,w,c] = x[n,c,h,w]", "n h w c", "n c h w", [4]int{0, 2, 3, 1}, false)
var toNCHW = conversion("nchw", "y[n,c,h,w] = x[n,h,w,c]", "n c h w", "n h w c", [4]int{0, 3, 1, 2}, false)
var toHWIO = conversion("hwio", "y[i,j,c,f] = w[f,c,i,j]", "k k c f", "f c k k", [4]int{2, 3, 1, 0}, false)
var toHWOI = conversion("hwoi", "y[i,j,f,c] = w[f,c,k-1-i,k-1-j]", "k k f c", "f c k k", [4]int{2, 3, 0, 1}, true)
var toOIHW = conversion("oihw", "y[f,c,i,j] = w[i,j,c,f]", "f c k k", "k k c f", [4]int{3, 2, 0, 1}, false)

// conversion is the line of one layout change. Dimension d of the output is dimension
// from[d] of the input; flipped reverses the first two dimensions of the output.
func conversion(op, doc, to, dims string, from [4]int, flipped bool) Kernel {
	in := "x"
	if dims[0] != 'n' {
		in = "w"
	}
	return Kernel{
		Op: op, Doc: doc,
		Operands: []Operand{writes("y", Real, to), reads(in, Real, dims)},
		Work:     perElement(0, 0),
		Variants: []Variant{{
			Name: "ref", Doc: "element by element",
			Run32: func(c *Call) { convertRef[float32](c, from, flipped) },
			Run64: func(c *Call) { convertRef[float64](c, from, flipped) },
		}},
	}
}

func convertRef[T Float](call *Call, from [4]int, flipped bool) {
	y, x := map4Of[T](&call.Args[0]), map4Of[T](&call.Args[1])
	var step [4]int // in x, along each dimension of y
	for d, f := range from {
		step[d] = x.stride[f]
	}
	for i := range y.extent[0] {
		for j := range y.extent[1] {
			for k := range y.extent[2] {
				for l := range y.extent[3] {
					p, q := i, j
					if flipped {
						p, q = y.extent[0]-1-i, y.extent[1]-1-j
					}
					y.elems[y.at(i, j, k, l)] = x.elems[p*step[0]+q*step[1]+k*step[2]+l*step[3]]
				}
			}
		}
	}
}
