package kernels

import (
	"dahl/kernels/calls"
	"dahl/kernels/gpu"
)

// shift moves sequences along their positions. Before x, and behind it, y has the token c, or 0 without one:
//
//	y[n,t] = x[n,t-before] where x has that position, else c
//
// With one position before them a class token begins the sequences. The gradient of one position of a
// sequence becomes that of the sequence, which is 0 elsewhere.
var shift = Kernel{
	Op: "shift", Doc: "y[n,t] = x[n,t-before], c or 0 where x has no such position",
	Operands: []Operand{writes("y", Real, "n t d"), reads("x", Real, "n t-before d"), optional(reads("c", Real, "1 d"))},
	Params:   []string{"before"},
	Variants: withRef("row by row", shiftRef[float32], shiftRef[float64], gpu.OnCUDA("an element per thread", gpu.ShiftOnCUDA)),
}

func shiftRef[T calls.Float](call *calls.Call) {
	y, x, before := &call.Args[0], &call.Args[1], int(call.Params[0])
	for n := range y.Shape[0] {
		for t := range y.Shape[1] {
			row := calls.Data[T](y)[n*y.Stride[0]+t*y.Stride[1]:][:y.Shape[2]]
			switch from := t - before; {
			case from >= 0 && from < x.Shape[1]:
				copy(row, calls.Data[T](x)[n*x.Stride[0]+from*x.Stride[1]:])
			case len(call.Args) > 2:
				copy(row, calls.Data[T](&call.Args[2]))
			default:
				clear(row)
			}
		}
	}
}
