package kernels

import (
	"errors"
	"fmt"
	"math"

	"dahl/dag"
	"dahl/kernels/calls"
	"dahl/kernels/gpu"
	"dahl/kernels/simd"
)

// Softmax cross-entropy of logits z[n,c] with classes y[n], for a batch of B samples. The call
// sees n of them. With m the maximum of a row and s = Σ_c exp(z_c - m):
//
//	loss = log s - (z_y - m)          per sample, not divided by B
//	dz_c = (exp(z_c - m)/s - [c = y]) / B
//
// Label smoothing (Szegedy et al., 2016, arXiv:1512.00567) by σ puts a share of σ/C on each of the C
// classes, and the rest on y, as PyTorch's CrossEntropyLoss does:
//
//	loss = log s - ((1-σ)·(z_y - m) + σ/C·Σ_c (z_c - m))
//	dz_c = (exp(z_c - m)/s - σ/C - (1-σ)·[c = y]) / B
//
// Its products are rounded before they are added, so σ = 0 gives the bits of the formulas above.
//
// A row with the label -1 has no loss and no gradient. Where other rows of a batch have no label, the weight makes means of those that have one:
// losses and gradients are multiplied by it.
//
// Subtracting the row's true maximum keeps every exponent at most 0, so nothing overflows, and s
// is at least 1. correct is 1 where the first maximum of the row is at y. Classes must lie in [0,
// c); whoever loads them checks this.
//
// The reference computes exp and log in float64. Vectors compute exp in the type itself.

var softmaxXent = Kernel{
	Op: "softmax_xent", Doc: "dz = (softmax(z) - q)/batch, loss = -Σ q·log softmax(z), correct = (argmax z = y); q = smoothed onehot(y)",
	Operands: []Operand{
		writes("dz", Real, "n c"), writes("loss", Real, "n"), writes("correct", Mask, "n"),
		reads("z", Real, "n c").often(ties...), reads("y", Index, "n").orNone("c"), optional(reads("weight", Real, "1").positive()),
	},
	Params: []string{"batch", "smoothing"},
	Check:  checkSmoothedBatch,
	Flops:  perElement(6, 0),
	Variants: withRef("row by row", softmaxXentRef[float32], softmaxXentRef[float64],
		vectorLevels("a row in each element of a vector", softmaxXentAt[float32], softmaxXentAt[float64], softmaxWorkspace),
		gpu.SoftmaxOnCUDA("softmax_xent", []string{"dz", "loss", "correct", "z", "y", "weight"}, []string{"batch", "smoothing"})),
}

var softmaxXentEval = Kernel{
	Op: "softmax_xent.eval", Doc: "loss = -Σ q·log softmax(z), correct = (argmax z = y); q = smoothed onehot(y)",
	Operands: []Operand{
		writes("loss", Real, "n"), writes("correct", Mask, "n"),
		reads("z", Real, "n c").often(ties...), reads("y", Index, "n").orNone("c"), optional(reads("weight", Real, "1").positive()),
	},
	Params: []string{"smoothing"},
	Check:  checkSmoothing,
	Flops:  perElement(4, 2),
	Variants: withRef("row by row", softmaxXentRef[float32], softmaxXentRef[float64],
		vectorLevels("a row in each element of a vector", softmaxXentAt[float32], softmaxXentAt[float64], softmaxWorkspace),
		gpu.SoftmaxOnCUDA("softmax_xent", []string{"loss", "correct", "z", "y", "weight"}, []string{"smoothing"})),
}

// checkBatch refuses a batch smaller than the samples of this call.
func checkBatch(s *calls.Spec) error { return checkBatchOf(s, 0) }

// checkBatchOf counts the samples by an operand.
func checkBatchOf(s *calls.Spec, operand int) error {
	batch, err := intParam(s, "batch", 1, math.MaxInt32)
	if n := s.Operands[operand].Shape[0]; err == nil && batch < n {
		return fmt.Errorf("parameter batch is %d, less than the %d samples of the call", batch, n)
	}
	return err
}

func checkSmoothing(s *calls.Spec) error { return realParam(s, "smoothing", 0, 1) }

func checkSmoothedBatch(s *calls.Spec) error { return errors.Join(checkBatch(s), checkSmoothing(s)) }

// target divides a sample among the classes: keep goes to its own class, and share to every class.
type target[T calls.Float] struct{ keep, share T }

func targetOf[T calls.Float](smoothing float64, classes int) target[T] {
	return target[T]{keep: T(1 - smoothing), share: T(smoothing / float64(classes))}
}

// rowMaximum returns the first maximum of a row and its index; NaN wins.
func rowMaximum[T calls.Float](row []T) (most T, at int) {
	most = row[0]
	for i, v := range row {
		if v > most || v != v && most == most {
			most, at = v, i
		}
	}
	return most, at
}

// expShifted is exp(z-m), computed in float64 from the difference in T.
func expShifted[T calls.Float](z, m T) T { return T(math.Exp(float64(z - m))) }

// loss is the loss of a sample by its logits, their maximum m and the sum s. Without smoothing it does not
// look at other classes, which may be infinite.
func (q target[T]) loss(z []T, class int32, m, s T) T {
	near := T(q.keep * (z[class] - m))
	if q.share != 0 {
		var sum T
		for _, v := range z {
			sum += v - m
		}
		near += T(q.share * sum)
	}
	return T(math.Log(float64(s))) - near
}

// hit is 1 where the prediction is the class.
func hit(predicted int, class int32) uint8 {
	if predicted == int(class) {
		return 1
	}
	return 0
}

// softmaxCall is a call of softmax_xent, or of softmax_xent.eval, which has no dz.
type softmaxCall[T calls.Float] struct {
	dz, z   calls.Map2[T] // dz without elements: not wanted
	loss    []T
	correct []uint8
	y       []int32
	batch   T
	weight  T
	target  target[T]
}

func softmaxCallOf[T calls.Float](call *calls.Call) softmaxCall[T] {
	s := softmaxCall[T]{batch: 1, weight: 1}
	args := call.Args
	if len(call.Params) == 2 {
		s.dz, s.batch, args = calls.Map2Of[T](&args[0]), T(call.Params[0]), args[1:]
	}
	s.loss, s.correct, s.z, s.y = calls.Data[T](&args[0]), calls.Data[uint8](&args[1]), calls.Map2Of[T](&args[2]), calls.Data[int32](&args[3])
	if len(args) > 4 {
		s.weight = calls.Data[T](&args[4])[0]
	}
	s.target = targetOf[T](call.Params[len(call.Params)-1], s.z.Columns)
	return s
}

// row writes the loss of a row, and completes its gradient.
func (s *softmaxCall[T]) row(n int, most, sum T, predicted int) {
	y := s.y[n]
	s.loss[n], s.correct[n] = 0, hit(predicted, y)
	if y >= 0 {
		s.loss[n] = s.weight * s.target.loss(s.z.Row(n), y, most, sum)
	}
	if s.dz.Elems == nil || y >= 0 && s.weight == 1 {
		return
	}
	dz := s.dz.Row(n)
	if y < 0 {
		clear(dz)
	}
	for c := range dz {
		dz[c] *= s.weight
	}
}

func softmaxXentRef[T calls.Float](call *calls.Call) {
	x := softmaxCallOf[T](call)
	for n, y := range x.y {
		row := x.z.Row(n)
		var out []T
		if x.dz.Elems != nil {
			out = x.dz.Row(n)
		}
		m, predicted := rowMaximum(row)
		var s T
		for c, v := range row {
			e := expShifted(v, m)
			s += e
			if out != nil {
				out[c] = e
			}
		}
		x.target.gradient(out, out, s, y, x.batch)
		x.row(n, m, s, predicted)
	}
}

// gradient sets dz = (e/s - target)/batch for one row; dz may be e.
func (q target[T]) gradient(dz, e []T, s T, class int32, batch T) {
	for c, v := range e {
		p := v/s - q.share
		if c == int(class) {
			p -= q.keep
		}
		dz[c] = p / batch
	}
}

// vectorLevels is atLevels without Go, since that loop would be the reference's.
func vectorLevels(doc string, run32, run64 func(simd.Level, *calls.Call), workspace func(*calls.Spec) int64) []calls.Variant {
	return atLevels(doc, run32, run64, workspace)[1:]
}

// softmaxWorkspace is the workspace for the columns of z.
func softmaxWorkspace(s *calls.Spec) int64 {
	z := 1 + len(s.Params) // behind dz, which only a call with a batch has, loss and correct
	classes := s.Operands[z].Shape[1]
	if s.Type == dag.Float64 {
		return 8 * int64(simd.SoftmaxWork[float64](classes))
	}
	return 4 * int64(simd.SoftmaxWork[float32](classes))
}

// softmaxXentAt computes as many rows at a time as a vector has elements.
func softmaxXentAt[T calls.Float](level simd.Level, call *calls.Call) {
	x := softmaxCallOf[T](call)
	s := simd.Softmax[T]{Classes: x.z.Columns, ZRow: x.z.Stride, DZRow: x.dz.Stride, Batch: x.batch, Keep: x.target.keep, Share: x.target.share}
	s.Work, _ = calls.Scratch[T](call.Work, simd.SoftmaxWork[T](x.z.Columns))
	var out []T
	rows := simd.SoftmaxRows[T](level)
	for n := 0; n < x.z.Rows; n += rows {
		labels := x.y[n:min(n+rows, x.z.Rows)]
		if x.dz.Elems != nil {
			out = x.dz.Elems[n*x.dz.Stride:]
		}
		most, class, sum := s.Block(level, out, x.z.Elems[n*x.z.Stride:], labels)
		for i := range labels {
			x.row(n+i, most[i], sum[i], int(class[i]))
		}
	}
}

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
