package kernels

import (
	"math/rand/v2"
	"testing"

	"dahl/kernels/calls"
	"dahl/kernels/cpu"
)

// TestZones checks that the zones of a lattice are its pixels in order, and that a tap
// lies in the source exactly if the pixel's zone has it.
func TestZones(t *testing.T) {
	rng := rand.New(rand.NewPCG(29, 31))
	for range 2000 {
		l := calls.Lattice{
			Pixels: rng.IntN(20), Taps: 1 + rng.IntN(7),
			From: rng.IntN(17) - 8, Stride: 1 + rng.IntN(4), Dilation: 1 + rng.IntN(3), Extent: 1 + rng.IntN(20),
		}
		for u := 0; u < l.Pixels; {
			end, lo, hi := l.Zone(u)
			if end <= u || end > l.Pixels {
				t.Fatalf("%+v: the zone of pixel %d ends at %d", l, u, end)
			}
			for ; u < end; u++ {
				for tap := range l.Taps {
					at := l.From + u*l.Stride + tap*l.Dilation
					if inside := at >= 0 && at < l.Extent; inside != (tap >= lo && tap < hi) {
						t.Fatalf("%+v: tap %d of pixel %d is at %d, its zone has taps %d to %d", l, tap, u, at, lo, hi)
					}
				}
			}
		}
	}
}

// TestSharedPixels computes by hand how many pixels of a row share vectors.
func TestSharedPixels(t *testing.T) {
	for _, c := range []struct{ lanes, pixels, filters, taps, stride, want int }{
		// One vector of 32 or two of 16 lanes are full: nothing to gain.
		{16, 28, 32, 3, 1, 1},
		// 6 filters, 5 taps, alone 28·5 = 140. Two pixels in a vector: 14·6 = 84. Five in two
		// vectors: 5·2·9 + 3·5 = 105.
		{16, 28, 6, 5, 1, 2},
		// 4 filters, 3 taps, 26 pixels, alone 78. Four pixels in a vector: 6·6 + 2·3 = 42; three:
		// 8·5 + 2·3 = 46; two: 13·4 = 52.
		{16, 26, 4, 3, 1, 4},
		// Windows of one tap gain nothing: two pixels take two steps.
		{16, 28, 4, 1, 1, 1},
		// No vectors.
		{0, 28, 4, 3, 1, 1},
	} {
		if g := cpu.SharedPixels(c.lanes, c.pixels, c.filters, c.taps, c.stride); g != c.want {
			t.Errorf("%+v: %d pixels share vectors", c, g)
		}
	}
}
