package kerneltest

import (
	"fmt"
	"iter"
	"math"
	"math/rand/v2"
	"slices"

	"dahl/dag"
	"dahl/kernels"
)

// Halved is a call in bfloat16 and the same call in float32, on the numbers that the former's operands hold. Half of the
// operands that may be in bfloat16 are.
type Halved struct{ Case, Wide *Case }

// Halves yields such calls of an operation.
func Halves(k *kernels.Kernel, n int) iter.Seq[Halved] {
	return func(yield func(Halved) bool) {
		rng := rand.New(rand.NewPCG(16, 20))
		for c := range cases(k, n, func(_ int, rng *rand.Rand) *Case { return Random(k, rng, dag.Float32) }) {
			if !yield(halved(c, rng)) {
				return
			}
		}
	}
}

func halved(wide *Case, rng *rand.Rand) Halved {
	c := wide.Clone()
	c.Spec.Type = dag.BFloat16
	c.Spec.Operands, c.Buffers, c.Boxes = slices.Clone(c.Spec.Operands), slices.Clone(c.Buffers), slices.Clone(c.Boxes)
	for i := range c.Buffers {
		if c.Kernel.Operands[i].Kind != kernels.Real || rng.IntN(2) == 0 {
			continue
		}
		c.Buffers[i].Type, c.Spec.Operands[i].Type = dag.BFloat16, dag.BFloat16
		c.Data[i] = aligned(c.Buffers[i].Bytes())
		for at := range int(c.Buffers[i].Elems()) {
			c.put(i, at, wide.get(i, at))
		}
		// In float32 without gaps, as the copies in the workspace: variants may sum in another order where there are some.
		wide.Buffers[i].Shape = c.Spec.Operands[i].Shape
		wide.Boxes[i] = dag.Whole(wide.Buffers[i].Shape)
		wide.Data[i] = aligned(wide.Buffers[i].Bytes())
		wide.take(i, c)
	}
	return Halved{c, wide}
}

// take rounds the region of an operand of another case.
func (c *Case) take(i int, from *Case) {
	values := from.Values(i)
	c.Set(i, func(j int) float64 { return values[j] })
}

// Check compares what both calls have given: the results of the call in float32 must be rounded, and everything else have its bits.
func (h Halved) Check() error {
	want := h.Case.Clone()
	for i, b := range want.Buffers {
		if b.Type == dag.BFloat16 {
			want.take(i, h.Wide)
		} else {
			want.Data[i] = h.Wide.Data[i]
		}
		if !h.Case.SameBytes(want, i) {
			return fmt.Errorf("%s: operand %d%w", h.Case.Spec.Key(), i, firstDifference(h.Case.Values(i), want.Values(i)))
		}
	}
	return nil
}

// toBFloat16 are the bits of the nearest bfloat16, and between two of the even one. A bfloat16 has eight significant bits, and
// below 2⁻¹²⁶ steps of 2⁻¹³³.
func toBFloat16(v float64) uint16 {
	if v-v == 0 && v != 0 {
		_, exponent := math.Frexp(v)
		step := math.Ldexp(1, max(exponent-8, -133))
		v = math.RoundToEven(v/step) * step
	}
	return uint16(math.Float32bits(float32(v)) >> 16) // which cuts nothing off
}
