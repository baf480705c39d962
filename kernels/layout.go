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

// shift moves sequences along their positions. Before x, and behind it, y has the token c, or 0 without one:
//
//	y[n,t] = x[n,t-before] where x has that position, else c
//
// With one position before x, a class token begins the sequences. From the gradient of one position comes the
// gradient of its sequence, 0 at the other positions.
var shift = Kernel{
	Op: "shift", Doc: "y[n,t] = x[n,t-before], c or 0 where x has no such position",
	Operands: []Operand{writes("y", Real, "n t d"), reads("x", Real, "n t-before d"), optional(reads("c", Real, "1 d"))},
	Params:   []string{"before"},
	Variants: withRef("row by row", shiftRef[float32], shiftRef[float64], gpu.OnCUDA("an element per thread", gpu.ShiftOnCUDA)),
}

func shiftRef[T calls.Float](call *calls.Call) {
	y, x, before := &call.Args[0], &call.Args[1], int(call.Params[0])
	for n := range y.Shape[0] {
		for t := range y.Shape[1] {
			row := calls.Data[T](y)[n*y.Stride[0]+t*y.Stride[1]:][:y.Shape[2]]
			switch from := t - before; {
			case from >= 0 && from < x.Shape[1]:
				copy(row, calls.Data[T](x)[n*x.Stride[0]+from*x.Stride[1]:])
			case len(call.Args) > 2:
				copy(row, calls.Data[T](&call.Args[2]))
			default:
				clear(row)
			}
		}
	}
}
