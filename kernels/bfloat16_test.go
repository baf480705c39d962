package kernels_test

import (
	"math"
	"testing"

	"dahl/kernels"
	"dahl/kernels/calls"
	"dahl/kernels/kerneltest"
)

// TestBFloat16 holds every variant in bfloat16 to itself in float32: it computes with the numbers that the operands hold, and the
// results are rounded to the nearest bfloat16.
func TestBFloat16(t *testing.T) {
	for _, k := range kernels.Kernels() {
		if k.Host {
			continue
		}
		t.Run(k.Op, func(t *testing.T) {
			for h := range kerneltest.Halves(&k, 6) {
				if err := kernels.Validate(&h.Case.Spec); err != nil {
					t.Fatal(err)
				}
				for i := range k.Variants {
					v := &k.Variants[i]
					if !h.Case.Runs(v) {
						continue
					}
					ran := kerneltest.Halved{Case: h.Case.Clone(), Wide: h.Wide.Clone()}
					ran.Case.Run(v)
					ran.Wide.Run(v)
					if err := ran.Check(); err != nil {
						t.Fatalf("%s %v", v.Name, err)
					}
				}
			}
		})
	}
}

// TestRoundingToBFloat16: 1 + 2⁻⁸ is halfway between 1 and 1 + 2⁻⁷, of which 1 is even; 1 + 3·2⁻⁸ is halfway to the even 1 + 2⁻⁶.
// The largest bfloat16 is (2 - 2⁻⁷)·2¹²⁷, the smallest 2⁻¹³³.
func TestRoundingToBFloat16(t *testing.T) {
	for _, c := range []struct {
		v    float32
		want uint16
	}{
		{0, 0}, {float32(math.Copysign(0, -1)), 0x8000}, {1, 0x3f80}, {-2.5, 0xc020},
		{1 + 0x1p-8, 0x3f80}, {1 + 3*0x1p-8, 0x3f82}, {1 + 0x1p-8 + 0x1p-23, 0x3f81}, {1 + 0x1p-7, 0x3f81},
		{(2 - 0x1p-7) * 0x1p127, 0x7f7f}, {math.MaxFloat32, 0x7f80}, {float32(math.Inf(-1)), 0xff80},
		{0x1p-133, 1}, {0x1p-134, 0}, {3 * 0x1p-134, 2},
	} {
		if got := calls.ToBFloat16(c.v); got != c.want {
			t.Errorf("%g becomes %#04x, want %#04x", c.v, got, c.want)
		}
	}
	for _, bits := range []uint32{0x7f800001, 0x7fffffff, 0xffc00000} {
		if v := calls.FromBFloat16(calls.ToBFloat16(math.Float32frombits(bits))); v == v {
			t.Errorf("the NaN %#x becomes %g", bits, v)
		}
	}
}
