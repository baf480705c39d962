package kernels

import (
	"fmt"

	"dahl/dag"
	"dahl/kernels/calls"
	"dahl/kernels/gpu"
)

// Dropout (Srivastava et al., 2014) as PyTorch defines it: an element is 0 with probability p, or else multiplied by
// 1/(1-p). Whether it is 0 is a function of the seed of the training, the step, the layer, the sample's place in
// the batch and the element's place in the sample, by a generator that counts instead of keeping a state (Salmon et al.,
// "Parallel random numbers: as easy as 1, 2, 3", SC 2011). So the backward pass draws the same again and nothing is
// kept, and it is the same under any schedule, tiling, layout and device.
//
// dropout.keys draws a key for each sample of the batch:
//
//	keys[n] = the first two words of Philox(key: seed; counter: low and high word of the step, layer, n)
//
// Element e of sample n, counted in the order c, h, w, or features before positions, stays where word e mod 4 of
// Philox(key: keys[n]; counter: e/4, 0, 0, 0) is at least p·2³².

var dropoutKeys = Kernel{
	Op: "dropout.keys", Doc: "a key for each sample, drawn by seed, step and layer",
	Operands: []Operand{
		{Name: "keys", Kind: Wide, Dims: "n", Modes: []dag.Mode{dag.Write}},
		reads("seed", Wide, "1"), reads("hyper", Scalar, "2"),
	},
	Params: []string{"layer"}, Whole: "n",
	Check: func(s *calls.Spec) error {
		_, err := intParam(s, "layer", 0, maxGeometry)
		return err
	},
	Flops:    perElement(100, 0),
	Variants: withRef("sample by sample", dropoutKeysRef, dropoutKeysRef, gpu.OnCUDA("a sample per thread", gpu.DropoutKeysOnCUDA)),
}

// dropout.rows draws a key for each row e of a sample, counted in the order of its dimensions: the first two words of Philox(key: keys[n]; counter: e, 0, 0, 0).
var dropoutRows = Kernel{
	Op: "dropout.rows", Doc: "a key for each row of a sample, drawn by the key of the sample",
	Operands: []Operand{
		{Name: "rows", Kind: Wide, Dims: "n h t", Modes: []dag.Mode{dag.Write}},
		reads("keys", Wide, "n"),
	},
	Whole:    "h t",
	Flops:    perElement(100, 0),
	Variants: withRef("row by row", dropoutRowsRef, dropoutRowsRef, gpu.OnCUDA("a row per thread", gpu.DropoutRowsOnCUDA)),
}

var dropout = Kernel{
	Op: "dropout", Doc: "y = x/(1-p) where a draw by keys, in the order n c h w, is at least p, else 0; channels_last = 1: x is n h w c, or n h c of sequences, 0: x is n c",
	Operands: []Operand{writes("y", Real, "n ..."), reads("x", Real, "n ..."), reads("keys", Wide, "n")},
	Params:   []string{"p", "channels_last"}, Whole: restText,
	Check: func(s *calls.Spec) error {
		last, err := intParam(s, "channels_last", 0, 1)
		if rank := len(s.Operands[0].Shape); err == nil && rank != 2+2*last && rank != 2+last {
			err = fmt.Errorf("%d dimensions and channels_last = %d, want 4 and 1 for images, 3 and 1 for sequences, 2 and 0 for features", rank, last)
		}
		if err == nil && s.Param("p") != 1 {
			err = realParam(s, "p", 0, 1)
		}
		return err
	},
	Flops:    perElement(25, 0),
	Variants: withRef("element by element", dropoutRef[float32], dropoutRef[float64], gpu.OnCUDA("an element per thread", gpu.DropoutOnCUDA)),
}

func dropoutKeysRef(call *calls.Call) {
	keys, seed, step := calls.Data[int64](&call.Args[0]), calls.Data[int64](&call.Args[1])[0], uint64(calls.Data[float64](&call.Args[2])[1])
	for n := range keys {
		words := calls.Philox(uint64(seed), [4]uint32{uint32(step), uint32(step >> 32), uint32(call.Params[0]), uint32(n)})
		keys[n] = int64(uint64(words[0]) | uint64(words[1])<<32)
	}
}

func dropoutRowsRef(call *calls.Call) {
	rows := &call.Args[0]
	for n, key := range calls.Data[int64](&call.Args[1]) {
		of := calls.Data[int64](rows)[n*rows.Stride[0]:]
		for e := range rows.Shape[1] * rows.Shape[2] {
			words := calls.Philox(uint64(key), [4]uint32{uint32(e)})
			of[e/rows.Shape[2]*rows.Stride[1]+e%rows.Shape[2]] = int64(uint64(words[0]) | uint64(words[1])<<32)
		}
	}
}

func dropoutRef[T calls.Float](call *calls.Call) {
	y, x := placesOf[T](&call.Args[0]), placesOf[T](&call.Args[1])
	least, scale := calls.DropLeast(call.Params[0]), T(1/(1-call.Params[0]))
	for n, key := range calls.Data[int64](&call.Args[2]) {
		e, words := 0, [4]uint32{}
		for c := range y.Extent[1] {
			y.EachPlace(&x, n, c, func(to, from int) {
				if e%4 == 0 {
					words = calls.Philox(uint64(key), [4]uint32{uint32(e / 4)})
				}
				y.Elems[to] = 0
				if uint64(words[e%4]) >= least {
					y.Elems[to] = T(x.Elems[from] * scale)
				}
				e++
			})
		}
	}
}

// placesOf is an operand of images, sequences or features in the order samples, channels, rows, columns.
func placesOf[T calls.Float](a *calls.Arg) calls.Map4[T] {
	switch len(a.Shape) {
	case 4:
		return pixelsOf[T](a)
	case 3:
		return calls.Map4[T]{Elems: calls.Data[T](a), Extent: [4]int{a.Shape[0], a.Shape[2], a.Shape[1], 1}, Stride: [4]int{a.Stride[0], a.Stride[2], a.Stride[1], 0}}
	}
	return calls.Map4[T]{Elems: calls.Data[T](a), Extent: [4]int{a.Shape[0], a.Shape[1], 1, 1}, Stride: [4]int{a.Stride[0], a.Stride[1], 0, 0}}
}
