package kerneltest

import (
	"cmp"
	"fmt"
	"math"

	"dahl/dag"
	"dahl/kernels"
	"dahl/kernels/calls"
)

// Expected is the result that a call must give: the results of "ref", and the allowed differences
// of another variant.
//
// A result is a sum of N products of inputs, added in another order. Both variants err from the
// exact sum by at most γ·Σ|a||b|, γ = N·u/(1-N·u), u half the distance of 1 and the next number
// (Higham, Accuracy and Stability of Numerical Algorithms, section 3.1). So they differ by at
// most 2γ·Σ|a||b|. The old contents (mode ReadWrite) and the bias are two more terms. The
// reference itself computes Σ|a||b| of each element in float64 on the absolute values of the
// inputs. Its relative error is below 1e-12, which the factor 1.01 covers.
//
// Variants that compute convolutions in Winograd's domain err more, see winograd.go.
//
// Variants of tensor cores round the factors of products to fewer bits, by u' each. That adds
// (2u'+u'²)·Σ|a||b|. Their sums may cut off instead of rounding, so their u is twice as large.
//
// Some operations must be equal bit for bit: moves, comparisons, and whatever does
// the same few rounded operations per element in all variants. Exponentials and logarithms have
// bounds of their own, see absolute.
type Expected struct {
	ref      *Case
	terms    int                 // N; 0 where there is no sum
	sums     *Case               // its values are Σ|a||b|
	alone    *Expected           // of the operation without the function behind it; nil means that there is none
	operands []int               // of that operation, as numbers of operands of the whole
	before   *Case               // nil means that there are no bounds but sums
	absolute map[int][][]float64 // by the bits of factors, bounds by operand, see limits
}

// Expect runs the reference.
func Expect(c *Case) *Expected {
	c = c.plain()
	e := &Expected{ref: c.Clone(), terms: Terms(c)}
	ref := &c.Kernel.Variants[0]
	e.ref.Run(ref)
	if c.Kernel.With.Has(calls.Function) {
		e.expectAlone(c)
		return e
	}
	if e.terms > 0 {
		e.sums = c.Magnitudes()
		e.sums.Run(ref)
	}
	e.before, e.absolute = c.Clone(), map[int][][]float64{}
	return e
}

// limits are the bounds of an operation with bounds of its own, for factors of some bits. Nil means that it has none.
func (e *Expected) limits(bits int) [][]float64 {
	all, there := e.absolute[bits]
	if !there && e.before != nil {
		all = absolute(e.before, e.ref, bits)
		e.absolute[bits] = all
	}
	return all
}

// Compare compares all operands of a case that a variant has run with the expected results, and
// describes the clearest difference. Bits must be equal in read-only operands and around the
// regions.
func (e *Expected) Compare(got *Case, v *calls.Variant) error {
	got = got.plain()
	for i := range got.Buffers {
		if err := e.compare(got, v, i); err != nil {
			return fmt.Errorf("%s %s %v (%s), operand %s%w", got.Spec.Op, v.Name, got.Spec.Type, got.Spec.Key(), got.Kernel.Operands[i].Name, err)
		}
	}
	return nil
}

func (e *Expected) compare(got *Case, v *calls.Variant, i int) error {
	if v.Transforms && got.Kernel.With.Has(calls.Pool) && e.ref.Spec.Operands[i].Mode != dag.Read {
		return cmp.Or(e.comparePooled(got), got.checkOutside(e.ref, i))
	}
	bound := e.bound(v, i)
	if bound == nil {
		if !got.SameBytes(e.ref, i) {
			return firstDifference(got.Values(i), e.ref.Values(i))
		}
		return nil
	}
	g, w := got.Values(i), e.ref.Values(i)
	for j := range g {
		if limit := bound(j); g[j] != w[j] && !(math.Abs(g[j]-w[j]) <= limit) { // both may be infinite
			return fmt.Errorf("[%d] is %g, ref gives %g, difference %g > %g", j, g[j], w[j], g[j]-w[j], limit)
		}
	}
	return got.checkOutside(e.ref, i)
}

func (c *Case) checkOutside(ref *Case, i int) error {
	if !c.SameOutside(ref, i) {
		return fmt.Errorf(" is written outside its region")
	}
	return nil
}

func firstDifference(got, want []float64) error {
	for j := range got {
		if math.Float64bits(got[j]) != math.Float64bits(want[j]) {
			return fmt.Errorf("[%d] is %g, ref gives %g, and bits must be equal", j, got[j], want[j])
		}
	}
	return fmt.Errorf(" is written outside its region")
}

// bound is the greatest difference by element of operand i. Nil means that none is allowed.
func (e *Expected) bound(v *calls.Variant, i int) func(j int) float64 {
	bound := e.sumBound(v, i)
	if v.Transforms {
		return e.winogradBound(i, bound)
	}
	return bound
}

// sumBound is bound of a variant that adds products as they are.
func (e *Expected) sumBound(v *calls.Variant, i int) func(j int) float64 {
	switch {
	case e.ref.Spec.Operands[i].Mode == dag.Read:
		return nil
	case e.alone != nil:
		return e.functionBound(v, i)
	case e.limits(v.FactorBits) != nil:
		if limits := e.limits(v.FactorBits)[i]; limits != nil {
			return func(j int) float64 { return limits[j] }
		}
		return nil
	case e.terms == 0:
		return nil
	}
	sums := e.sums.Values(i)
	u, rounded := roundings(e.ref.Spec.Type, v.FactorBits)
	nu := float64(e.terms) * u
	relative := 1.01 * (2*nu/(1-nu) + rounded)
	return func(j int) float64 { return relative * sums[j] }
}

// roundings are the unit roundoff of sums, and by how much of itself a product errs whose factors are rounded to some bits. Zero bits means
// that they are not.
func roundings(t dag.DType, bits int) (u, product float64) {
	u = UnitRoundoff(t)
	if bits == 0 {
		return u, 0
	}
	factor := math.Ldexp(1, -bits) // half the distance of two numbers with these bits
	return 2 * u, 2*factor + factor*factor
}

// UnitRoundoff is half the distance of 1 and the next number.
func UnitRoundoff(t dag.DType) float64 {
	if t == dag.Float32 {
		return 0x1p-24
	}
	return 0x1p-53
}

// Terms is the number of products and terms added into one element, 0 where there is no such sum.
func Terms(c *Case) int {
	switch c.Kernel.Op {
	case "mean":
		return c.Spec.Operands[1].Shape[0] + 1 // and the division
	case "batchnorm.total":
		return c.Spec.Operands[1].Shape[0] + 2 // and the old contents
	case "squares":
		terms := 1
		for _, e := range c.Spec.Operands[1].Shape {
			terms *= e
		}
		return terms
	}
	if c.Kernel.PerPoint != 2 {
		return 0
	}
	space, err := kernels.SpaceOf(&c.Spec)
	if err != nil {
		panic("kerneltest: " + err.Error())
	}
	if c.Kernel.With.Has(calls.SGD) {
		return space.Terms() + 10 // and products and sums with decay, momentum twice, and rate
	}
	return space.Terms() + 2 // and the bias and the old contents
}

// Magnitudes returns the case in float64 with the absolute values of all reals. The sign of a
// learning rate makes the step add to the weight.
func (c *Case) Magnitudes() *Case {
	var shapes [][]int
	var modes []dag.Mode
	for _, o := range c.Spec.Operands {
		shapes, modes = append(shapes, o.Shape), append(modes, o.Mode)
	}
	m := New(c.Kernel, dag.Float64, shapes, modes, c.Spec.Params, 0)
	for i := range c.Buffers {
		values := c.Values(i)
		sign := 1.0
		if c.Kernel.Operands[i].Kind == kernels.Scalar {
			sign = -1
		}
		m.Set(i, func(j int) float64 { return sign * math.Abs(values[j]) })
	}
	return m
}
