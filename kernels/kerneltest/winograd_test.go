package kerneltest

import (
	"math"
	"testing"
)

// TestAmplification: for the points 0, ±1, ±2 and ∞ the rows of G add up, without signs, to 1/4, 1/2 twice,
// 7/24 twice and 1, and those of B' to 10, 10 twice, 6 twice and 10. Their products are 5/2, 5, 5, 7/4,
// 7/4 and 10. So the results get
//
//	5/2 + 10 + 7/2 = 16,  10 + 2·7/2 = 17,  10 + 4·7/2 = 24,  10 + 8·7/2 + 10 = 48
//
// Columns of A' add up to 1, 4 twice, 15 twice and 1. With those of B' they make 10, 40, 40, 90, 90 and
// 10, and G has the columns 1/4, 1/6, 1/6, 1/24, 1/24, 0; 0, 1/6, 1/6, 1/12, 1/12, 0 and 0, 1/6, 1/6, 1/6,
// 1/6, 1. So the gradients of filters get
//
//	10/4 + 80/6 + 180/24 = 70/3,  80/6 + 180/12 = 85/3,  80/6 + 180/6 + 10 = 160/3
func TestAmplification(t *testing.T) {
	usual := [5]float64{0, 1, -1, 2, -2}
	for _, c := range []struct {
		filters bool
		want    float64
	}{{false, 48}, {true, 160. / 3}} {
		if got := Amplification(usual, c.filters); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("amplification with filters' gradients %v is %g, want %g", c.filters, got, c.want)
		}
		if got := Amplification(WinogradPoints(), c.filters); got >= 0.6*c.want {
			t.Errorf("amplification of our points with filters' gradients %v is %g, want less than 0.6 of %g", c.filters, got, c.want)
		}
	}
}
