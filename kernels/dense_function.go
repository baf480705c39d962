package kernels

import (
	"fmt"
	"math"

	"dahl/kernels/calls"
	"dahl/kernels/cpu"
	"dahl/kernels/gpu"
	"dahl/kernels/offload"
	"dahl/kernels/simd"
)

// With Function a dense layer computes the function behind it, and its input gradient is multiplied by the slope of the function before it:
//
//	z[n,o]  = b[o] + Σ_i x[n,i]·w[o,i]      y = f(z)
//	dx[n,i] = f'(v[n,i])·Σ_o dy[n,o]·w[o,i]
//
// The parameter function is the number of f in [Functions], and setting is the number on which f depends. With Kept z is a result, too. The function's own gradient reads v, too: z or y. Variants give the bits of the operation without the function, and of the function or its gradient behind it. A dense layer at
// a level computes some rows at a time, which are still in a cache for the function.

// followed is an operation whose result goes through a function.
type followed struct {
	extra       insertion // the operands that the operation alone lacks
	first, last int       // its own operands in a call; last 0: to the end
	at          int       // the operand of the function, or of its slope
	slope       bool
}

func denseThenFunction(k Kernel) Kernel {
	f := followed{extra: insertion{at: 1}}
	plain := denseWith(Kernel{Op: k.Op, Base: k.Base, With: k.With &^ (calls.Function | calls.Kept)})
	plain.Operands[0].Modes = plain.Operands[0].Modes[:1]
	plain.Doc = "y = f(x·wᵀ + b)"
	if k.With.Has(calls.Kept) {
		f.extra.added, f.first, f.at = []Operand{writes("z", Real, "n f")}, 1, 1
		plain.Doc = "z = x·wᵀ + b, y = f(z)"
	}
	return f.kernelOf(plain, k.With,
		atLevelsInBlocks("dense and the function by some columns at a time, or with AVX2 in copied blocks", cpu.DenseThen(f.first, valueRow[float32]), cpu.DenseThen(f.first, valueRow[float64]), cpu.DenseWorkspace(f.first)))
}

func denseDxThenSlope(k Kernel) Kernel {
	f := followed{extra: insertion{3, []Operand{reads("v", Real, "n c").within(-8, 8)}}, last: 3, at: 3, slope: true}
	plain := denseDxWith(Kernel{Op: k.Op, Base: k.Base, With: k.With &^ calls.Function})
	plain.Operands[0].Modes = plain.Operands[0].Modes[:1]
	plain.Doc = "dx = dy·w·f'(v)"
	return f.kernelOf(plain, k.With,
		atLevelsInBlocks("dense.dx, then the slope by rows", cpu.DenseDxThen(slopeRow[float32]), cpu.DenseDxThen(slopeRow[float64]), cpu.DenseDxWorkspace))
}

// kernelOf is the operation with the function behind it, and with variants of its own at levels.
func (f followed) kernelOf(plain Kernel, with calls.Attributes, own []calls.Variant) Kernel {
	k := f.extra.into(plain, func(s *calls.Spec) float64 { return functions[int(s.Param("function"))].Flops * s.Volume(0) })
	k.With, k.Params, k.Check = with, []string{"function", "setting"}, checkFunction
	for _, v := range plain.Variants {
		then := f.extra.variant(v, "; then the function", func(_ *calls.Spec, own int64) int64 { return own })
		switch {
		case v.Code == calls.CUDACode:
			f.onCUDA(&then, &v)
		case v.Name == "ref":
			then.Run32, then.Run64 = followedRef[float32](f, v.Run32), followedRef[float64](f, v.Run64)
		default:
			continue
		}
		k.Variants = append(k.Variants, then)
	}
	k.Variants = append(k.Variants[:1:1], append(own, k.Variants[1:]...)...)
	return k
}

// checkFunction refuses numbers without a function, and settings out of its range.
func checkFunction(s *calls.Spec) error {
	n, err := intParam(s, "function", 0, len(functions)-1)
	if err != nil {
		return err
	}
	if f := &functions[n]; f.Setting == "" && s.Param("setting") != 0 {
		return fmt.Errorf("parameter setting is %g; %s has none, so that it must be 0", s.Param("setting"), f.Name)
	}
	return realParam(s, "setting", 0, math.Nextafter(functions[n].Most, math.Inf(1)))
}

func followedRef[T calls.Float](f followed, run func(*calls.Call)) func(*calls.Call) {
	row := valueRow[T]
	if f.slope {
		row = slopeRow[T]
	}
	return func(call *calls.Call) {
		args := call.Args // a call of another slice would be on the heap
		call.Args = own(f, args)
		run(call)
		call.Args = args
		calls.EachRun(&args[0], &args[0], &args[f.at], func(y, _, v []T) { row(simd.Go, call.Params, y, v) })
	}
}

// own is the operands of the operation without the function.
func own[A any](f followed, args []A) []A {
	if f.last > 0 {
		return args[f.first:f.last]
	}
	return args[f.first:]
}

// valueRow sets y to the function of x for parameters of a call, and slopeRow multiplies dx by its slope.
func valueRow[T calls.Float](l simd.Level, params []float64, y, x []T) {
	values(&functions[int(params[0])], l, y, x, params[1])
}

func slopeRow[T calls.Float](l simd.Level, params []float64, dx, v []T) {
	gradients(&functions[int(params[0])], l, dx, dx, v, params[1])
}

// onCUDA launches the function behind a variant for CUDA.
func (f followed) onCUDA(v, plain *calls.Variant) {
	without := func(c *calls.DeviceCall) *calls.DeviceCall {
		alone := *c
		alone.Args = own(f, c.Args)
		return &alone
	}
	v.Launches = func(c *calls.DeviceCall) []offload.Launch {
		then := calls.DeviceCall{Type: c.Type, Args: []calls.DeviceArg{c.Args[0], c.Args[f.at]}, Params: c.Params[1:]}
		name := functions[c.Param(0)].Name
		if f.slope {
			name, then.Args = name+".dx", []calls.DeviceArg{c.Args[0], c.Args[0], c.Args[f.at]}
		}
		return append(plain.Launches(without(c)), gpu.FunctionOnCUDA(name)[0].Launches(&then)...)
	}
	if plain.Library != "" {
		v.LibraryCall = func(c *calls.DeviceCall) offload.LibraryCall { return plain.LibraryCall(without(c)) }
	}
}
