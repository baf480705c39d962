package simd

import "testing"

// BenchmarkPeak reports what other benchmarks are to be compared with.
func BenchmarkPeak(b *testing.B) {
	for _, l := range supported() {
		b.Run(l.String()+"/float32", func(b *testing.B) { benchPeak[float32](b, l) })
		b.Run(l.String()+"/float64", func(b *testing.B) { benchPeak[float64](b, l) })
	}
}

func benchPeak[T Float](b *testing.B, l Level) {
	flops := 0.0
	for b.Loop() {
		flops += PeakFMA[T](l, 1000)
	}
	b.ReportMetric(flops/float64(b.Elapsed().Nanoseconds()), "GFLOP/s")
}

// TestPeakFMA: 24 vectors of 16 << level bytes, two operations per element; 8 numbers
// in plain Go.
func TestPeakFMA(t *testing.T) {
	for _, l := range supported() {
		bytes := 16 << l
		want32, want64 := float64(2*24*bytes/4), float64(2*24*bytes/8)
		if l == Go {
			want32, want64 = 16, 16
		}
		if a, b := PeakFMA[float32](l, 3), PeakFMA[float64](l, 3); a != 3*want32 || b != 3*want64 {
			t.Errorf("%v: %g and %g operations, want %g and %g", l, a, b, 3*want32, 3*want64)
		}
	}
	if n := PeakFMA[float32](Go, 0); n != 0 {
		t.Errorf("no rounds are %g operations", n)
	}
}
