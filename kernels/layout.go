package kernels

import (
	"slices"

	"dahl/kernels/simd"
)

// Conversions between layouts: pure moves of every element. Images are N×C×H×W or
// channels-last N×H×W×C; weights are PyTorch's F×C×K×K, or for channels-last
// convolutions K×K×C×F and, flipped in both directions of the window for the
// gradient of the input, K×K×F×C.

var toNHWC = Kernel{
	Op: "nhwc", Doc: "y[n,h,w,c] = x[n,c,h,w]",
	Operands: []Operand{writes("y", Real, "n h w c"), reads("x", Real, "n c h w")},
	Work:     perElement(0, 0),
	Variants: conversion(&nhwcTiles),
}

var toNCHW = Kernel{
	Op: "nchw", Doc: "y[n,c,h,w] = x[n,h,w,c]",
	Operands: []Operand{writes("y", Real, "n c h w"), reads("x", Real, "n h w c")},
	Work:     perElement(0, 0),
	Variants: conversion(&nchwTiles),
}

var toHWIO = Kernel{
	Op: "hwio", Doc: "y[i,j,c,f] = w[f,c,i,j], and turned as hwoi gives it",
	Operands: []Operand{
		writes("y", Real, "k k c f"), reads("w", Real, "f c k k"),
		optional(writes("turned", Real, "k k f c")),
	},
	Work:     perElement(0, 0),
	Variants: conversion(&hwioTiles, &hwoiTiles),
}

var toHWOI = Kernel{
	Op: "hwoi", Doc: "y[i,j,f,c] = w[f,c,k-1-i,k-1-j]",
	Operands: []Operand{writes("y", Real, "k k f c"), reads("w", Real, "f c k k")},
	Work:     perElement(0, 0),
	Variants: conversion(&hwoiTiles),
}

var toOIHW = Kernel{
	Op: "oihw", Doc: "y[f,c,i,j] = w[i,j,c,f]",
	Operands: []Operand{writes("y", Real, "f c k k"), reads("w", Real, "k k c f")},
	Work:     perElement(0, 0),
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
	launches := l[0].launches
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
	seen := x.as(layout)
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
	seen, rest := x.as(layout), map4[T]{extent: y.extent}
	join := func(dims []int) (inner, extent int) {
		inner, extent = dims[len(dims)-1], 1
		for _, d := range slices.Backward(dims) {
			if y.stride[d] != extent*y.stride[inner] || seen.stride[d] != extent*seen.stride[inner] {
				break
			}
			extent *= y.extent[d]
			rest.extent[d] = 1
		}
		return inner, extent
	}
	row, rows := join(layout.rows)
	column, columns := join(layout.columns)
	t := simd.Transpose[T]{Rows: rows, Columns: columns, ToRow: y.stride[column], FromRow: seen.stride[row], Flip: layout.flipped}
	rest.each(func(i, j, k, l int) {
		p, q := i, j
		if layout.flipped {
			p, q = rest.extent[0]-1-i, rest.extent[1]-1-j
		}
		t.To, t.From = y.elems[y.at(p, q, k, l):], x.elems[seen.at(i, j, k, l):]
		t.Run(level)
	})
}
