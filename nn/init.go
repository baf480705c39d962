package nn

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
