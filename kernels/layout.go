package kernels

import (
	"dahl/kernels/calls"
	"dahl/kernels/cpu"
	"dahl/kernels/gpu"
	"dahl/kernels/simd"
)

// Conversions between layouts: pure moves of every element. Images are N×C×H×W or
// channels-last N×H×W×C; weights are PyTorch's F×C×I×J, or for channels-last
// convolutions I×J×C×F and, flipped in both directions of the window for the
// gradient of the input, I×J×F×C.

var toNHWC = Kernel{
	Op: "nhwc", Doc: "y[n,h,w,c] = x[n,c,h,w]",
	Operands: []Operand{writes("y", Real, "n h w c"), reads("x", Real, "n c h w")},
	Variants: conversion(&calls.NhwcTiles),
}

var toNCHW = Kernel{
	Op: "nchw", Doc: "y[n,c,h,w] = x[n,h,w,c]",
	Operands: []Operand{writes("y", Real, "n c h w"), reads("x", Real, "n h w c")},
	Variants: conversion(&calls.NchwTiles),
}

var toHWIO = Kernel{
	Op: "hwio", Doc: "y[i,j,c,f] = w[f,c,i,j], and turned as hwoi gives it",
	Operands: []Operand{
		writes("y", Real, "i j c f"), reads("w", Real, "f c i j"),
		optional(writes("turned", Real, "-i -j f c")),
	},
	Variants: conversion(&calls.HwioTiles, &calls.HwoiTiles),
}

var toHWOI = Kernel{
	Op: "hwoi", Doc: "y[i,j,f,c] = w[f,c,I-1-i,J-1-j] for windows of I×J",
	Operands: []Operand{writes("y", Real, "-i -j f c"), reads("w", Real, "f c i j")},
	Variants: conversion(&calls.HwoiTiles),
}

var toOIHW = Kernel{
	Op: "oihw", Doc: "y[f,c,i,j] = w[i,j,c,f]",
	Operands: []Operand{writes("y", Real, "f c i j"), reads("w", Real, "i j c f")},
	Variants: conversion(&calls.OihwTiles),
}

// conversion is the variants of a change of layout from operand 1 to operand 0, and of a second
// one to the optional operand 2.
func conversion(l ...*calls.LayoutTiles) []calls.Variant {
	launches := gpu.MoveOnCUDA(l[0])
	if len(l) > 1 {
		launches = gpu.BothOnCUDA(l[0], l[1])
	}
	return withRef("element by element",
		func(c *calls.Call) { convert(simd.Go, c, l, convertRef[float32]) }, func(c *calls.Call) { convert(simd.Go, c, l, convertRef[float64]) },
		atLevels("matrices transposed in blocks",
			func(level simd.Level, c *calls.Call) { convert(level, c, l, cpu.MoveTo[float32]) },
			func(level simd.Level, c *calls.Call) { convert(level, c, l, cpu.MoveTo[float64]) }, nil),
		gpu.OnCUDA("tiles of 32×32 through shared memory", launches))
}

func convert[T calls.Float](level simd.Level, call *calls.Call, l []*calls.LayoutTiles, move func(simd.Level, *calls.LayoutTiles, calls.Map4[T], calls.Map4[T])) {
	for i, layout := range l {
		if 2*i < len(call.Args) {
			move(level, layout, calls.Map4Of[T](&call.Args[2*i]), calls.Map4Of[T](&call.Args[1]))
		}
	}
}

func convertRef[T calls.Float](_ simd.Level, layout *calls.LayoutTiles, y, x calls.Map4[T]) {
	seen := x.As(layout.From)
	y.Each(func(i, j, k, l int) {
		p, q := i, j
		if layout.Flipped {
			p, q = y.Extent[0]-1-i, y.Extent[1]-1-j
		}
		y.Elems[y.At(i, j, k, l)] = x.Elems[seen.At(p, q, k, l)]
	})
}
