package kernels

import "dahl/kernels/simd"

// Building a batch: the rows of a data set that an index list names. Indices must
// lie in [0, N); whoever fills the list checks that.

var load = Kernel{
	Op: "load", Doc: "x[i] = images[index[i]] / divisor",
	Operands: []Operand{
		writes("x", Real, "n ..."),
		reads("images", Pixel, "N ..."),
		reads("index", Index, "n"),
	},
	Params: []string{"divisor"},
	Check:  func(s *Spec) error { return realParam(s, "divisor", 1, 1<<32) },
	// The data set is not moved, only the rows named.
	Work: func(s *Spec) (float64, int64) { return s.volume(0), gatherBytes(s, 0, 1, 2) },
	Variants: withRef(
		Variant{Name: "ref", Doc: "one division per element", Run32: loadRef[float32], Run64: loadRef[float64]},
		atLevels("a vector of quotients at a time; in Go a table of all 256", loadAt[float32], loadAt[float64], nil)),
}

var loadNHWC = Kernel{
	Op: "load.nhwc", Doc: "x[i,h,w,c] = images[index[i],c,h,w] / divisor",
	Operands: []Operand{
		writes("x", Real, "n h w c"),
		reads("images", Pixel, "N c h w"),
		reads("index", Index, "n"),
	},
	Params: []string{"divisor"},
	Check:  func(s *Spec) error { return realParam(s, "divisor", 1, 1<<32) },
	Work:   func(s *Spec) (float64, int64) { return s.volume(0), gatherBytes(s, 0, 1, 2) },
	Variants: []Variant{
		{Name: "ref", Doc: "one division per element", Run32: loadNHWCRef[float32], Run64: loadNHWCRef[float64]},
	},
}

var loadLabels = Kernel{
	Op: "load.labels", Doc: "y[i] = labels[index[i]]",
	Operands: []Operand{
		writes("y", Index, "n"),
		reads("labels", Index, "N"),
		reads("index", Index, "n"),
	},
	Work: func(s *Spec) (float64, int64) { return 0, gatherBytes(s, 0, 1, 2) },
	Variants: []Variant{
		{Name: "ref", Doc: "a copy", Run32: loadLabelsRef, Run64: loadLabelsRef},
	},
}

// gatherBytes is what a gather moves: the output, as much of the source, the index.
func gatherBytes(s *Spec, out, from, index int) int64 {
	n := int64(s.volume(out))
	return n*(s.Operands[out].Type.SizeBytes()+s.Operands[from].Type.SizeBytes()) +
		int64(s.volume(index))*s.Operands[index].Type.SizeBytes()
}

func loadRef[T Float](call *Call) {
	x, images := &call.Args[0], &call.Args[1]
	divisor := T(call.Params[0])
	outer, rows, run := runsFrom(1, x, images)
	for i, source := range Data[int32](&call.Args[2]) {
		to := Data[T](x)[i*x.Stride[0]:]
		from := Data[uint8](images)[int(source)*images.Stride[0]:]
		for r := range rows {
			out := to[x.offsetFrom(1, outer, r):][:run]
			for j, v := range from[images.offsetFrom(1, outer, r):][:run] {
				out[j] = T(v) / divisor
			}
		}
	}
}

func loadNHWCRef[T Float](call *Call) {
	x, images := map4Of[T](&call.Args[0]), map4Of[uint8](&call.Args[1])
	divisor := T(call.Params[0])
	for i, source := range Data[int32](&call.Args[2]) {
		for h := range x.extent[1] {
			for w := range x.extent[2] {
				for c := range x.extent[3] {
					x.elems[x.at(i, h, w, c)] = T(images.elems[images.at(int(source), c, h, w)]) / divisor
				}
			}
		}
	}
}

func loadLabelsRef(call *Call) {
	y, labels := Data[int32](&call.Args[0]), Data[int32](&call.Args[1])
	for i, source := range Data[int32](&call.Args[2]) {
		y[i] = labels[source]
	}
}

func loadAt[T Float](level simd.Level, call *Call) {
	if level == simd.Go {
		loadGo[T](call)
		return
	}
	x, images := &call.Args[0], &call.Args[1]
	outer, rows, run := runsFrom(1, x, images)
	for i, source := range Data[int32](&call.Args[2]) {
		to := Data[T](x)[i*x.Stride[0]:]
		from := Data[uint8](images)[int(source)*images.Stride[0]:]
		for r := range rows {
			simd.DivideBytes(level, to[x.offsetFrom(1, outer, r):][:run],
				from[images.offsetFrom(1, outer, r):][:run], T(call.Params[0]))
		}
	}
}
