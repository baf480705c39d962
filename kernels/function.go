package kernels

import (
	"fmt"
	"math"
	"slices"
)

// Function is a differentiable function that a layer applies to every element, as a line of
// [Functions]. The operation of its name computes y = f(x), and that with ".dx" behind the name
// computes dx = dy·f'. Values and slopes are computed in float64 and rounded once.
type Function struct {
	Name, Doc string
	Value     func(x float64) float64
	// Slope is f'(x). With OfOutput it is given y = f(x) instead of x, which is then what the
	// backward pass reads.
	Slope    func(v float64) float64
	OfOutput bool
	Flops    float64 // of a value

	// Bounds from which tests derive how errors grow: |f'| ≤ Steepest, |f''| ≤ Bend, and |f(0)|.
	Steepest, Bend, AtZero float64
}

// functions is the table of functions. Nothing changes it.
var functions = []Function{tanh, sigmoid, gelu, geluTanh}

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

// |f”| = 2y(1-y²) is greatest at y = 1/√3.
var tanh = Function{
	Name: "tanh", Doc: "hyperbolic tangent", Flops: 8,
	Value:    math.Tanh,
	Slope:    func(y float64) float64 { return 1 - float64(y*y) },
	OfOutput: true,
	Steepest: 1, Bend: 0.77, // 4/(3√3)
}

// |f”| = y(1-y)|1-2y| is greatest at y = (1 ± 1/√3)/2.
var sigmoid = Function{
	Name: "sigmoid", Doc: "1/(1 + exp(-x))", Flops: 6,
	Value:    func(x float64) float64 { return 1 / (1 + math.Exp(-x)) },
	Slope:    func(y float64) float64 { return y * (1 - y) },
	OfOutput: true,
	Steepest: 0.25, Bend: 0.097, // 1/(6√3)
	AtZero: 0.5,
}

// With Φ and φ the distribution and the density of the standard normal, f' = Φ + xφ and f” =
// φ·(2-x²). So f' is greatest at √2, and f” at 0. Hendrycks and Gimpel, "Gaussian error linear
// units (GELUs)", 2016.
var gelu = Function{
	Name: "gelu", Doc: "x·Φ(x), Φ the distribution of the standard normal", Flops: 12,
	Value: func(x float64) float64 { return x / 2 * (1 + math.Erf(x/math.Sqrt2)) },
	Slope: func(x float64) float64 {
		density := math.Exp(-x*x/2) / math.Sqrt(2*math.Pi)
		return float64((1+math.Erf(x/math.Sqrt2))/2) + float64(x*density)
	},
	Steepest: 1.13, Bend: 0.8, // Φ(√2) + √2·φ(√2), 2φ(0)
}

// The approximation of the same paper: Φ(x) ≈ (1 + tanh(u))/2, u = √(2/π)·(x + 0.044715·x³).
var geluTanh = Function{
	Name: "gelu_tanh", Doc: "x·Φ(x) with a hyperbolic tangent in place of Φ, as PyTorch's approximate=\"tanh\"", Flops: 14,
	Value: func(x float64) float64 {
		t, _ := geluTangent(x)
		return x / 2 * (1 + t)
	},
	Slope: func(x float64) float64 {
		t, du := geluTangent(x)
		return float64((1+t)/2) + float64(x/2*(1-float64(t*t))*du)
	},
	Steepest: 1.13, Bend: 0.8,
}

// geluTangent is tanh(u) and the derivative of u.
func geluTangent(x float64) (t, du float64) {
	const a, b = 0.7978845608028654, 0.044715 // √(2/π)
	return math.Tanh(a * (x + float64(b*x*x*x))), a * (1 + float64(3*b*x*x))
}

// functionKernels are the operations of all functions.
func functionKernels() (all []Kernel) {
	for _, f := range functions {
		v := "x"
		if f.OfOutput {
			v = "y"
		}
		all = append(all, Kernel{
			Op: f.Name, Doc: "y = " + f.Name + "(x): " + f.Doc,
			Operands: []Operand{writes("y", Real, "..."), reads("x", Real, "...")},
			Flops:    perElement(f.Flops, 0),
			Variants: withRef("in float64", applyRef[float32](f.Value), applyRef[float64](f.Value)),
		}, Kernel{
			Op: f.Name + ".dx", Doc: "dx = dy·" + f.Name + "'(x), by " + v,
			Operands: []Operand{writes("dx", Real, "..."), reads("dy", Real, "..."), reads(v, Real, "...")},
			Flops:    perElement(f.Flops, 0),
			Variants: withRef("in float64", applyDxRef[float32](f.Slope), applyDxRef[float64](f.Slope)),
		})
	}
	return all
}

func applyRef[T Float](value func(float64) float64) func(*Call) {
	return func(call *Call) {
		EachRun(&call.Args[0], &call.Args[1], &call.Args[1], func(y, x, _ []T) {
			for i, v := range x {
				y[i] = T(value(float64(v)))
			}
		})
	}
}

func applyDxRef[T Float](slope func(float64) float64) func(*Call) {
	return func(call *Call) {
		EachRun(&call.Args[0], &call.Args[1], &call.Args[2], func(dx, dy, v []T) {
			for i, s := range v {
				dx[i] = T(float64(dy[i]) * slope(float64(s)))
			}
		})
	}
}
