package kernels

import (
	"errors"
	"math"

	"dahl/kernels/simd"
)

// Adam (Kingma and Ba, 2015, arXiv:1412.6980) as PyTorch 1.13 defines it
// (torch.optim.Adam), element by element, for step t from 1:
//
//	g ← g + weight_decay·w
//	m ← beta1·m + (1-beta1)·g
//	v ← beta2·v + (1-beta2)·g²
//	w ← w - lr/(1-beta1^t) · m / (sqrt(v)/sqrt(1-beta2^t) + eps)
//
// hyper is {lr, t}. Terms that depend on t only are computed in float64. Every product is rounded
// before it is added, so that all variants give equal bits in any build.

var adam = Kernel{
	Op: "adam", Doc: "m, v = moments of g; w -= lr·m̂/(√v̂ + eps)",
	Operands: []Operand{
		updates("w", "..."), reads("g", Real, "..."), reads("hyper", Scalar, "2"),
		updates("m", "..."), updates("v", "..."),
	},
	Params: []string{"beta1", "beta2", "eps", "weight_decay"},
	Check: func(s *Spec) error {
		return errors.Join(
			realParam(s, "beta1", 0, 1), realParam(s, "beta2", 0, 1),
			realParam(s, "eps", 0, math.MaxFloat32), realParam(s, "weight_decay", 0, math.MaxFloat32))
	},
	Work: perElement(14, 0),
	Variants: withRef("element by element", adamRef[float32], adamRef[float64],
		atLevels("run by run", adamAt[float32], adamAt[float64], nil),
		onCUDA("four elements per thread", adamOnCUDA)),
}

func adamRef[T Float](call *Call) {
	w, g, m, v := &call.Args[0], &call.Args[1], &call.Args[3], &call.Args[4]
	hyper := Data[float64](&call.Args[2])
	lr, t := hyper[0], hyper[1]
	beta1, beta2, eps, decay := call.Params[0], call.Params[1], T(call.Params[2]), T(call.Params[3])
	rate := T(lr / (1 - math.Pow(beta1, t)))
	root := T(math.Sqrt(1 - math.Pow(beta2, t)))
	b1, b2, c1, c2 := T(beta1), T(beta2), T(1-beta1), T(1-beta2)

	outer, rows, run := runs(w, g, m, v)
	for r := range rows {
		ws := Data[T](w)[w.offset(outer, r):][:run]
		ms := Data[T](m)[m.offset(outer, r):][:run]
		vs := Data[T](v)[v.offset(outer, r):][:run]
		for i, grad := range Data[T](g)[g.offset(outer, r):][:run] {
			if decay != 0 {
				grad += T(decay * ws[i])
			}
			ms[i] = T(b1*ms[i]) + T(c1*grad)
			vs[i] = T(b2*vs[i]) + T(c2*grad*grad)
			ws[i] -= rate * ms[i] / (T(math.Sqrt(float64(vs[i])))/root + eps)
		}
	}
}

func adamAt[T Float](level simd.Level, call *Call) {
	w, g, m, v := &call.Args[0], &call.Args[1], &call.Args[3], &call.Args[4]
	lr, t := Data[float64](&call.Args[2])[0], Data[float64](&call.Args[2])[1]
	beta1, beta2 := call.Params[0], call.Params[1]
	step := simd.Adam[T]{
		Beta1: T(beta1), Gain1: T(1 - beta1), Beta2: T(beta2), Gain2: T(1 - beta2),
		Rate: T(lr / (1 - math.Pow(beta1, t))), Root: T(math.Sqrt(1 - math.Pow(beta2, t))),
		Eps: T(call.Params[2]), Decay: T(call.Params[3]),
	}
	outer, rows, run := runs(w, g, m, v)
	for r := range rows {
		step.Step(level, Data[T](w)[w.offset(outer, r):][:run],
			Data[T](g)[g.offset(outer, r):][:run],
			Data[T](m)[m.offset(outer, r):][:run],
			Data[T](v)[v.offset(outer, r):][:run])
	}
}
