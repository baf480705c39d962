package kernels

import "dahl/kernels/simd"

// Max-pooling over channels-last images, otherwise as maxpool. The pixels of a window lie apart and their channels
// together. So a vector holds the channels of a pixel, and the windows need no shuffling.

var maxpoolNHWC = Kernel{
	Op: "maxpool.nhwc", Doc: "y = maximum of each window, index = its row-major position in the window; channels last",
	Operands: []Operand{
		writes("y", Real, "n oh ow c"),
		writes("index", Mask, "n oh ow c"),
		reads("x", Real, "n "+poolIndices+" c"),
	},
	Params: poolParams, Options: poolOptions, Sizes: poolSizes, Check: func(s *Spec) error { return checkMaxima(s, 1) }, PerPoint: 1,
	Variants: withRef("a scan of each window", maxpoolRef[float32](1), maxpoolRef[float64](1),
		atLevels("rows of pixels, a vector of channels at a time", maxpoolNHWCAt[float32], maxpoolNHWCAt[float64], nil),
		onCUDAPool("a window per thread", poolOnCUDA("maxpool", true, 1))),
}

var maxpoolNHWCDx = Kernel{
	Op: "maxpool.nhwc.dx", Doc: "dx = dy at each window's maximum, summed over windows, else 0; index 255 passes nothing; channels last",
	Operands: []Operand{
		writes("dx", Real, "n "+poolIndices+" c"),
		reads("dy", Real, "n oh ow c"),
		reads("index", Mask, "n oh ow c"),
	},
	Params: poolParams, Options: poolOptions, Sizes: poolSizes, Flops: perElement(1, 1),
	Variants: withRef("zero, then add in the order of dy", maxpoolDxRef[float32](1), maxpoolDxRef[float64](1),
		atLevels("each element written once where windows do not overlap", maxpoolNHWCDxAt[float32], maxpoolNHWCDxAt[float64], nil),
		onCUDAPool("an element of dx per thread", spreadOnCUDA("maxpool.dx", true, 1))),
}

// noMaximum is the index of a window through which no gradient passes, because a
// ReLU after the pooling was not positive there.
const noMaximum = simd.NoMaximum

func maxpoolNHWCAt[T Float](level simd.Level, call *Call) {
	p := poolingOf[T](call, 0, 1, 2, 1)
	p.most(func(inner pooling[T]) {
		inner.eachMap(func() { inner.Max(level) })
	})
}

func maxpoolNHWCDxAt[T Float](level simd.Level, call *Call) {
	p := poolingOf[T](call, 1, 2, 0, 1)
	p.gradient(func(inner pooling[T]) { inner.spreadAt(level) })
}
