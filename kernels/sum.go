package kernels

import "dahl/kernels/simd"

// Sums and copies of whole operands: the outputs of layers that add or join their inputs, and the
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
		elementsOnCUDA("sum")),
}

var copied = Kernel{
	Op: "copy", Doc: "y = x",
	Operands: []Operand{writes("y", Real, "..."), reads("x", Real, "...")},
	Variants: withRef("run by run", copyRef[float32], copyRef[float64], onCUDA("four elements per thread", copyElements)),
}

// sumPart is the number of elements of a part: three of them take less than a first-level cache.
const sumPart = 1024

func sumRef[T Float](call *Call) {
	EachRun(&call.Args[0], &call.Args[1], &call.Args[2], func(y, a, b []T) {
		for i, v := range a {
			y[i] = v + b[i]
		}
	})
}

func sumAt[T Float](level simd.Level, call *Call) {
	EachRun(&call.Args[0], &call.Args[1], &call.Args[2], func(y, a, b []T) {
		for len(y) > 0 {
			n := min(sumPart, len(y))
			copy(y[:n], a)
			simd.Add(level, y[:n], b[:n])
			y, a, b = y[n:], a[n:], b[n:]
		}
	})
}

func copyRef[T Float](call *Call) {
	EachRun(&call.Args[0], &call.Args[1], &call.Args[1], func(y, x, _ []T) { copy(y, x) })
}
