package random

// InitBetween fills dst, which holds the elements of a parameter from one on, with numbers uniform between lo
// and hi. They depend on the seed and the parameter's name only, not on other parameters.
func InitBetween(dst []float64, from int, seed uint64, name string, lo, hi float64) {
	s := NewStream(seed, "init."+name)
	for i := range dst {
		dst[i] = s.Uniform(uint64(from+i), lo, hi)
	}
}
