package plots

import (
	"fmt"
	"image/color"
	"testing"
	"time"
)

func TestQuantitiesHaveThreeDigitsAndAUnit(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{formatDuration(1_420_000), "1.42 ms"},
		{formatDuration(103_456 * time.Microsecond), "103 ms"},
		{formatDuration(2_190 * time.Millisecond), "2.19 s"},
		{formatDuration(40 * time.Microsecond), "40 us"},
		{formatDuration(7), "7 ns"},
		{formatDuration(0), "0 ns"},
		{formatBytes(28_000), "28 kB"},
		{formatBytes(9_800_000), "9.8 MB"},
		{formatBytes(24_000_000_000), "24 GB"},
		{formatBytes(999), "999 B"},
		{siUnit("J", 0.151).format(0.151), "151 mJ"},
		{siUnit("W", 1234).format(1234), "1.23 kW"},
	} {
		if c.got != c.want {
			t.Errorf("%q, want %q", c.got, c.want)
		}
	}
}

// Steps are 1, 2 or 5 times a power of ten, so labels are round numbers.
func TestRoundStep(t *testing.T) {
	for _, c := range []struct{ v, want float64 }{{1, 1}, {1.01, 2}, {2.5, 5}, {5.1, 10}, {0.03, 0.05}, {700, 1000}} {
		if got := roundStep(c.v); got < c.want*(1-1e-12) || got > c.want*(1+1e-12) {
			t.Errorf("step for %g is %g, want %g", c.v, got, c.want)
		}
	}
}

// TestContrast: #767676 is known as the lightest grey of a contrast of 4.5 on white, with 4.54, and #777777 has 4.48. On any colour
// the ink has 4.5.
func TestContrast(t *testing.T) {
	contrast := func(a, b color.RGBA) float64 {
		x, y := luminance(a), luminance(b)
		return (max(x, y) + 0.05) / (min(x, y) + 0.05)
	}
	for grey, want := range map[uint8]string{0x76: "4.54", 0x77: "4.48", 0: "21.00"} {
		if got := fmt.Sprintf("%.2f", contrast(white, color.RGBA{grey, grey, grey, 255})); got != want {
			t.Errorf("white on %x: %s, want %s", grey, got, want)
		}
	}
	for i := range 1 << 12 {
		c := color.RGBA{uint8(i >> 8 * 17), uint8(i >> 4 % 16 * 17), uint8(i % 16 * 17), 255}
		if got := contrast(onColour(c), c); got < 4.5 {
			t.Fatalf("the ink on %v has a contrast of %.2f", c, got)
		}
	}
}
