package kernels

import (
	"dahl/kernels/calls"
	"dahl/kernels/gpu"
)

// Squared error of outputs z[n,c] from a target t that is 1 for the class y[n] and 0 for all others,
// for a batch of B samples. The call sees n of them. With C classes, as PyTorch's MSELoss has it
// (the mean over all elements):
//
//	loss = Σ_c (z_c - t_c)² / C          per sample, not divided by B
//	dz_c = 2·(z_c - t_c) / (B·C)
//
// correct is 1 where the first maximum of the row is at y. Classes must lie in [0, c).

var mse = Kernel{
	Op: "mse", Doc: "dz = 2·(z - onehot(y))/(batch·classes), loss = mean over classes of (z - onehot(y))², correct = (argmax z = y)",
	Operands: []Operand{
		writes("dz", Real, "n c"), writes("loss", Real, "n"), writes("correct", Mask, "n"),
		reads("z", Real, "n c").often(ties...), reads("y", Index, "n").below("c"),
	},
	Params: []string{"batch"},
	Check:  checkBatch,
	Flops:  perElement(6, 0),
	Variants: withRef("row by row", mseRef[float32], mseRef[float64],
		gpu.SoftmaxOnCUDA("mse", []string{"dz", "loss", "correct", "z", "y"}, []string{"batch"})),
}

var mseEval = Kernel{
	Op: "mse.eval", Doc: "loss = mean over classes of (z - onehot(y))², correct = (argmax z = y)",
	Operands: []Operand{
		writes("loss", Real, "n"), writes("correct", Mask, "n"),
		reads("z", Real, "n c").often(ties...), reads("y", Index, "n").below("c"),
	},
	Flops: perElement(4, 2),
	Variants: withRef("row by row", mseRef[float32], mseRef[float64],
		gpu.SoftmaxOnCUDA("mse", []string{"loss", "correct", "z", "y"}, nil)),
}

// mseRef is both operations: a call with five operands has dz.
func mseRef[T calls.Float](call *calls.Call) {
	args, all := call.Args, T(0)
	var dz calls.Map2[T]
	if len(args) == 5 {
		dz, args = calls.Map2Of[T](&args[0]), args[1:]
		all = T(call.Params[0]) * T(dz.Columns)
	}
	loss, correct, z, y := calls.Data[T](&args[0]), calls.Data[uint8](&args[1]), calls.Map2Of[T](&args[2]), calls.Data[int32](&args[3])
	for n, class := range y {
		row := z.Row(n)
		var sum T
		for c, v := range row {
			if c == int(class) {
				v -= 1
			}
			sum += T(v * v)
			if dz.Elems != nil {
				dz.Row(n)[c] = 2 * v / all
			}
		}
		_, predicted := rowMaximum(row)
		loss[n], correct[n] = sum/T(z.Columns), hit(predicted, class)
	}
}
