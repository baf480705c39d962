package kernels

import (
	"dahl/kernels/calls"
	"dahl/kernels/gpu"
	"dahl/kernels/simd"
)

// Small reductions and the merge of accumulators.

var mean = Kernel{
	Op: "mean", Doc: "m = (Σ v)/n, added in index order",
	Operands: []Operand{writes("m", Real, "1"), reads("v", Real, "n")},
	Flops:    perElement(1, 1),
	Variants: withRef("in index order", meanRef[float32], meanRef[float64],
		gpu.ReduceOnCUDA("mean")),
}

var count = Kernel{
	Op: "count", Doc: "c = number of flags that are not 0",
	Operands: []Operand{writes("c", Index, "1"), reads("flags", Mask, "n").below("2")},
	Flops:    perElement(1, 1),
	Variants: withRef("in index order", countRef, countRef,
		gpu.ReduceOnCUDA("count")),
}

var counted = Kernel{
	Op: "counted", Doc: "w = n/(number of labels that are not -1), or 0 where there are none",
	Operands: []Operand{writes("w", Real, "1"), reads("y", Index, "n").orNone("251")},
	Flops:    perElement(1, 1),
	Variants: withRef("in index order", countedRef[float32], countedRef[float64],
		gpu.ReduceOnCUDA("counted")),
}

var add = Kernel{
	Op: "add", Doc: "dst += src",
	Operands: []Operand{updates("dst", "..."), reads("src", Real, "...")},
	Flops:    perElement(1, 0),
	Variants: withRef("element by element", addRef[float32], addRef[float64],
		atLevels("run by run", addAt[float32], addAt[float64], nil),
		gpu.ElementsOnCUDA("add")),
}

func meanRef[T calls.Float](call *calls.Call) {
	v := calls.Data[T](&call.Args[1])
	var sum T
	for _, e := range v {
		sum += e
	}
	calls.Data[T](&call.Args[0])[0] = sum / T(len(v))
}

func countRef(call *calls.Call) {
	var n int32
	for _, f := range calls.Data[uint8](&call.Args[1]) {
		if f != 0 {
			n++
		}
	}
	calls.Data[int32](&call.Args[0])[0] = n
}

func countedRef[T calls.Float](call *calls.Call) {
	y, labels := calls.Data[int32](&call.Args[1]), 0
	for _, label := range y {
		if label >= 0 {
			labels++
		}
	}
	w := calls.Data[T](&call.Args[0])
	if w[0] = 0; labels > 0 {
		w[0] = T(len(y)) / T(labels)
	}
}

func addRef[T calls.Float](call *calls.Call) {
	dst, src := &call.Args[0], &call.Args[1]
	outer, rows, run := calls.Runs(dst, src)
	for r := range rows {
		d := calls.Data[T](dst)[dst.Offset(outer, r):][:run]
		for i, v := range calls.Data[T](src)[src.Offset(outer, r):][:run] {
			d[i] += v
		}
	}
}

func addAt[T calls.Float](level simd.Level, call *calls.Call) {
	dst, src := &call.Args[0], &call.Args[1]
	outer, rows, run := calls.Runs(dst, src)
	for r := range rows {
		simd.Add(level, calls.Data[T](dst)[dst.Offset(outer, r):][:run], calls.Data[T](src)[src.Offset(outer, r):][:run])
	}
}

// Sums, products and copies of whole operands: the outputs of layers with several inputs, and the
// gradient of a value that several layers read.

var sum = Kernel{
	Op: "sum", Doc: "y = a + b",
	Operands: []Operand{
		writes("y", Real, "..."),
		reads("a", Real, "..."),
		reads("b", Real, "..."),
	},
	Flops: perElement(1, 0),
	Variants: withRef("element by element", sumRef[float32], sumRef[float64],
		atLevels("copied and added in parts that stay in the first-level cache", sumAt[float32], sumAt[float64], nil),
		gpu.ElementsOnCUDA("sum")),
}

// multiplied is its own gradient: of a product, the gradient of each factor is dy times the other factor.
var multiplied = Kernel{
	Op: "multiply", Doc: "y = a·b, element by element",
	Operands: []Operand{
		writes("y", Real, "..."),
		reads("a", Real, "..."),
		reads("b", Real, "..."),
	},
	Flops: perElement(1, 0),
	Variants: withRef("element by element", multiplyRef[float32], multiplyRef[float64],
		atLevels("run by run", multiplyAt[float32], multiplyAt[float64], nil),
		gpu.ElementsOnCUDA("multiply")),
}

var copied = Kernel{
	Op: "copy", Doc: "y = x",
	Operands: []Operand{writes("y", Real, "..."), reads("x", Real, "...")},
	Variants: withRef("run by run", copyRef[float32], copyRef[float64], gpu.OnCUDA("four elements per thread", gpu.CopyElements)),
}

// sumPart is the number of elements of a part: three of them take less than a first-level cache.
const sumPart = 1024

func sumRef[T calls.Float](call *calls.Call) {
	calls.EachRun(&call.Args[0], &call.Args[1], &call.Args[2], func(y, a, b []T) {
		for i, v := range a {
			y[i] = v + b[i]
		}
	})
}

func multiplyRef[T calls.Float](call *calls.Call) {
	calls.EachRun(&call.Args[0], &call.Args[1], &call.Args[2], func(y, a, b []T) {
		for i, v := range a {
			y[i] = v * b[i]
		}
	})
}

func multiplyAt[T calls.Float](level simd.Level, call *calls.Call) {
	calls.EachRun(&call.Args[0], &call.Args[1], &call.Args[2], func(y, a, b []T) { simd.Multiply(level, y, a, b) })
}

func sumAt[T calls.Float](level simd.Level, call *calls.Call) {
	calls.EachRun(&call.Args[0], &call.Args[1], &call.Args[2], func(y, a, b []T) {
		for len(y) > 0 {
			n := min(sumPart, len(y))
			copy(y[:n], a)
			simd.Add(level, y[:n], b[:n])
			y, a, b = y[n:], a[n:], b[n:]
		}
	})
}

func copyRef[T calls.Float](call *calls.Call) {
	calls.EachRun(&call.Args[0], &call.Args[1], &call.Args[1], func(y, x, _ []T) { copy(y, x) })
}
