package kernels

import "dahl/kernels/simd"

// Small reductions and the merge of accumulators.

var mean = Kernel{
	Op: "mean", Doc: "m = (Σ v)/n, added in index order",
	Operands: []Operand{writes("m", Real, "1"), reads("v", Real, "n")},
	Flops:    perElement(1, 1),
	Variants: withRef("in index order", meanRef[float32], meanRef[float64],
		reduceOnCUDA("mean")),
}

var count = Kernel{
	Op: "count", Doc: "c = number of flags that are not 0",
	Operands: []Operand{writes("c", Index, "1"), reads("flags", Mask, "n").below("2")},
	Flops:    perElement(1, 1),
	Variants: withRef("in index order", countRef, countRef,
		reduceOnCUDA("count")),
}

var add = Kernel{
	Op: "add", Doc: "dst += src",
	Operands: []Operand{updates("dst", "..."), reads("src", Real, "...")},
	Flops:    perElement(1, 0),
	Variants: withRef("element by element", addRef[float32], addRef[float64],
		atLevels("run by run", addAt[float32], addAt[float64], nil),
		elementsOnCUDA("add")),
}

func meanRef[T Float](call *Call) {
	v := Data[T](&call.Args[1])
	var sum T
	for _, e := range v {
		sum += e
	}
	Data[T](&call.Args[0])[0] = sum / T(len(v))
}

func countRef(call *Call) {
	var n int32
	for _, f := range Data[uint8](&call.Args[1]) {
		if f != 0 {
			n++
		}
	}
	Data[int32](&call.Args[0])[0] = n
}

func addRef[T Float](call *Call) {
	dst, src := &call.Args[0], &call.Args[1]
	outer, rows, run := runs(dst, src)
	for r := range rows {
		d := Data[T](dst)[dst.offset(outer, r):][:run]
		for i, v := range Data[T](src)[src.offset(outer, r):][:run] {
			d[i] += v
		}
	}
}

func addAt[T Float](level simd.Level, call *Call) {
	dst, src := &call.Args[0], &call.Args[1]
	outer, rows, run := runs(dst, src)
	for r := range rows {
		simd.Add(level, Data[T](dst)[dst.offset(outer, r):][:run], Data[T](src)[src.offset(outer, r):][:run])
	}
}
