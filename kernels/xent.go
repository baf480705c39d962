package kernels

import (
	"errors"
	"math"

	"dahl/kernels/calls"
	"dahl/kernels/cpu"
	"dahl/kernels/gpu"
)

// A dense layer without a bias together with the softmax cross-entropy of its logits z[n,f] = Σ_c x[n,c]·w[f,c], so that no operation keeps them
// (Milakov and Gimelshein, "Online normalizer calculation for softmax", 2018, arXiv:1805.02867). With labels y and B samples in a batch,
//
//	r0 = max_f z[n,f]    r1 = Σ_f exp(z[n,f] - r0)    r2 = z[n,y]
//	loss = log r1 - (r2 - r0)
//	dz[n,f] = (exp(z[n,f] - r0)/r1 - [f = y]) / B     dx[n,c] = Σ_f dz[n,f]·w[f,c]    dw[f,c] = Σ_n dz[n,f]·x[n,c]
//
// A tile of xent.sums may have some of the classes. xent.merge makes one r of the r of two tiles:
//
//	r0 = max(a0, b0)    r1 = exp(a0 - r0)·a1 + exp(b0 - r0)·b1    r2 = a2 + b2
//
// A call that changes r merges its sums with the old ones. The parameter first is the class of the first row of w. The gradients
// compute the logits again, so that they take five products of N·F·C where three would do. Labels of -1 and the weight are as in softmax_xent.
//
// A position is correct if no logit is greater than r2.

var xentSums = Kernel{
	Op: "xent.sums", Doc: "r0 = max z, r1 = Σ exp(z - r0), r2 = z of the label; z = x·wᵀ",
	Operands: []Operand{
		sums("r", "n 3"), reads("x", Real, "n c"), reads("w", Real, "f c"), reads("y", Index, "n").orNone("f"),
	},
	Params: []string{"first"}, Begins: "first=f", Whole: "c", Merge: "xent.merge",
	Check: checkFirst,
	Flops: func(s *calls.Spec) float64 { return logitFlops(s, 1) },
	Variants: withRef("class by class, in float64", xentSumsRef[float32], xentSumsRef[float64],
		atLevelsInBlocks("blocks of logits", cpu.XentSumsAt[float32], cpu.XentSumsAt[float64], cpu.LogitsWorkspace), gpu.XentSums),
}

var xentMerge = Kernel{
	Op: "xent.merge", Doc: "r of the classes of two calls of xent.sums",
	Operands: []Operand{updates("r", "n 3"), reads("r2", Real, "n 3").positive()},
	Flops:    perElement(4, 0),
	Variants: withRef("row by row, in float64", xentMergeRef[float32], xentMergeRef[float64], gpu.XentMerge),
}

var xent = Kernel{
	Op: "xent", Doc: "loss = log r1 - (r2 - r0), correct = (r2 = r0)",
	Operands: []Operand{
		writes("loss", Real, "n"), writes("correct", Mask, "n"), reads("r", Real, "n 3").positive().often(1), reads("y", Index, "n").orNone("n"),
		optional(reads("weight", Real, "1").positive()),
	},
	Flops:    perElement(4, 0),
	Variants: withRef("row by row, in float64", xentRef[float32], xentRef[float64], gpu.Xent),
}

var xentDx = xentGradient(Kernel{
	Op: "xent.dx", Doc: "dx = dz·w, dz = (exp(z - r0)/r1 - onehot(y))/batch, z = x·wᵀ", Operands: []Operand{sums("dx", "n c")},
	Variants: withRef("class by class, in float64", xentGradientRef[float32](false), xentGradientRef[float64](false),
		atLevelsInBlocks("blocks of logits", cpu.XentDxAt[float32], cpu.XentDxAt[float64], cpu.LogitsWorkspace), gpu.XentDx),
})

var xentDw = xentGradient(Kernel{
	Op: "xent.dw", Doc: "dw = dzᵀ·x, dz = (exp(z - r0)/r1 - onehot(y))/batch, z = x·wᵀ", Operands: []Operand{sums("dw", "f c")},
	Variants: withRef("class by class, in float64", xentGradientRef[float32](true), xentGradientRef[float64](true),
		atLevelsInBlocks("blocks of logits", cpu.XentDwAt[float32], cpu.XentDwAt[float64], cpu.LogitsWorkspace), gpu.XentDw),
})

// xentGradient completes a gradient of xent.
func xentGradient(k Kernel) Kernel {
	k.Operands = append(k.Operands, reads("x", Real, "n c"), reads("w", Real, "f c"), reads("y", Index, "n").orNone("f"),
		reads("r", Real, "n 3").positive(), optional(reads("weight", Real, "1").positive()))
	k.Params, k.Begins, k.Whole = []string{"batch", "first"}, "first=f", "c"
	k.Check = func(s *calls.Spec) error { return errors.Join(checkBatchOf(s, 1), checkFirst(s)) }
	k.Flops = func(s *calls.Spec) float64 { return logitFlops(s, 2) }
	k.Variants[0].WorkspaceBytes = func(s *calls.Spec) int64 { return 8 * int64(s.Operands[1].Shape[1]) }
	return k
}

func checkFirst(s *calls.Spec) error {
	_, err := intParam(s, "first", 0, math.MaxInt32)
	return err
}

// logitFlops is the work of some products of each row of x with each row of w, and of ten operations for an exponential.
func logitFlops(s *calls.Spec, products float64) float64 {
	x, w := s.Operands[1].Shape, s.Operands[2].Shape
	return float64(x[0]) * float64(w[0]) * (2*products*float64(x[1]) + 10)
}

func xentSumsRef[T calls.Float](c *calls.Call) {
	r, x, w, y := calls.Map2Of[T](&c.Args[0]), calls.Map2Of[T](&c.Args[1]), calls.Map2Of[T](&c.Args[2]), calls.Data[int32](&c.Args[3])
	for n := range x.Rows {
		of := [3]float64{0: math.Inf(-1)}
		for f := range w.Rows {
			z := product(x.Row(n), w.Row(f))
			part := [3]float64{z, 1, 0}
			if y[n] >= 0 && int(y[n]) == f+int(c.Params[0]) {
				part[2] = z
			}
			of = merged(of, part)
		}
		if c.Args[0].Accumulates() {
			of = merged(three(r.Row(n)), of)
		}
		setThree(r.Row(n), of)
	}
}

func xentMergeRef[T calls.Float](c *calls.Call) {
	r, other := calls.Map2Of[T](&c.Args[0]), calls.Map2Of[T](&c.Args[1])
	for n := range r.Rows {
		setThree(r.Row(n), merged(three(r.Row(n)), three(other.Row(n))))
	}
}

// merged is the sums of the classes of two.
func merged(a, b [3]float64) [3]float64 {
	most := max(a[0], b[0])
	return [3]float64{most, float64(a[1]*math.Exp(a[0]-most)) + float64(b[1]*math.Exp(b[0]-most)), a[2] + b[2]}
}

func three[T calls.Float](row []T) [3]float64 {
	return [3]float64{float64(row[0]), float64(row[1]), float64(row[2])}
}

func setThree[T calls.Float](row []T, to [3]float64) {
	for i, v := range to {
		row[i] = T(v)
	}
}

func xentRef[T calls.Float](c *calls.Call) {
	loss, correct, r, y := calls.Data[T](&c.Args[0]), calls.Data[uint8](&c.Args[1]), calls.Map2Of[T](&c.Args[2]), calls.Data[int32](&c.Args[3])
	weight := 1.0
	if len(c.Args) > 4 {
		weight = float64(calls.Data[T](&c.Args[4])[0])
	}
	for n := range loss {
		loss[n], correct[n] = 0, 0
		if of := three(r.Row(n)); y[n] >= 0 {
			loss[n] = T(weight * (math.Log(of[1]) - (of[2] - of[0])))
			if of[2] == of[0] {
				correct[n] = 1
			}
		}
	}
}

// xentGradientRef is the reference of the gradient of w, or of x.
func xentGradientRef[T calls.Float](ofWeight bool) func(*calls.Call) {
	return func(c *calls.Call) {
		to, x, w, y, r := calls.Map2Of[T](&c.Args[0]), calls.Map2Of[T](&c.Args[1]), calls.Map2Of[T](&c.Args[2]), calls.Data[int32](&c.Args[3]), calls.Map2Of[T](&c.Args[4])
		weight := 1.0
		if len(c.Args) > 5 {
			weight = float64(calls.Data[T](&c.Args[5])[0])
		}
		dz := func(n, f int) float64 {
			if y[n] < 0 {
				return 0
			}
			p := math.Exp(product(x.Row(n), w.Row(f))-float64(r.Row(n)[0])) / float64(r.Row(n)[1])
			if int(y[n]) == f+int(c.Params[1]) {
				p--
			}
			return p * weight / c.Params[0]
		}
		sums, _ := calls.Scratch[float64](c.Work, to.Columns)
		for i := range to.Rows {
			clear(sums)
			if ofWeight {
				for n := range x.Rows {
					mix(sums, dz(n, i), x.Row(n))
				}
			} else {
				for f := range w.Rows {
					mix(sums, dz(i, f), w.Row(f))
				}
			}
			for d, v := range sums {
				calls.Put(&to.Row(i)[d], T(v), c.Args[0].Accumulates())
			}
		}
	}
}
