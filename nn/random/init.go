package random

import "math"

// InitBetween fills dst, which holds the elements of a parameter from one on, with numbers uniform between lo
// and hi. They depend on the seed and the parameter's name only, not on other parameters.
func InitBetween(dst []float64, from int, seed uint64, name string, lo, hi float64) {
	s := NewStream(seed, "init."+name)
	for i := range dst {
		dst[i] = s.Uniform(uint64(from+i), lo, hi)
	}
}

// InitNormal is InitBetween with numbers of a normal distribution of mean 0 (Box and Muller, "A note on the generation of random normal
// deviates", 1958): number i is made of the numbers 2i and 2i + 1 of the stream.
func InitNormal(dst []float64, from int, seed uint64, name string, deviation float64) {
	s := NewStream(seed, "init."+name)
	for i := range dst {
		at := 2 * uint64(from+i)
		radius := math.Sqrt(-2 * math.Log(1-s.Float64(at))) // of a number above 0
		dst[i] = deviation * radius * math.Cos(2*math.Pi*s.Float64(at+1))
	}
}
