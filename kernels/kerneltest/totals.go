package kerneltest

import (
	"math"

	"dahl/dag"
)

// totalBounds is the bounds of the totals of a batch normalisation over samples, whose tiles are merged. Nil means that the operation is none.
//
// The number of values is exact. Added to a number that a test has drawn it errs by γ of itself. The sum errs by γ = 2(N+16)·u of the sizes of its N terms. The squares are terms above 0, whose sum errs by γ of itself. The distance d of
// the mean of a sample from the mean of all errs by a few u of the greatest mean m, so that the squares of all values err by 2γ·|d|·m and by γ·u·m² each.
func totalBounds(c *Case, want *Case) [][]float64 {
	if c.Kernel.Op != "moments.total" {
		return nil
	}
	r, s, pixels := want.Values(0), c.Values(1), c.Params()[0]
	channels := len(r) / 3
	u := UnitRoundoff(c.Spec.Type)
	gamma := 2 * float64(len(s)/channels+16) * u
	bounds := make([]float64, len(r))
	for i := range channels {
		count, mean := r[i], r[channels+i]/r[i]
		var sizes, most, distance float64
		term := func(sum, values float64) {
			sizes, most, distance = sizes+math.Abs(sum), max(most, math.Abs(sum/values)), max(distance, math.Abs(sum/values-mean))
		}
		for n := i; n < len(s); n += channels {
			term(s[n], pixels)
		}
		if old := c.Values(0); c.Spec.Operands[0].Mode == dag.ReadWrite {
			term(old[channels+i], old[i])
			bounds[i] = gamma * count
		}
		bounds[channels+i] = gamma * sizes
		bounds[2*channels+i] = gamma * (r[2*channels+i] + 2*count*distance*most + count*u*most*most)
	}
	return [][]float64{bounds, nil, nil}
}
