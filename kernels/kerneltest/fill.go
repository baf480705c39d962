package kerneltest

import (
	"math"
	"math/rand/v2"
	"strings"

	"dahl/dag"
	"dahl/kernels"
)

// filler draws values that the operation allows for operand i.
func (c *Case) filler(i int, rng *rand.Rand) func() float64 {
	o, name := &c.Kernel.Operands[i], c.Kernel.Base+" "+c.Kernel.Operands[i].Name
	switch {
	case c.Kernel.With&exactSums != 0 && o.Kind == kernels.Real:
		return func() float64 { return float64(rng.IntN(9) - 4) }
	case c.Buffers[i].Type == dag.Uint8 || c.Buffers[i].Type == dag.Int32:
		limit, mayPass := c.indexLimit(i), passesNothing[name]
		return func() float64 {
			v := float64(rng.IntN(limit))
			if mayPass && rng.IntN(4) == 0 {
				v = noMaximum
			}
			return v
		}
	case o.Kind == kernels.Scalar:
		return func() float64 { return []float64{0.1, 3}[rng.IntN(2)] }
	case isFunction(strings.TrimSuffix(c.Kernel.Op, ".dx")) && o.Name == "x":
		return func() float64 { return 16*rng.Float64() - 8 }
	case nonNegative[name]:
		return func() float64 { return rng.Float64() + 0.5 }
	case compared[name] != nil:
		few := compared[name]
		return func() float64 {
			if rng.IntN(2) == 0 {
				return few[rng.IntN(len(few))]
			}
			return 2*rng.Float64() - 1
		}
	}
	return func() float64 { return 2*rng.Float64() - 1 }
}

// noMaximum is the position in a pooling window that passes no gradient.
const noMaximum = 255

// passesNothing are the operands that hold positions in pooling windows. [noMaximum] stands for
// none there.
var passesNothing = map[string]bool{
	"maxpool.nhwc.dx index": true, "conv2d.nhwc.dw index": true,
}

// nonNegative are the operands that hold sums of squares.
var nonNegative = map[string]bool{
	"adam v":            true,
	"batchnorm.stats q": true, "batchnorm.running variance": true, "batchnorm.fold variance": true,
}

// compared are the operands in which a variant seeks the greatest element or the sign. Half of
// their elements are one of a few values, so that many are equal, or zero of either sign.
var compared = map[string][]float64{
	"maxpool.nhwc x": ties,
	"softmax_xent z": ties, "softmax_xent.eval z": ties, "mse z": ties, "mse.eval z": ties,
	"relu x": {0, math.Copysign(0, -1)},
}

// ties has no negative zero, since it is not defined which of two zeros is the greatest.
var ties = []float64{-1, -0.5, 0, 0.5, 1}

// exactSums are the attributes of operations that compare sums, take the result of such a comparison, or square sums. Their
// inputs are small integers. So the sums are exact in any order, all variants find the same
// maxima, and many of these are equal or zero.
const exactSums = kernels.Moments | kernels.Pool

// indexLimit is one more than the largest value of an integer operand.
func (c *Case) indexLimit(i int) int {
	shape := func(name string) []int { return c.Spec.Operands[c.Operand(name)].Shape }
	switch c.Kernel.Base + " " + c.Kernel.Operands[i].Name {
	case "load index", "load.nhwc index":
		return shape("images")[0]
	case "load.labels index":
		return shape("labels")[0]
	case "maxpool.nhwc.dx index":
		return int(c.Spec.Param("height") * c.Spec.Param("width"))
	case "conv2d.nhwc.dw index":
		size := int(c.Spec.Param("size"))
		return size * size
	case "softmax_xent y", "softmax_xent.eval y", "mse y", "mse.eval y":
		return shape("z")[1]
	case "relu.dx mask", "count flags":
		return 2
	}
	return 251
}
