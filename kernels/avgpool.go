package kernels

import (
	"dahl/kernels/calls"
	"dahl/kernels/gpu"
	"dahl/kernels/simd"
)

// Average pooling. Positions of a window outside the image count as zeros, as in PyTorch with
// count_include_pad, so every window is divided by its number of positions.

var avgpool = Kernel{
	Op: "avgpool.nhwc", Doc: "y = mean of each window",
	Operands: []Operand{
		writes("y", Real, "n oh ow c"),
		reads("x", Real, "n "+poolIndices+" c"),
	},
	Params: poolParams, Options: poolOptions, Sizes: poolSizes, PerPoint: 1,
	Variants: withRef("the sum of each window in row-major order, divided", avgpoolRef[float32], avgpoolRef[float64],
		gpu.OnCUDAPool("a window per thread", gpu.PoolOnCUDA("avgpool", false))),
}

var avgpoolDx = Kernel{
	Op: "avgpool.nhwc.dx", Doc: "dx = dy/(height·width) spread over each window, summed over windows",
	Operands: []Operand{
		writes("dx", Real, "n "+poolIndices+" c"),
		reads("dy", Real, "n oh ow c"),
	},
	Params: poolParams, Options: poolOptions, Sizes: poolSizes, PerPoint: 1,
	Variants: withRef("zero, then add in the order of dy", avgpoolDxRef[float32], avgpoolDxRef[float64],
		gpu.OnCUDAPool("an element of dx per thread", gpu.SpreadOnCUDA("avgpool.dx", false))),
}

func avgpoolRef[T calls.Float](call *calls.Call) {
	p := poolingOf[T](call, 0, -1, 1)
	p.y.Each(func(n, u, v, c int) {
		var sum T
		p.eachPixel(n, u, v, c, func(e *T) { sum += *e })
		p.y.Elems[p.y.At(n, u, v, c)] = sum / T(p.height*p.width)
	})
}

func avgpoolDxRef[T calls.Float](call *calls.Call) {
	p := poolingOf[T](call, 1, -1, 0)
	p.x.Clear()
	p.y.Each(func(n, u, v, c int) {
		share := p.y.Elems[p.y.At(n, u, v, c)] / T(p.height*p.width)
		p.eachPixel(n, u, v, c, func(e *T) { *e += share })
	})
}

// eachPixel visits the elements of a window in row-major order.
func (p *pooling[T]) eachPixel(n, u, v, c int, visit func(e *T)) {
	for i := range p.height {
		for j := range p.width {
			a, b := u*p.stride+i-p.top, v*p.across+j-p.left
			if a >= 0 && a < p.x.Extent[1] && b >= 0 && b < p.x.Extent[2] {
				visit(&p.x.Elems[p.x.At(n, a, b, c)])
			}
		}
	}
}

// Average of all pixels of each channel. Sums go from 0 in the order of rows in all variants,
// so that these give the same bits.

var globalavgpool = Kernel{
	Op: "globalavgpool.nhwc", Doc: "y[n,c] = mean of x[n,h,w,c] over h and w",
	Operands: []Operand{writes("y", Real, "n 1 1 c"), reads("x", Real, "n h w c")},
	PerPoint: 1,
	Variants: withRef("channel by channel", meanPixels[float32], meanPixels[float64],
		atLevels("pixel by pixel, a vector of channels at a time", meanOfPixels[float32], meanOfPixels[float64], nil),
		gpu.GlobalOnCUDA()),
}

var globalavgpoolDx = Kernel{
	Op: "globalavgpool.nhwc.dx", Doc: "dx[n,h,w,c] = dy[n,c]/pixels",
	Operands: []Operand{writes("dx", Real, "n h w c"), reads("dy", Real, "n 1 1 c")},
	Params:   []string{"pixels"}, PerPoint: 1,
	Variants: withRef("pixel by pixel", spreadPixels[float32], spreadPixels[float64],
		atLevels("one pixel, and copies of it", copyPixels[float32], copyPixels[float64], nil)[:1], gpu.GlobalDxOnCUDA()),
}

// pixelsOf is a map with its dimensions in the order samples, channels, rows, columns.
func pixelsOf[T calls.Float](a *calls.Arg) calls.Map4[T] {
	m := calls.Map4Of[T](a)
	return m.As([4]int{0, 3, 1, 2})
}

func meanPixels[T calls.Float](call *calls.Call) {
	y, x := pixelsOf[T](&call.Args[0]), pixelsOf[T](&call.Args[1])
	y.Each(func(n, c, _, _ int) {
		var total T
		for h := range x.Extent[2] {
			for w := range x.Extent[3] {
				total += x.Elems[x.At(n, c, h, w)]
			}
		}
		y.Elems[y.At(n, c, 0, 0)] = total / T(x.Extent[2]*x.Extent[3])
	})
}

func spreadPixels[T calls.Float](call *calls.Call) {
	dx, dy := pixelsOf[T](&call.Args[0]), pixelsOf[T](&call.Args[1])
	pixels := T(call.Params[0]) // of the whole image
	dx.Each(func(n, c, h, w int) {
		dx.Elems[dx.At(n, c, h, w)] = dy.Elems[dy.At(n, c, 0, 0)] / pixels
	})
}

func meanOfPixels[T calls.Float](level simd.Level, call *calls.Call) {
	y, x := calls.Map4Of[T](&call.Args[0]), calls.Map4Of[T](&call.Args[1])
	for n := range y.Extent[0] {
		sum := y.Elems[y.At(n, 0, 0, 0):][:y.Extent[3]]
		clear(sum)
		for h := range x.Extent[1] {
			for w := range x.Extent[2] {
				simd.Add(level, sum, x.Elems[x.At(n, h, w, 0):][:x.Extent[3]])
			}
		}
		for c := range sum {
			sum[c] /= T(x.Extent[1] * x.Extent[2])
		}
	}
}

func copyPixels[T calls.Float](_ simd.Level, call *calls.Call) {
	dx, dy := calls.Map4Of[T](&call.Args[0]), calls.Map4Of[T](&call.Args[1])
	for n := range dx.Extent[0] {
		first := dx.Elems[dx.At(n, 0, 0, 0):][:dx.Extent[3]]
		for c := range first {
			first[c] = dy.Elems[dy.At(n, 0, 0, c)] / T(call.Params[0])
		}
		for h := range dx.Extent[1] {
			for w := range dx.Extent[2] {
				copy(dx.Elems[dx.At(n, h, w, 0):], first)
			}
		}
	}
}
