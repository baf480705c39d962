package kernels

import "dahl/kernels/simd"

// Conversions between layouts: pure moves of every element. Images are N×C×H×W or
// channels-last N×H×W×C; weights are PyTorch's F×C×K×K, or for channels-last
// convolutions K×K×C×F and, flipped in both directions of the window for the
// gradient of the input, K×K×F×C.

var toNHWC = Kernel{
	Op: "nhwc", Doc: "y[n,h,w,c] = x[n,c,h,w]",
	Operands: []Operand{writes("y", Real, "n h w c"), reads("x", Real, "n c h w")},
	Work:     perElement(0, 0),
	Variants: conversion(layoutTiles{from: [4]int{0, 2, 3, 1}, rows: []int{3}, columns: []int{1, 2}, outer: 0},
		moveNHWC[float32], moveNHWC[float64]),
}

var toNCHW = Kernel{
	Op: "nchw", Doc: "y[n,c,h,w] = x[n,h,w,c]",
	Operands: []Operand{writes("y", Real, "n c h w"), reads("x", Real, "n h w c")},
	Work:     perElement(0, 0),
	Variants: conversion(layoutTiles{from: [4]int{0, 3, 1, 2}, rows: []int{2, 3}, columns: []int{1}, outer: 0},
		moveNCHW[float32], moveNCHW[float64]),
}

var toHWIO = Kernel{
	Op: "hwio", Doc: "y[i,j,c,f] = w[f,c,i,j], and turned as hwoi gives it",
	Operands: []Operand{
		writes("y", Real, "k k c f"), reads("w", Real, "f c k k"),
		optional(writes("turned", Real, "k k f c")),
	},
	Work: perElement(0, 0),
	Variants: withRef("element by element", hwioRef[float32], hwioRef[float64],
		atLevels("matrices transposed in blocks", hwioAt[float32], hwioAt[float64], nil),
		bothOnCUDA(hwioTiles, hwoiTiles)),
}

var toHWOI = Kernel{
	Op: "hwoi", Doc: "y[i,j,f,c] = w[f,c,k-1-i,k-1-j]",
	Operands: []Operand{writes("y", Real, "k k f c"), reads("w", Real, "f c k k")},
	Work:     perElement(0, 0),
	Variants: conversion(hwoiTiles, moveHWOI[float32], moveHWOI[float64]),
}

var (
	hwioTiles = layoutTiles{from: [4]int{2, 3, 1, 0}, rows: []int{3}, columns: []int{2, 0, 1}, outer: -1}
	hwoiTiles = layoutTiles{from: [4]int{2, 3, 0, 1}, flipped: true, rows: []int{3}, columns: []int{0, 1}, outer: 2}
)

var toOIHW = Kernel{
	Op: "oihw", Doc: "y[f,c,i,j] = w[i,j,c,f]",
	Operands: []Operand{writes("y", Real, "f c k k"), reads("w", Real, "k k c f")},
	Work:     perElement(0, 0),
	Variants: conversion(layoutTiles{from: [4]int{3, 2, 0, 1}, rows: []int{1, 2, 3}, columns: []int{0}, outer: -1},
		moveOIHW[float32], moveOIHW[float64]),
}

// mover moves a map x to y, of another layout.
type mover[T Float] func(level simd.Level, y, x map4[T])

func (m mover[T]) at(level simd.Level, call *Call) {
	m(level, map4Of[T](&call.Args[0]), map4Of[T](&call.Args[1]))
}

// conversion is the variants of a layout change.
func conversion(l layoutTiles, move32 mover[float32], move64 mover[float64]) []Variant {
	return withRef("element by element",
		func(c *Call) { convertRef(map4Of[float32](&c.Args[0]), map4Of[float32](&c.Args[1]), &l) },
		func(c *Call) { convertRef(map4Of[float64](&c.Args[0]), map4Of[float64](&c.Args[1]), &l) },
		atLevels("matrices transposed in blocks", move32.at, move64.at, nil),
		onCUDA(layoutDoc, l.launches))
}

func hwioRef[T Float](call *Call) {
	convertRef(map4Of[T](&call.Args[0]), map4Of[T](&call.Args[1]), &hwioTiles)
	if len(call.Args) > 2 {
		convertRef(map4Of[T](&call.Args[2]), map4Of[T](&call.Args[1]), &hwoiTiles)
	}
}

func convertRef[T Float](y, x map4[T], layout *layoutTiles) {
	var step [4]int // in x, along each dimension of y
	for d, f := range layout.from {
		step[d] = x.stride[f]
	}
	y.each(func(i, j, k, l int) {
		p, q := i, j
		if layout.flipped {
			p, q = y.extent[0]-1-i, y.extent[1]-1-j
		}
		y.elems[y.at(i, j, k, l)] = x.elems[p*step[0]+q*step[1]+k*step[2]+l*step[3]]
	})
}

// moveNHWC transposes the C×HW matrix of each sample, or one per row of pixels if the rows lie
// apart.
func moveNHWC[T Float](level simd.Level, y, x map4[T]) {
	rows, pixels := y.extent[1], y.extent[2]
	if x.stride[2] == pixels && y.stride[1] == pixels*y.stride[2] {
		rows, pixels = 1, rows*pixels
	}
	t := simd.Transpose[T]{Rows: y.extent[3], Columns: pixels, ToRow: y.stride[2], FromRow: x.stride[1]}
	for n := range y.extent[0] {
		for h := range rows {
			t.To, t.From = y.elems[y.at(n, h, 0, 0):], x.elems[x.at(n, 0, h, 0):]
			t.Run(level)
		}
	}
}

// moveNCHW is moveNHWC backwards.
func moveNCHW[T Float](level simd.Level, y, x map4[T]) {
	rows, pixels := y.extent[2], y.extent[3]
	if y.stride[2] == pixels && x.stride[1] == pixels*x.stride[2] {
		rows, pixels = 1, rows*pixels
	}
	t := simd.Transpose[T]{Rows: pixels, Columns: y.extent[1], ToRow: y.stride[1], FromRow: x.stride[2]}
	for n := range y.extent[0] {
		for h := range rows {
			t.To, t.From = y.elems[y.at(n, 0, h, 0):], x.elems[x.at(n, h, 0, 0):]
			t.Run(level)
		}
	}
}

// Weights are moved one channel at a time. The windows of all its filters, or of one filter, are
// the rows of a matrix. The columns, which are the positions in the window, become rows. A window
// in a larger one is taken row by row.

func hwioAt[T Float](level simd.Level, call *Call) {
	moveHWIO(level, map4Of[T](&call.Args[0]), map4Of[T](&call.Args[1]))
	if len(call.Args) > 2 {
		moveHWOI(level, map4Of[T](&call.Args[2]), map4Of[T](&call.Args[1]))
	}
}

func moveHWIO[T Float](level simd.Level, y, w map4[T]) {
	parts, columns := windowParts(&w, &y)
	t := simd.Transpose[T]{Rows: w.extent[0], Columns: columns, ToRow: y.stride[1], FromRow: w.stride[0]}
	for c := range w.extent[1] {
		for i := range parts {
			t.To, t.From = y.elems[y.at(i, 0, c, 0):], w.elems[w.at(0, c, i, 0):]
			t.Run(level)
		}
	}
}

func moveHWOI[T Float](level simd.Level, y, w map4[T]) {
	parts, columns := windowParts(&w, &y)
	t := simd.Transpose[T]{Rows: w.extent[1], Columns: columns, ToRow: y.stride[1], FromRow: w.stride[1], Flip: true}
	for f := range w.extent[0] {
		for i := range parts {
			t.To, t.From = y.elems[y.at(parts-1-i, 0, f, 0):], w.elems[w.at(f, 0, i, 0):]
			t.Run(level)
		}
	}
}

func moveOIHW[T Float](level simd.Level, y, w map4[T]) {
	parts, rows := windowParts(&y, &w)
	t := simd.Transpose[T]{Rows: rows, Columns: y.extent[0], ToRow: y.stride[0], FromRow: w.stride[1]}
	for c := range y.extent[1] {
		for i := range parts {
			t.To, t.From = y.elems[y.at(0, c, i, 0):], w.elems[w.at(i, 0, c, 0):]
			t.Run(level)
		}
	}
}

// windowParts splits a window of PyTorch's layout and of a channels-last one into parts with
// positions at one distance: the window, or its rows.
func windowParts[T Float](pytorch, last *map4[T]) (parts, positions int) {
	k := pytorch.extent[2]
	if pytorch.stride[2] == k && last.stride[0] == k*last.stride[1] {
		return 1, k * k
	}
	return k, k
}
