package kerneltest

import (
	"math"
	"strings"

	"dahl/kernels"
	"dahl/kernels/calls"
)

// unitsOf is how much the value f(x) and the slope of a function may differ between two variants,
// in units u, see [UnitRoundoff]. The slope is given the operand of the operation, x or y. Every
// variant's exponential, of a number that it knows exactly, errs by at most 4u.
//
// tanh: e^(-2|x|) - 1 errs by 4u (see cuda/device_math.h), 2u more from the denominator in the worst
// case, twice, and quotient and reference (math.Tanh, 2 units in the last place) by 5u.
//
// sigmoid: exponential, sum, and quotient make 8u, as much in the reference less 4u.
//
// gelu: Φ(-|x|) is the exponential of -x²/2, 6u with its correction, times the quotient, 24u:
// its argument has two roundings, by which it grows at most fourfold, and its polynomial 12u, twice
// the sum of its coefficients over its least value. In the reference x/√2 has two roundings, which make
// 2x²u, and math.Erfc, a division and two products 8u. The slope has x·φ(x) besides, and the sum.
//
// gelu_tanh: 7 roundings of v = √(8/π)·(x + 0.044715·x³), by which s = 1/(1 + e^-v) grows at most
// |v|-fold, in both variants; and the sigmoid. Of the slope s + x·s·(1-s)·v' the terms count by size;
// 1 - s errs by as much as s.
//
// silu: the sigmoid and a product. The terms of its slope s + x·s·(1-s) count as in gelu_tanh.
//
// The others are some products and sums, and leaky_relu rounds its setting.
var unitsOf = map[string]struct {
	value, slope func(v, setting float64) float64
}{
	"tanh": {
		func(x, _ float64) float64 { return 21 * math.Abs(math.Tanh(x)) },
		func(y, _ float64) float64 { return 3 * (1 + y*y) },
	},
	"sigmoid": {
		func(x, _ float64) float64 { return 12 / (1 + math.Exp(-x)) },
		func(y, _ float64) float64 { return 6 * math.Abs(y) * (1 + math.Abs(y)) },
	},
	"gelu": {
		func(x, _ float64) float64 { return (40 + 2*x*x) * math.Abs(x) * normal(x) },
		func(x, _ float64) float64 {
			return (42 + 2*x*x) * (normal(x) + math.Abs(x)*math.Exp(-x*x/2)/math.Sqrt(2*math.Pi))
		},
	},
	"gelu_tanh": {
		func(x, _ float64) float64 {
			v, _ := sigmoidOfCube(x)
			return (22 + 14*math.Abs(v)) * math.Abs(x) / (1 + math.Exp(-v))
		},
		func(x, _ float64) float64 {
			v, dv := sigmoidOfCube(x)
			return (32 + 14*math.Abs(v)) * (1 + math.Abs(x)*dv) / (1 + math.Exp(-v))
		},
	},
	"silu": {
		func(x, _ float64) float64 { return 14 * math.Abs(x) / (1 + math.Exp(-x)) },
		func(x, _ float64) float64 { return 32 * (1 + math.Abs(x)) / (1 + math.Exp(-x)) },
	},
	"leaky_relu": {
		func(x, slope float64) float64 { return 4 * slope * math.Abs(x) },
		func(_, slope float64) float64 { return 4 * slope },
	},
}

// normal is the distribution of the standard normal.
func normal(x float64) float64 { return math.Erfc(-x/math.Sqrt2) / 2 }

// sigmoidOfCube is the argument v of the sigmoid in gelu_tanh, and its derivative.
func sigmoidOfCube(x float64) (v, dv float64) {
	a := math.Sqrt(8 / math.Pi)
	return a * (x + 0.044715*x*x*x), a * (1 + 3*0.044715*x*x)
}

func isFunction(name string) bool {
	_, err := kernels.FunctionByName(name)
	return err == nil
}

// expectAlone expects the results of the operation without the function behind it.
func (e *Expected) expectAlone(c *Case) {
	k, err := kernels.KernelByName(kernels.Written(c.Kernel.Base, c.Kernel.With&^(calls.Function|calls.Kept)))
	if err != nil {
		panic("kerneltest: " + err.Error())
	}
	for i, o := range c.Kernel.Operands[:len(c.Data)] {
		if o.Name != "v" && !(o.Name == "y" && c.Kernel.With.Has(calls.Kept)) {
			e.operands = append(e.operands, i)
		}
	}
	e.alone = Expect(c.Part(k, e.operands))
}

// functionBound is the bound of the sums, for those that are kept, and for values behind a function f: |f'| times the bound of the sum, and how much f itself
// may differ. A slope is a factor of the sum.
func (e *Expected) functionBound(v *calls.Variant, i int) func(j int) float64 {
	sums := e.alone.sumBound(v, 0)
	if i == e.operands[0] && i > 0 {
		return sums
	}
	params := e.ref.Params()
	f, setting := kernels.Functions()[int(params[0])], params[1]
	units, u := unitsOf[f.Name], UnitRoundoff(e.ref.Spec.Type)
	least := u * 0x1p-120
	of := e.alone.ref.Values(0)
	if at := e.ref.Operand("v"); at >= 0 {
		points := e.ref.Values(at)
		return func(j int) float64 {
			slope, size := math.Abs(f.Slope(points[j], setting)), math.Abs(of[j])+sums(j)
			return slope*sums(j) + u*(units.slope(points[j], setting)+2*slope)*size + least
		}
	}
	return func(j int) float64 { // the function may differ most where the sum differs most
		z, d := of[j], sums(j)
		return f.Steepest*d + u*max(units.value(z-d, setting), units.value(z, setting), units.value(z+d, setting)) + least
	}
}

// functionBounds is the bounds of the operations of functions, by operand and element, with some of the
// smallest numbers where a result is subnormal. Nil means that the operation computes no function.
func functionBounds(c *Case) [][]float64 {
	name, gradient := strings.CutSuffix(c.Kernel.Op, ".dx")
	if !isFunction(name) {
		return nil
	}
	units, ok := unitsOf[name]
	if !ok {
		panic("kerneltest: no bounds for function " + name)
	}
	setting, u := 0.0, UnitRoundoff(c.Spec.Type)
	least := u * 0x1p-120 // far below what counts, above the smallest number of float32
	for _, p := range c.Params() {
		setting = p
	}
	all := make([][]float64, len(c.Buffers))
	dy := c.Values(1) // of a gradient
	for j, v := range c.Values(len(c.Buffers) - 1) {
		if gradient {
			all[0] = append(all[0], u*units.slope(v, setting)*math.Abs(dy[j])+least)
		} else {
			all[0] = append(all[0], u*units.value(v, setting)+least)
		}
	}
	return all
}
