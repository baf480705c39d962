package fit

import (
	"math"
	"testing"
	"time"
)

// TestFitCopies: times on a line come back as that line, whatever its terms.
func TestFitCopies(t *testing.T) {
	for _, c := range []struct {
		latency     time.Duration
		nsPerByte   float64
		bytesPerSec float64
	}{{10_007, 0.25, 4e9}, {0, 2, 5e8}, {3001, 0, math.Inf(1)}} {
		var bytes []int64
		var times []time.Duration
		for n := int64(4); n <= 1<<26; n *= 4 {
			bytes = append(bytes, n)
			times = append(times, c.latency+time.Duration(c.nsPerByte*float64(n)))
		}
		f, ok := OfCopies(bytes, times)
		if off := f.Latency - c.latency; !ok || off < 0 || off > 1 {
			t.Errorf("%+v: latency %v, %v", c, f.Latency, ok)
		}
		if math.Abs(f.BytesPerSec/c.bytesPerSec-1) > 1e-6 && !(math.IsInf(f.BytesPerSec, 1) && math.IsInf(c.bytesPerSec, 1)) {
			t.Errorf("%+v: %g B/s", c, f.BytesPerSec)
		}
		if f.RelError > 1e-6 || f.MaxError > 1e-6 {
			t.Errorf("%+v: errors %g and %g of times on a line", c, f.RelError, f.MaxError)
		}
	}
}

// TestFitCopiesWeighsRelatively: one small copy that takes twice its time moves the
// latency, not the bandwidth; its error is in the bounds.
func TestFitCopiesWeighsRelatively(t *testing.T) {
	bytes := []int64{4, 16, 1 << 20, 1 << 22, 1 << 24, 1 << 26}
	times := []time.Duration{2000, 1000, 1 << 20, 1 << 22, 1 << 24, 1 << 26} // 1 ns a byte
	f, ok := OfCopies(bytes, times)
	if !ok || math.Abs(f.BytesPerSec/1e9-1) > 0.002 {
		t.Errorf("%+v", f)
	}
	// Of the small ones alone, the latency a least (a/2000 - 1)² + (a/1000 - 1)² has:
	// a = (1/2000 + 1/1000)/(1/2000² + 1/1000²) = 1200, so residuals of -0.4 and 0.2.
	if math.Abs(float64(f.Latency)-1200) > 20 || math.Abs(f.MaxError-0.4) > 0.02 {
		t.Errorf("%+v, want a latency of about 1200 ns and an error of 0.4", f)
	}
}

func TestFitCopiesRefuses(t *testing.T) {
	if _, ok := OfCopies([]int64{4}, []time.Duration{5}); ok {
		t.Error("a line through one point")
	}
	if _, ok := OfCopies([]int64{4, 16}, []time.Duration{5, 0}); ok {
		t.Error("a copy in no time")
	}
}
