package kernels

import (
	"fmt"
	"math"
	"slices"

	"dahl/kernels/calls"
	"dahl/kernels/gpu"
	"dahl/kernels/simd"
)

// Function is a differentiable function that a layer applies to every element, as a line of
// [Functions]. The operation of its name computes y = f(x), and that with ".dx" behind the name
// computes dx = dy·f'. The reference computes values and slopes in float64
// and rounds once, and vectors compute in the elements' type. A new function is a line in the table; package nn
// makes a layer of each. Graphs name a function by its place in the table, so that a new one comes last.
type Function struct {
	Name, Doc string
	Value     func(x, setting float64) float64
	// Slope is f'(x). With OfOutput it is given y = f(x) instead of x, and the backward pass reads y.
	Slope    func(v, setting float64) float64
	OfOutput bool
	Flops    float64 // of a value

	Setting       string // a number between 0 and Most on which f depends; empty means none
	Default, Most float64

	// Bounds, except at kinks, from which tests derive how errors grow: |f'| is at most Steepest, the
	// derivative of f' at most Bend, and |f(0)| is AtZero.
	Steepest, Bend, AtZero float64

	vectors simd.Function
}

// functions is the table of functions. Nothing changes it.
var functions = []Function{tanh, sigmoid, gelu, geluTanh, silu, leakyReLU}

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

// vectorDoc is the Doc of variants with vectors. Without vectors nothing is faster than the reference.
const vectorDoc = "in vectors"

// functionKernels are the operations of all functions.
func functionKernels() (all []Kernel) {
	for i := range functions {
		f := &functions[i]
		by := reads("x", Real, "...").within(-8, 8)
		if f.OfOutput {
			by = reads("y", Real, "...")
		}
		forward := Kernel{
			Op: f.Name, Doc: "y = " + f.Name + "(x): " + f.Doc,
			Operands: []Operand{writes("y", Real, "..."), reads("x", Real, "...").within(-8, 8)},
			Flops:    perElement(f.Flops, 0),
			Variants: withRef("in float64", inFloat64(applyAt[float32](f)), inFloat64(applyAt[float64](f)),
				atLevels(vectorDoc, applyAt[float32](f), applyAt[float64](f), nil)[1:], gpu.FunctionOnCUDA(f.Name)),
		}
		backward := Kernel{
			Op: f.Name + ".dx", Doc: "dx = dy·" + f.Name + "'(x), by " + by.Name,
			Operands: []Operand{writes("dx", Real, "..."), reads("dy", Real, "..."), by},
			Flops:    perElement(f.Flops, 0),
			Variants: withRef("in float64", inFloat64(applyDxAt[float32](f)), inFloat64(applyDxAt[float64](f)),
				atLevels(vectorDoc, applyDxAt[float32](f), applyDxAt[float64](f), nil)[1:], gpu.FunctionOnCUDA(f.Name+".dx")),
		}
		for _, k := range []*Kernel{&forward, &backward} {
			if f.Setting != "" {
				k.Params = []string{f.Setting}
				k.Check = func(s *calls.Spec) error { return realParam(s, f.Setting, 0, math.Nextafter(f.Most, math.Inf(1))) }
			}
			all = append(all, *k)
		}
	}
	return all
}

func applyAt[T calls.Float](f *Function) func(simd.Level, *calls.Call) {
	return func(l simd.Level, call *calls.Call) {
		calls.EachRun(&call.Args[0], &call.Args[1], &call.Args[1], func(y, x, _ []T) { values(f, l, y, x, calls.SettingOf(call.Params)) })
	}
}

func applyDxAt[T calls.Float](f *Function) func(simd.Level, *calls.Call) {
	return func(l simd.Level, call *calls.Call) {
		calls.EachRun(&call.Args[0], &call.Args[1], &call.Args[2], func(dx, dy, v []T) { gradients(f, l, dx, dy, v, calls.SettingOf(call.Params)) })
	}
}

// values sets y to the function of x, in float64 where the level has no vectors. y may be x.
func values[T calls.Float](f *Function, l simd.Level, y, x []T, setting float64) {
	if l != simd.Go {
		simd.Values(f.vectors, l, y, x, setting)
		return
	}
	for i, v := range x {
		y[i] = T(f.Value(float64(v), setting))
	}
}

// gradients sets dx to dy times the slope by v, likewise. dx may be dy.
func gradients[T calls.Float](f *Function, l simd.Level, dx, dy, v []T, setting float64) {
	if l != simd.Go {
		simd.Gradients(f.vectors, l, dx, dy, v, setting)
		return
	}
	for i, s := range v {
		dx[i] = T(float64(dy[i]) * f.Slope(float64(s), setting))
	}
}

// inFloat64 is the reference of a function or of its gradient.
func inFloat64(at func(simd.Level, *calls.Call)) func(*calls.Call) {
	return func(c *calls.Call) { at(simd.Go, c) }
}

// The second derivative is 2y(1-y²) in size, the greatest at y = 1/√3.
var tanh = Function{
	vectors: simd.Tanh, Name: "tanh", Doc: "hyperbolic tangent", Flops: 8,
	Value:    func(x, _ float64) float64 { return math.Tanh(x) },
	Slope:    func(y, _ float64) float64 { return 1 - float64(y*y) },
	OfOutput: true,
	Steepest: 1, Bend: 0.77, // 4/(3√3)
}

// The second derivative is y(1-y)|1-2y| in size, the greatest at y = (1 ± 1/√3)/2.
var sigmoid = Function{
	vectors: simd.Sigmoid, Name: "sigmoid", Doc: "1/(1 + exp(-x))", Flops: 6,
	Value:    func(x, _ float64) float64 { return 1 / (1 + math.Exp(-x)) },
	Slope:    func(y, _ float64) float64 { return y * (1 - y) },
	OfOutput: true,
	Steepest: 0.25, Bend: 0.097, // 1/(6√3)
	AtZero: 0.5,
}

// With Φ and φ the distribution and the density of the standard normal, f' = Φ + xφ, and its
// derivative is φ·(2-x²). So f' is greatest at √2, and the derivative at 0. Hendrycks and Gimpel,
// "Gaussian error linear units (GELUs)", 2016.
var gelu = Function{
	vectors: simd.GELU, Name: "gelu", Doc: "x·Φ(x), Φ the distribution of the standard normal", Flops: 12,
	Value: func(x, _ float64) float64 { return x / 2 * math.Erfc(-x/math.Sqrt2) }, // 1 + erf would cancel
	Slope: func(x, _ float64) float64 {
		density := math.Exp(-x*x/2) / math.Sqrt(2*math.Pi)
		return float64(math.Erfc(-x/math.Sqrt2)/2) + float64(x*density)
	},
	Steepest: 1.13, Bend: 0.8, // Φ(√2) + √2·φ(√2), 2φ(0)
}

// The approximation of the same paper: Φ(x) ≈ (1 + tanh(u))/2, u = √(2/π)·(x + 0.044715·x³). That is
// the sigmoid s of v = 2u, and the derivative of s is s·(1-s)·v'.
var geluTanh = Function{
	vectors: simd.GELUTanh, Name: "gelu_tanh", Doc: "x·Φ(x) with a hyperbolic tangent in place of Φ, as PyTorch's approximate=\"tanh\"", Flops: 14,
	Value: func(x, _ float64) float64 {
		s, _ := geluSigmoid(x)
		return x * s
	},
	Slope: func(x, _ float64) float64 {
		s, dv := geluSigmoid(x)
		return s + float64(x*s*(1-s)*dv)
	},
	Steepest: 1.13, Bend: 0.8,
}

// geluSigmoid is s and the derivative of v.
func geluSigmoid(x float64) (s, dv float64) {
	const a, b = 1.5957691216057308, 0.044715 // √(8/π)
	return 1 / (1 + math.Exp(-a*(x+float64(b*x*x*x)))), a * (1 + float64(3*b*x*x))
}

// Hendrycks and Gimpel name it, too; Ramachandran, Zoph and Le, "Searching for activation functions", 2017, call it Swish. The
// second derivative is greatest in size at 0.
var silu = Function{
	vectors: simd.SiLU, Name: "silu", Doc: "x/(1 + exp(-x))", Flops: 7,
	Value: func(x, _ float64) float64 { return x * (1 / (1 + math.Exp(-x))) },
	Slope: func(x, _ float64) float64 {
		s := 1 / (1 + math.Exp(-x))
		return s + float64(x*s*(1-s))
	},
	Steepest: 1.1, Bend: 0.5,
}

// The slope at 0 is that below it, as in PyTorch. Maas, Hannun and Ng, "Rectifier nonlinearities
// improve neural network acoustic models", 2013.
var leakyReLU = Function{
	vectors: simd.LeakyReLU, Name: "leaky_relu", Doc: "x above 0, slope·x below", Flops: 2,
	Setting: "slope", Default: 0.01, Most: 1,
	Value: func(x, slope float64) float64 {
		if x > 0 {
			return x
		}
		return slope * x
	},
	Slope: func(x, slope float64) float64 {
		if x > 0 {
			return 1
		}
		return slope
	},
	Steepest: 1,
}
