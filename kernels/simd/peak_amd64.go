package simd

// peakArgs is known to gen/peak.go.
type peakArgs struct{ rounds int }

func peakVectors(l Level, size, rounds int) (flops float64) {
	args := peakArgs{rounds}
	switch {
	case l == AVX2 && size == 4:
		peakAVX2F32(&args)
	case l == AVX2:
		peakAVX2F64(&args)
	case size == 4:
		peakAVX512F32(&args)
	default:
		peakAVX512F64(&args)
	}
	return 2 * 24 * float64(l.bytes()/size) * float64(rounds)
}
