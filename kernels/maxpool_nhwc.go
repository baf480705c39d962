package kernels

import "dahl/kernels/simd"

// Max-pooling over channels-last images, otherwise as maxpool: without padding, the first of
// equal maxima in row-major order, NaN wins. The pixels of a window lie apart and their channels
// together. So a vector holds the channels of a pixel, and the windows need no shuffling.

var maxpoolNHWC = Kernel{
	Op: "maxpool.nhwc", Doc: "y = maximum of each window, index = its row-major position in the window; channels last",
	Operands: []Operand{
		writes("y", Real, "n oh ow c"),
		writes("index", Mask, "n oh ow c"),
		reads("x", Real, "n h w c"),
	},
	Params: []string{"size", "stride"},
	Work:   poolWork(0),
	Variants: withRef("a scan of each window", maxpoolNHWCRef[float32], maxpoolNHWCRef[float64],
		atLevels("rows of pixels, a vector of channels at a time", maxpoolNHWCAt[float32], maxpoolNHWCAt[float64], nil),
		onCUDA("a window per thread", poolOnCUDA("maxpool", true, 1))),
}

var maxpoolNHWCDx = Kernel{
	Op: "maxpool.nhwc.dx", Doc: "dx = dy at each window's maximum, summed over windows, else 0; index 255 passes nothing; channels last",
	Operands: []Operand{
		writes("dx", Real, "n h w c"),
		reads("dy", Real, "n oh ow c"),
		reads("index", Mask, "n oh ow c"),
	},
	Params: []string{"size", "stride"},
	Work:   perElement(1, 1),
	Variants: withRef("zero, then add in the order of dy", maxpoolNHWCDxRef[float32], maxpoolNHWCDxRef[float64],
		atLevels("each element written once where windows do not overlap", maxpoolNHWCDxAt[float32], maxpoolNHWCDxAt[float64], nil),
		onCUDA("an element of dx per thread", spreadOnCUDA("maxpool.dx", true, 1))),
}

// noMaximum is the index of a window through which no gradient passes, because a
// ReLU after the pooling was not positive there.
const noMaximum = simd.NoMaximum

func maxpoolNHWCRef[T Float](call *Call) {
	y, index, x := map4Of[T](&call.Args[0]), map4Of[uint8](&call.Args[1]), map4Of[T](&call.Args[2])
	size, stride := int(call.Params[0]), int(call.Params[1])
	y.each(func(n, u, v, c int) {
		most, position := x.elems[x.at(n, u*stride, v*stride, c)], 0
		for p := 1; p < size*size; p++ {
			e := x.elems[x.at(n, u*stride+p/size, v*stride+p%size, c)]
			if e > most || e != e && most == most {
				most, position = e, p
			}
		}
		y.elems[y.at(n, u, v, c)] = most
		index.elems[index.at(n, u, v, c)] = uint8(position)
	})
}

func maxpoolNHWCDxRef[T Float](call *Call) {
	dx, dy, index := map4Of[T](&call.Args[0]), map4Of[T](&call.Args[1]), map4Of[uint8](&call.Args[2])
	size, stride := int(call.Params[0]), int(call.Params[1])
	dx.clear()
	dy.each(func(n, u, v, c int) {
		if p := int(index.elems[index.at(n, u, v, c)]); p != noMaximum {
			dx.elems[dx.at(n, u*stride+p/size, v*stride+p%size, c)] += dy.elems[dy.at(n, u, v, c)]
		}
	})
}

func maxpoolNHWCAt[T Float](level simd.Level, call *Call) {
	p := poolsOf[T](call, 0, 1, 2, 1)
	p.each(func() { p.Max(level) })
}

func maxpoolNHWCDxAt[T Float](level simd.Level, call *Call) {
	spreadAt[T](level, call, 1)
}
