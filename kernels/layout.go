package kernels

import "dahl/kernels/simd"

// Conversions between layouts: pure moves of every element. Images are N×C×H×W or
// channels-last N×H×W×C; weights are PyTorch's F×C×I×J, or for channels-last
// convolutions I×J×C×F and, flipped in both directions of the window for the
// gradient of the input, I×J×F×C.

var toNHWC = Kernel{
	Op: "nhwc", Doc: "y[n,h,w,c] = x[n,c,h,w]",
	Operands: []Operand{writes("y", Real, "n h w c"), reads("x", Real, "n c h w")},
	Variants: conversion(&nhwcTiles),
}

var toNCHW = Kernel{
	Op: "nchw", Doc: "y[n,c,h,w] = x[n,h,w,c]",
	Operands: []Operand{writes("y", Real, "n c h w"), reads("x", Real, "n h w c")},
	Variants: conversion(&nchwTiles),
}

var toHWIO = Kernel{
	Op: "hwio", Doc: "y[i,j,c,f] = w[f,c,i,j], and turned as hwoi gives it",
	Operands: []Operand{
		writes("y", Real, "i j c f"), reads("w", Real, "f c i j"),
		optional(writes("turned", Real, "-i -j f c")),
	},
	Variants: conversion(&hwioTiles, &hwoiTiles),
}

var toHWOI = Kernel{
	Op: "hwoi", Doc: "y[i,j,f,c] = w[f,c,I-1-i,J-1-j] for windows of I×J",
	Operands: []Operand{writes("y", Real, "-i -j f c"), reads("w", Real, "f c i j")},
	Variants: conversion(&hwoiTiles),
}

var toOIHW = Kernel{
	Op: "oihw", Doc: "y[f,c,i,j] = w[i,j,c,f]",
	Operands: []Operand{writes("y", Real, "f c i j"), reads("w", Real, "i j c f")},
	Variants: conversion(&oihwTiles),
}

var (
	nhwcTiles = layoutTiles{from: [4]int{0, 2, 3, 1}, rows: []int{3}, columns: []int{1, 2}, outer: 0}
	nchwTiles = layoutTiles{from: [4]int{0, 3, 1, 2}, rows: []int{2, 3}, columns: []int{1}, outer: 0}
	hwioTiles = layoutTiles{from: [4]int{2, 3, 1, 0}, rows: []int{3}, columns: []int{2, 0, 1}, outer: -1}
	hwoiTiles = layoutTiles{from: [4]int{2, 3, 0, 1}, flipped: true, rows: []int{3}, columns: []int{0, 1}, outer: 2}
	oihwTiles = layoutTiles{from: [4]int{3, 2, 0, 1}, rows: []int{1, 2, 3}, columns: []int{0}, outer: -1}
)

// conversion is the variants of a change of layout from operand 1 to operand 0, and of a second
// one to the optional operand 2.
func conversion(l ...*layoutTiles) []Variant {
	launches := moveOnCUDA(l[0])
	if len(l) > 1 {
		launches = bothOnCUDA(l[0], l[1])
	}
	return withRef("element by element",
		func(c *Call) { convert(simd.Go, c, l, convertRef[float32]) }, func(c *Call) { convert(simd.Go, c, l, convertRef[float64]) },
		atLevels("matrices transposed in blocks",
			func(level simd.Level, c *Call) { convert(level, c, l, moveTo[float32]) },
			func(level simd.Level, c *Call) { convert(level, c, l, moveTo[float64]) }, nil),
		onCUDA("tiles of 32×32 through shared memory", launches))
}

func convert[T Float](level simd.Level, call *Call, l []*layoutTiles, move func(simd.Level, *layoutTiles, map4[T], map4[T])) {
	for i, layout := range l {
		if 2*i < len(call.Args) {
			move(level, layout, map4Of[T](&call.Args[2*i]), map4Of[T](&call.Args[1]))
		}
	}
}

func convertRef[T Float](_ simd.Level, layout *layoutTiles, y, x map4[T]) {
	seen := x.as(layout.from)
	y.each(func(i, j, k, l int) {
		p, q := i, j
		if layout.flipped {
			p, q = y.extent[0]-1-i, y.extent[1]-1-j
		}
		y.elems[y.at(i, j, k, l)] = x.elems[seen.at(p, q, k, l)]
	})
}

// moveTo transposes matrices. Their rows are the innermost of the dimensions that the layout calls
// rows, with those around it that leave no gap in either map, and their columns likewise: a sample
// of an image whole or by its rows of pixels, and a channel of the windows of all filters.
func moveTo[T Float](level simd.Level, layout *layoutTiles, y, x map4[T]) {
	var in [4]int // strides in x along the dimensions of y
	for d, f := range layout.from {
		in[d] = x.stride[f]
	}
	rest := y.extent // 1 along the dimensions of the matrices
	row, rows := joined(layout.rows, &y.stride, &in, &rest)
	column, columns := joined(layout.columns, &y.stride, &in, &rest)
	t := simd.Transpose[T]{Rows: rows, Columns: columns, ToRow: y.stride[column], FromRow: in[row], Flip: layout.flipped}
	for i := range rest[0] {
		for j := range rest[1] {
			for k := range rest[2] {
				p, q := i, j
				if layout.flipped {
					p, q = rest[0]-1-i, rest[1]-1-j
				}
				t.To, t.From = y.elems[y.at(p, q, k, 0):], x.elems[i*in[0]+j*in[1]+k*in[2]:]
				t.Run(level)
			}
		}
	}
}

// joined returns the last of some dimensions and its extent together with those around it that
// leave no gap in two maps of these strides. It leaves an extent of 1 of them in rest.
func joined(dims []int, y, x, rest *[4]int) (inner, extent int) {
	inner, extent = dims[len(dims)-1], 1
	for i := len(dims) - 1; i >= 0; i-- {
		d := dims[i]
		if y[d] != extent*y[inner] || x[d] != extent*x[inner] {
			break
		}
		extent *= rest[d]
		rest[d] = 1
	}
	return inner, extent
}
