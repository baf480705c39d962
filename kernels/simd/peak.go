package simd

// PeakFMA does only fused multiply-adds in registers, rounds times a few vectors. It returns the
// number of floating-point operations, two each. A core's speed at this is its peak at the level.
// Level Go multiplies and adds one number at a time.
func PeakFMA[T Float](l Level, rounds int) (flops float64) {
	if rounds < 1 {
		return 0
	}
	if l == Go {
		return peakGo[T](rounds)
	}
	return peakVectors(l, size[T](nil), rounds)
}

// peakGo starts from zeros of which the compiler does not know.
func peakGo[T Float](rounds int) float64 {
	x := T(rounds >> 62)
	a, b, c, d, e, f, g, h := x, x, x, x, x, x, x, x
	for range rounds {
		a += a * x
		b += b * x
		c += c * x
		d += d * x
		e += e * x
		f += f * x
		g += g * x
		h += h * x
	}
	if a+b+c+d+e+f+g+h != 0 {
		panic("simd: sum of zeros")
	}
	return 16 * float64(rounds)
}

// peakArgs is known to gen/peak.go.
type peakArgs struct{ rounds int }

func peakVectors(l Level, size, rounds int) (flops float64) {
	peak.call(l, size, &peakArgs{rounds})
	return 2 * 24 * float64(l.bytes()/size) * float64(rounds)
}
