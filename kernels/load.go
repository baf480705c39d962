package kernels

import (
	"dahl/kernels/calls"
	"dahl/kernels/gpu"
	"dahl/kernels/simd"
)

// Building a batch: the rows of a data set by an index list. Indices must lie in [0, N);
// whoever fills the list checks them.

var load = Kernel{
	Op: "load", Doc: "x[i] = images[index[i]] / divisor",
	Operands: []Operand{
		writes("x", Real, "n ..."),
		reads("images", Pixel, "N ..."),
		reads("index", Index, "n").below("N"),
	},
	Params: []string{"divisor"},
	Check:  func(s *calls.Spec) error { return realParam(s, "divisor", 1, 1<<32) },
	// The data set is not moved, only the named rows.
	Flops: perElement(1, 0),
	Moved: gathered,
	Variants: withRef("one division per element", loadRef[float32], loadRef[float64],
		atLevels("a vector of quotients at a time; in Go a table of all 256", loadAt[float32], loadAt[float64], nil),
		gpu.OnCUDA("four elements per thread", gpu.LoadOnCUDA)),
}

var loadNHWC = Kernel{
	Op: "load.nhwc", Doc: "x[i,h,w,c] = images[index[i],c,h,w] / divisor",
	Operands: []Operand{
		writes("x", Real, "n h w c"),
		reads("images", Pixel, "N c h w"),
		reads("index", Index, "n").below("N"),
	},
	Params: []string{"divisor"},
	Check:  func(s *calls.Spec) error { return realParam(s, "divisor", 1, 1<<32) },
	Flops:  perElement(1, 0),
	Moved:  gathered,
	Variants: withRef("one division per element", loadNHWCRef[float32], loadNHWCRef[float64],
		atLevels("quotients of some pixels of all channels, then transposed", loadNHWCAt[float32], loadNHWCAt[float64], nil),
		gpu.OnCUDA("an element per thread, for some samples", gpu.LoadNHWCOnCUDA)),
}

var loadRows = Kernel{
	Op: "load.rows", Doc: "x[i] = samples[index[i]]",
	Operands: []Operand{
		writes("x", Real, "n ..."),
		reads("samples", Real, "N ..."),
		reads("index", Index, "n").below("N"),
	},
	Moved: gathered,
	Variants: withRef("a copy", rowsRef[float32], rowsRef[float64],
		gpu.OnCUDA("four elements per thread", gpu.LoadRowsOnCUDA)),
}

var loadLabels = Kernel{
	Op: "load.labels", Doc: "y[i] = labels[index[i]]",
	Operands: []Operand{
		writes("y", Index, "n ..."),
		reads("labels", Index, "N ..."),
		reads("index", Index, "n").below("N"),
	},
	Moved: gathered,
	Variants: withRef("a copy", rowsRef[int32], rowsRef[int32],
		gpu.OnCUDA("four labels per thread", gpu.LoadRowsOnCUDA)),
}

// gathered is the bytes that a gather moves: the output, as much of the source, and the index.
func gathered(s *calls.Spec) int64 {
	out, from, index := &s.Operands[0], &s.Operands[1], &s.Operands[2]
	return int64(s.Volume(0))*(out.Type.SizeBytes()+from.Type.SizeBytes()) + int64(s.Volume(2))*index.Type.SizeBytes()
}

// gather visits contiguous elements of x together with their sources in the data set.
func gather[T, S calls.Element](call *calls.Call, visit func(x []T, samples []S)) {
	x, samples := &call.Args[0], &call.Args[1]
	outer, rows, run := calls.RunsFrom(1, x, samples)
	for i, source := range calls.Data[int32](&call.Args[2]) {
		to := calls.Data[T](x)[i*x.Stride[0]:]
		from := calls.Data[S](samples)[int(source)*samples.Stride[0]:]
		for r := range rows {
			visit(to[x.OffsetFrom(1, outer, r):][:run], from[samples.OffsetFrom(1, outer, r):][:run])
		}
	}
}

func rowsRef[T calls.Element](call *calls.Call) {
	gather(call, func(x, samples []T) { copy(x, samples) })
}

func loadRef[T calls.Float](call *calls.Call) {
	divisor := T(call.Params[0])
	gather(call, func(x []T, images []uint8) {
		for j, v := range images {
			x[j] = T(v) / divisor
		}
	})
}

func loadNHWCRef[T calls.Float](call *calls.Call) {
	x, images := calls.Map4Of[T](&call.Args[0]), calls.Map4Of[uint8](&call.Args[1])
	divisor := T(call.Params[0])
	index := calls.Data[int32](&call.Args[2])
	x.Each(func(i, h, w, c int) {
		x.Elems[x.At(i, h, w, c)] = T(images.Elems[images.At(int(index[i]), c, h, w)]) / divisor
	})
}

func loadAt[T calls.Float](level simd.Level, call *calls.Call) {
	divisor := T(call.Params[0])
	if level != simd.Go {
		gather(call, func(x []T, images []uint8) { simd.DivideBytes(level, x, images, divisor) })
		return
	}
	var quotient [256]T
	for v := range quotient {
		quotient[v] = T(v) / divisor
	}
	gather(call, func(x []T, images []uint8) {
		for j, v := range images {
			x[j] = quotient[v]
		}
	})
}

// loadNHWCAt divides channel by channel into a block, and moves that to its pixels.
func loadNHWCAt[T calls.Float](level simd.Level, call *calls.Call) {
	x, images := calls.Map4Of[T](&call.Args[0]), calls.Map4Of[uint8](&call.Args[1])
	divisor := T(call.Params[0])
	rows, pixels, channels := x.Extent[1], x.Extent[2], x.Extent[3]
	if images.Stride[2] == pixels && x.Stride[1] == pixels*x.Stride[2] {
		rows, pixels = 1, rows*pixels
	}
	var block [2048]T
	for i, source := range calls.Data[int32](&call.Args[2]) {
		for h := range rows {
			if to := x.Elems[x.At(i, h, 0, 0):]; channels == 1 && x.Stride[2] == 1 {
				simd.DivideBytes(level, to, images.Elems[images.At(int(source), 0, h, 0):][:pixels], divisor)
				continue
			}
			for c := 0; c < channels; c += 8 {
				loadPixels(level, &x, &images, block[:], divisor, [4]int{i, int(source), h, c}, pixels)
			}
		}
	}
}

// loadPixels loads up to eight channels from at[3] of row at[2] of image at[1] to
// sample at[0].
func loadPixels[T calls.Float](level simd.Level, x *calls.Map4[T], images *calls.Map4[uint8], block []T, divisor T, at [4]int, pixels int) {
	i, source, h, first := at[0], at[1], at[2], at[3]
	channels := min(8, x.Extent[3]-first)
	length := min(pixels, len(block)/8)
	for w := 0; w < pixels; w += length {
		columns := min(length, pixels-w)
		for c := range channels {
			simd.DivideBytes(level, block[c*length:], images.Elems[images.At(source, first+c, h, w):][:columns], divisor)
		}
		t := simd.Transpose[T]{
			Rows: channels, Columns: columns, ToRow: x.Stride[2], FromRow: length,
			To: x.Elems[x.At(i, h, 0, first)+w*x.Stride[2]:], From: block,
		}
		if channels == 3 && t.ToRow == 3 && columns > 4 {
			// Vectors hold four. Each pixel is written with one element more, which the next
			// pixel overwrites. The last pixel is written by itself.
			t.Rows, t.Columns = 4, columns-1
			t.Run(level)
			for c := range channels {
				t.To[t.Columns*3+c] = block[c*length+t.Columns]
			}
			continue
		}
		t.Run(level)
	}
}

// Host operations are done by the caller of execute, through a callback.

var feed = Kernel{
	Op: "feed", Doc: "the caller writes the batch's indices and {learning rate, step from 1}",
	Operands: []Operand{
		writes("index", Index, "n"),
		optional(writes("hyper", Scalar, "2")),
	},
	Host: true,
}

var feedImages = Kernel{
	Op: "feed.images", Doc: "the caller writes samples of the batch from the first one given on, their places among these, and {learning rate, step from 1}",
	Operands: []Operand{
		writes("index", Index, "n"),
		writes("images", Stored, "n ..."),
		optional(writes("hyper", Scalar, "2")),
	},
	Params: []string{"first"},
	Host:   true,
}

var feedLabels = Kernel{
	Op: "feed.labels", Doc: "the caller writes the labels of samples of the batch from the first one given on",
	Operands: []Operand{
		writes("labels", Index, "n ..."),
	},
	Params: []string{"first"},
	Host:   true,
}

var fetch = Kernel{
	Op: "fetch", Doc: "the caller reads the mean loss and the number of correct predictions, and the outputs where it asks for them",
	Operands: []Operand{
		reads("loss", Real, "1"),
		reads("correct", Index, "1"),
		optional(reads("outputs", Real, "n c")),
	},
	Host: true,
}
