package kernels

import (
	"math"

	"dahl/kernels/calls"
	"dahl/kernels/gpu"
	"dahl/kernels/simd"
)

// Rectifier, any shape. NaN passes through y, as in PyTorch. The mask is 1 where x > 0, so the
// gradient is 0 at exactly 0 and at NaN.

var relu = Kernel{
	Op: "relu", Doc: "y = max(x, 0), mask = x > 0",
	Operands: []Operand{
		writes("y", Real, "..."),
		writes("mask", Mask, "..."),
		reads("x", Real, "...").often(0, math.Copysign(0, -1)),
	},
	Flops: perElement(1, 0),
	Variants: withRef("one comparison per element", reluRef[float32], reluRef[float64],
		atLevels("no branches", reluAt[float32], reluAt[float64], nil),
		gpu.ElementsOnCUDA("relu")),
}

var reluDx = Kernel{
	Op: "relu.dx", Doc: "dx = dy where mask, else 0",
	Operands: []Operand{
		writes("dx", Real, "..."),
		reads("dy", Real, "..."),
		reads("mask", Mask, "...").below("2"),
	},
	Flops: perElement(1, 0),
	Variants: withRef("one comparison per element", reluDxRef[float32], reluDxRef[float64],
		atLevels("no branches: the bits of dy and the mask", reluDxAt[float32], reluDxAt[float64], nil),
		gpu.ElementsOnCUDA("relu.dx")),
}

func reluRef[T calls.Float](call *calls.Call) {
	calls.EachRun(&call.Args[0], &call.Args[1], &call.Args[2], func(y []T, mask []uint8, x []T) {
		for i, v := range x {
			y[i], mask[i] = 0, 0
			if v > 0 {
				mask[i] = 1
			}
			if !(v <= 0) { // positive or NaN
				y[i] = v
			}
		}
	})
}

func reluDxRef[T calls.Float](call *calls.Call) {
	calls.EachRun(&call.Args[0], &call.Args[1], &call.Args[2], func(dx, dy []T, mask []uint8) {
		for i, m := range mask {
			dx[i] = 0
			if m != 0 {
				dx[i] = dy[i]
			}
		}
	})
}

func reluAt[T calls.Float](level simd.Level, call *calls.Call) {
	calls.EachRun(&call.Args[0], &call.Args[1], &call.Args[2], func(y []T, mask []uint8, x []T) {
		simd.ReLU(level, y, mask, x)
	})
}

func reluDxAt[T calls.Float](level simd.Level, call *calls.Call) {
	calls.EachRun(&call.Args[0], &call.Args[1], &call.Args[2], func(dx, dy []T, mask []uint8) {
		simd.ReLUGradient(level, dx, dy, mask)
	})
}
