package kerneltest

import (
	"cmp"
	"math/rand/v2"

	"dahl/dag"
	"dahl/kernels"
	"dahl/kernels/calls"
)

// filler draws values that the operation allows for operand i.
func (c *Case) filler(i int, rng *rand.Rand) func() float64 {
	o := &c.Kernel.Operands[i]
	least, most := o.Values.Least, o.Values.Most
	if least == most {
		least, most = -1, 1
	}
	within := func() float64 { return (most-least)*rng.Float64() + least }
	switch often := o.Values.Often; {
	case c.Kernel.With&exactSums != 0 && o.Kind == kernels.Real:
		return func() float64 { return float64(rng.IntN(9) - 4) }
	case c.Buffers[i].Type == dag.Uint8 || c.Buffers[i].Type == dag.Int32:
		limit := cmp.Or(c.Kernel.IndexBound(&c.Spec, i), anyByte)
		return func() float64 {
			v := float64(rng.IntN(limit))
			if o.Values.OrNone && rng.IntN(4) == 0 {
				v = noMaximum
				if c.Buffers[i].Type == dag.Int32 {
					v = noLabel
				}
			}
			return v
		}
	case c.Buffers[i].Type == dag.Int64:
		return func() float64 { return float64(rng.IntN(anyByte)) }
	case o.Kind == kernels.Scalar:
		return func() float64 { return []float64{0.1, 3}[rng.IntN(2)] }
	case often != nil: // of half of the elements, so that many are equal
		return func() float64 {
			if rng.IntN(2) == 0 {
				return often[rng.IntN(len(often))]
			}
			return within()
		}
	}
	return within
}

// noMaximum is the position in a pooling window that passes no gradient.
const noMaximum = 255

// noLabel is the label of a row without a loss.
const noLabel = -1

// exactSums are the attributes of operations that compare sums, take the result of such a comparison, or square sums. Their
// inputs are small integers. So the sums are exact in any order, all variants find the same
// maxima, and many of these are equal or zero.
const exactSums = calls.Moments | calls.Pool

// anyByte bounds numbers that nothing else bounds. It is prime.
const anyByte = 251
