package kernels

import (
	"fmt"
	"math"
	"slices"

	"dahl/kernels/simd"
)

// Function is a differentiable function that a layer applies to every element, as a line of
// [Functions]. The operation of its name computes y = f(x), and that with ".dx" behind the name
// computes dx = dy·f'. Values and slopes are computed in float64 and rounded once. A new function
// is one file and a line in the table; package nn makes a layer of each.
type Function struct {
	Name, Doc string
	Value     func(x, setting float64) float64
	// Slope is f'(x). With OfOutput it is given y = f(x) instead of x, which is then what the
	// backward pass reads.
	Slope    func(v, setting float64) float64
	OfOutput bool
	Flops    float64 // of a value

	Setting       string // a number between 0 and Most on which f depends; "": there is none
	Default, Most float64

	// Bounds, except at kinks, from which tests derive how errors grow: |f'| is at most Steepest, the
	// derivative of f' at most Bend, and |f(0)| is AtZero.
	Steepest, Bend, AtZero float64

	vectors simd.Function
}

// functions is the table of functions. Nothing changes it.
var functions = []Function{tanh, sigmoid, gelu, geluTanh, leakyReLU}

// Functions is the table of functions, as a copy.
func Functions() []Function { return slices.Clone(functions) }

// FunctionByName finds a line of the table of functions.
func FunctionByName(name string) (*Function, error) {
	for _, f := range functions {
		if f.Name == name {
			return &f, nil
		}
	}
	return nil, fmt.Errorf("function %q is not in the table", name)
}

// vectorDoc is of the variants with vectors. Without them nothing is faster than the reference.
const vectorDoc = "in vectors of float64"

// functionKernels are the operations of all functions.
func functionKernels() (all []Kernel) {
	for _, f := range functions {
		by := reads("x", Real, "...").within(-8, 8)
		if f.OfOutput {
			by = reads("y", Real, "...")
		}
		forward := Kernel{
			Op: f.Name, Doc: "y = " + f.Name + "(x): " + f.Doc,
			Operands: []Operand{writes("y", Real, "..."), reads("x", Real, "...").within(-8, 8)},
			Flops:    perElement(f.Flops, 0),
			Variants: withRef("in float64", applyRef[float32](f.Value), applyRef[float64](f.Value),
				atLevels(vectorDoc, applyAt[float32](f.vectors), applyAt[float64](f.vectors), nil)[1:], functionOnCUDA(f.Name)),
		}
		backward := Kernel{
			Op: f.Name + ".dx", Doc: "dx = dy·" + f.Name + "'(x), by " + by.Name,
			Operands: []Operand{writes("dx", Real, "..."), reads("dy", Real, "..."), by},
			Flops:    perElement(f.Flops, 0),
			Variants: withRef("in float64", applyDxRef[float32](f.Slope), applyDxRef[float64](f.Slope),
				atLevels(vectorDoc, applyDxAt[float32](f.vectors), applyDxAt[float64](f.vectors), nil)[1:], functionOnCUDA(f.Name+".dx")),
		}
		for _, k := range []*Kernel{&forward, &backward} {
			if f.Setting != "" {
				k.Params = []string{f.Setting}
				k.Check = func(s *Spec) error { return realParam(s, f.Setting, 0, math.Nextafter(f.Most, math.Inf(1))) }
			}
			all = append(all, *k)
		}
	}
	return all
}

// settingOf is the number on which the function of a call depends; 0 where there is none.
func settingOf(params []float64) float64 {
	if len(params) == 0 {
		return 0
	}
	return params[0]
}

func applyRef[T Float](value func(x, setting float64) float64) func(*Call) {
	return func(call *Call) {
		setting := settingOf(call.Params)
		EachRun(&call.Args[0], &call.Args[1], &call.Args[1], func(y, x, _ []T) {
			for i, v := range x {
				y[i] = T(value(float64(v), setting))
			}
		})
	}
}

func applyDxRef[T Float](slope func(v, setting float64) float64) func(*Call) {
	return func(call *Call) {
		setting := settingOf(call.Params)
		EachRun(&call.Args[0], &call.Args[1], &call.Args[2], func(dx, dy, v []T) {
			for i, s := range v {
				dx[i] = T(float64(dy[i]) * slope(float64(s), setting))
			}
		})
	}
}

func applyAt[T Float](f simd.Function) func(simd.Level, *Call) {
	return func(l simd.Level, call *Call) {
		EachRun(&call.Args[0], &call.Args[1], &call.Args[1], func(y, x, _ []T) {
			simd.Values(f, l, y, x, settingOf(call.Params))
		})
	}
}

func applyDxAt[T Float](f simd.Function) func(simd.Level, *Call) {
	return func(l simd.Level, call *Call) {
		EachRun(&call.Args[0], &call.Args[1], &call.Args[2], func(dx, dy, v []T) {
			simd.Gradients(f, l, dx, dy, v, settingOf(call.Params))
		})
	}
}
