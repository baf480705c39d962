package simd

// peakArgs is known to gen/peak.go.
type peakArgs struct{ rounds int }

var peaks = forms[peakArgs]{AVX2: {peakAVX2F32, peakAVX2F64}, AVX512: {peakAVX512F32, peakAVX512F64}}

func peakVectors(l Level, size, rounds int) (flops float64) {
	peaks.call(l, size, &peakArgs{rounds})
	return 2 * 24 * float64(l.bytes()/size) * float64(rounds)
}
