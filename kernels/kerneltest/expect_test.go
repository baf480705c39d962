package kerneltest

import (
	"math"
	"testing"

	"dahl/dag"
	"dahl/kernels"
	"dahl/kernels/calls"
)

// TestCompareFindsErrors: the reference's results pass, and do not when one element of an
// operand is off by more than any bound, which is less than the largest element, is NaN, or one byte beside a region has changed.
func TestCompareFindsErrors(t *testing.T) {
	Each(t, 6, func(t *testing.T, c *Case) {
		ref, expected := &c.Kernel.Variants[0], Expect(c)
		right := c.Clone()
		right.Run(ref)
		if err := expected.Compare(right, ref); err != nil {
			t.Fatalf("the reference differs from itself: %v", err)
		}
		for _, i := range c.Written() {
			last, largest := len(right.Values(i))-1, 0.0
			for _, v := range right.Values(i) {
				largest = max(largest, math.Abs(v))
			}
			for _, wrong := range []float64{right.Values(i)[last] + 1 + largest, math.NaN()} {
				got := right.Clone()
				values := got.Values(i)
				values[last] = wrong
				got.Set(i, func(j int) float64 { return values[j] })
				if got.SameBytes(right, i) { // NaN in an operand of integers
					continue
				}
				if expected.Compare(got, ref) == nil {
					t.Errorf("%s: %g in operand %d is not noticed", c.Spec.Key(), wrong, i)
				}
			}
			if c.Boxes[i][0].Lo > 0 {
				got := right.Clone()
				got.Data[i][0] ^= 1
				if expected.Compare(got, ref) == nil {
					t.Errorf("%s: a byte beside operand %d is not noticed", c.Spec.Key(), i)
				}
			}
		}
	})
}

// TestInputRoundoff: of the variants, only those that round the factors of products get
// wider bounds, and the wider the fewer bits they keep.
func TestInputRoundoff(t *testing.T) {
	k, _ := kernels.KernelByName("dense")
	c := New(k, dag.Float32, [][]int{{3, 5}, {3, 7}, {5, 7}, {5}}, FirstModes(k), nil, 0)
	for i := range c.Buffers {
		c.Set(i, func(int) float64 { return 1 })
	}
	e := Expect(c)
	bound := func(bits int) float64 { return e.bound(&calls.Variant{FactorBits: bits}, 0)(0) }
	// Σ|a||b| is 7 products and the bias, 8, and 2u' alone 2⁻¹⁰ and 2⁻⁷.
	if cuda, tf32, bf16 := bound(0), bound(11), bound(8); cuda > 8*0x1p-19 || tf32 < 8*0x1p-10 || tf32 > 9*0x1p-10 || bf16 < 8*0x1p-7 || bf16 > 9*0x1p-7 {
		t.Errorf("bounds %g, %g, %g", cuda, tf32, bf16)
	}
}
