package kernels

import "dahl/kernels/simd"

// Rectifier, any shape. NaN passes through y, as in PyTorch. The mask is 1 where x > 0, so the
// gradient is 0 at exactly 0 and at NaN.

var relu = Kernel{
	Op: "relu", Doc: "y = max(x, 0), mask = x > 0",
	Operands: []Operand{
		writes("y", Real, "..."),
		writes("mask", Mask, "..."),
		reads("x", Real, "..."),
	},
	Work: perElement(1, 0),
	Variants: withRef(
		Variant{Name: "ref", Doc: "one comparison per element", Run32: reluRef[float32], Run64: reluRef[float64]},
		atLevels("no branches", reluAt[float32], reluAt[float64], nil),
		elementsOnCUDA("relu")),
}

var reluDx = Kernel{
	Op: "relu.dx", Doc: "dx = dy where mask, else 0",
	Operands: []Operand{
		writes("dx", Real, "..."),
		reads("dy", Real, "..."),
		reads("mask", Mask, "..."),
	},
	Work: perElement(1, 0),
	Variants: withRef(
		Variant{Name: "ref", Doc: "one comparison per element", Run32: reluDxRef[float32], Run64: reluDxRef[float64]},
		atLevels("no branches: the bits of dy and the mask", reluDxAt[float32], reluDxAt[float64], nil),
		elementsOnCUDA("relu.dx")),
}

func reluRef[T Float](call *Call) {
	y, mask, x := &call.Args[0], &call.Args[1], &call.Args[2]
	outer, rows, run := runs(y, mask, x)
	for r := range rows {
		ys := Data[T](y)[y.offset(outer, r):][:run]
		ms := Data[uint8](mask)[mask.offset(outer, r):][:run]
		for i, v := range Data[T](x)[x.offset(outer, r):][:run] {
			ys[i], ms[i] = 0, 0
			if v > 0 {
				ms[i] = 1
			}
			if !(v <= 0) { // positive or NaN
				ys[i] = v
			}
		}
	}
}

func reluDxRef[T Float](call *Call) {
	dx, dy, mask := &call.Args[0], &call.Args[1], &call.Args[2]
	outer, rows, run := runs(dx, dy, mask)
	for r := range rows {
		dxs := Data[T](dx)[dx.offset(outer, r):][:run]
		dys := Data[T](dy)[dy.offset(outer, r):][:run]
		for i, m := range Data[uint8](mask)[mask.offset(outer, r):][:run] {
			dxs[i] = 0
			if m != 0 {
				dxs[i] = dys[i]
			}
		}
	}
}

func reluAt[T Float](level simd.Level, call *Call) {
	y, mask, x := &call.Args[0], &call.Args[1], &call.Args[2]
	outer, rows, run := runs(y, mask, x)
	for r := range rows {
		simd.ReLU(level, Data[T](y)[y.offset(outer, r):][:run],
			Data[uint8](mask)[mask.offset(outer, r):][:run],
			Data[T](x)[x.offset(outer, r):][:run])
	}
}

func reluDxAt[T Float](level simd.Level, call *Call) {
	dx, dy, mask := &call.Args[0], &call.Args[1], &call.Args[2]
	outer, rows, run := runs(dx, dy, mask)
	for r := range rows {
		simd.ReLUGradient(level, Data[T](dx)[dx.offset(outer, r):][:run],
			Data[T](dy)[dy.offset(outer, r):][:run],
			Data[uint8](mask)[mask.offset(outer, r):][:run])
	}
}
