package kernels

import "dahl/kernels/simd"

// Average of all pixels of each channel. Sums go from 0 in the order of rows in all variants,
// so that these give the same bits.

var globalavgpool = Kernel{
	Op: "globalavgpool.nhwc", Doc: "y[n,c] = mean of x[n,h,w,c] over h and w",
	Operands: []Operand{writes("y", Real, "n 1 1 c"), reads("x", Real, "n h w c")},
	PerPoint: 1,
	Variants: withRef("channel by channel", meanPixels[float32], meanPixels[float64],
		atLevels("pixel by pixel, a vector of channels at a time", meanOfPixels[float32], meanOfPixels[float64], nil),
		globalOnCUDA()),
}

var globalavgpoolDx = Kernel{
	Op: "globalavgpool.nhwc.dx", Doc: "dx[n,h,w,c] = dy[n,c]/pixels",
	Operands: []Operand{writes("dx", Real, "n h w c"), reads("dy", Real, "n 1 1 c")},
	Params:   []string{"pixels"}, PerPoint: 1,
	Variants: withRef("pixel by pixel", spreadPixels[float32], spreadPixels[float64],
		atLevels("one pixel, and copies of it", copyPixels[float32], copyPixels[float64], nil)[:1], globalDxOnCUDA()),
}

// pixelsOf is a map with its dimensions in the order samples, channels, rows, columns.
func pixelsOf[T Float](a *Arg) map4[T] {
	m := map4Of[T](a)
	return m.as([4]int{0, 3, 1, 2})
}

func meanPixels[T Float](call *Call) {
	y, x := pixelsOf[T](&call.Args[0]), pixelsOf[T](&call.Args[1])
	y.each(func(n, c, _, _ int) {
		var total T
		for h := range x.extent[2] {
			for w := range x.extent[3] {
				total += x.elems[x.at(n, c, h, w)]
			}
		}
		y.elems[y.at(n, c, 0, 0)] = total / T(x.extent[2]*x.extent[3])
	})
}

func spreadPixels[T Float](call *Call) {
	dx, dy := pixelsOf[T](&call.Args[0]), pixelsOf[T](&call.Args[1])
	pixels := T(call.Params[0]) // of the whole image
	dx.each(func(n, c, h, w int) {
		dx.elems[dx.at(n, c, h, w)] = dy.elems[dy.at(n, c, 0, 0)] / pixels
	})
}

func meanOfPixels[T Float](level simd.Level, call *Call) {
	y, x := map4Of[T](&call.Args[0]), map4Of[T](&call.Args[1])
	for n := range y.extent[0] {
		sum := y.elems[y.at(n, 0, 0, 0):][:y.extent[3]]
		clear(sum)
		for h := range x.extent[1] {
			for w := range x.extent[2] {
				simd.Add(level, sum, x.elems[x.at(n, h, w, 0):][:x.extent[3]])
			}
		}
		for c := range sum {
			sum[c] /= T(x.extent[1] * x.extent[2])
		}
	}
}

func copyPixels[T Float](_ simd.Level, call *Call) {
	dx, dy := map4Of[T](&call.Args[0]), map4Of[T](&call.Args[1])
	for n := range dx.extent[0] {
		first := dx.elems[dx.at(n, 0, 0, 0):][:dx.extent[3]]
		for c := range first {
			first[c] = dy.elems[dy.at(n, 0, 0, c)] / T(call.Params[0])
		}
		for h := range dx.extent[1] {
			for w := range dx.extent[2] {
				copy(dx.elems[dx.at(n, h, w, 0):], first)
			}
		}
	}
}
