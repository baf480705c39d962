package nn

import "math"

// InitUniform fills dst with numbers uniform between -bound and bound. They depend on the seed
// and the parameter's name only, not on other parameters.
func InitUniform(dst []float64, seed uint64, name string, bound float64) {
	InitBetween(dst, seed, name, -bound, bound)
}

// InitBetween fills dst with numbers uniform between lo and hi.
func InitBetween(dst []float64, seed uint64, name string, lo, hi float64) {
	s := NewStream(seed, "init."+name)
	for i := range dst {
		dst[i] = s.Uniform(uint64(i), lo, hi)
	}
}

// FanIn is the number of inputs of one output of a weight of shape (out, in) or (out, in, height,
// width): the product of all extents except the first.
func FanIn(shape []int) int {
	if len(shape) < 2 {
		panic("nn: FanIn of a shape without inputs")
	}
	n := 1
	for _, e := range shape[1:] {
		n *= e
	}
	return n
}

// DefaultBound is the bound b of PyTorch's default U(-b, b) for convolution and dense layers, for
// a weight of that shape and for its bias. kaiming_uniform with a = √5 (He et al., ICCV 2015) has
// gain √(2/(1+a²)) = 1/√3 and bound √3·gain/√fan_in, which is 1/√fan_in. The bias is drawn from
// U(±1/√fan_in).
func DefaultBound(weight []int) float64 {
	return 1 / math.Sqrt(float64(FanIn(weight)))
}
