package paper

import (
	"fmt"
	"image/color"
	"testing"
	"time"

	"gonum.org/v1/plot/vg"
)

func TestQuantitiesHaveThreeDigitsAndAUnit(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{FormatDuration(1_420_000), "1.42 ms"},
		{FormatDuration(103_456 * time.Microsecond), "103 ms"},
		{FormatDuration(2_190 * time.Millisecond), "2.19 s"},
		{FormatDuration(40 * time.Microsecond), "40 us"},
		{FormatDuration(7), "7 ns"},
		{FormatDuration(0), "0 ns"},
		{FormatBytes(28_000), "28 kB"},
		{FormatBytes(9_800_000), "9.8 MB"},
		{FormatBytes(24_000_000_000), "24 GB"},
		{FormatBytes(999), "999 B"},
		{SIUnit("J", 0.151).Format(0.151), "151 mJ"},
		{SIUnit("W", 1234).Format(1234), "1.23 kW"},
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
		if got := fmt.Sprintf("%.2f", contrast(White, color.RGBA{grey, grey, grey, 255})); got != want {
			t.Errorf("white on %x: %s, want %s", grey, got, want)
		}
	}
	for i := range 1 << 12 {
		c := color.RGBA{uint8(i >> 8 * 17), uint8(i >> 4 % 16 * 17), uint8(i % 16 * 17), 255}
		if got := contrast(OnColour(c), c); got < 4.5 {
			t.Fatalf("the ink on %v has a contrast of %.2f", c, got)
		}
	}
}

// Upright lines 4 apart stand at 0, 4 and 8 in a box 12 wide, and at 20 in one that begins at 17.
// Slanting ones 4 apart meet the lower and the right edge of a box of 12 by 8 in 12/4 + 8/4 places.
func TestHatchesStayInTheirBox(t *testing.T) {
	for _, c := range []struct {
		Hatch                    Hatch
		left, bottom, wide, tall vg.Length
		want                     int
	}{{Upright, 0, 0, 12, 8, 3}, {Upright, 17, 3, 4, 8, 1}, {Ticks, 0, 0, 5, 8, 2}, {Rising, 0, 0, 12, 8, 5}, {Falling, 1, 0, 12, 8, 5}} {
		box := vg.Rectangle{Min: vg.Point{X: c.left, Y: c.bottom}, Max: vg.Point{X: c.left + c.wide, Y: c.bottom + c.tall}}
		var lines vg.Path
		c.Hatch.lines(&lines, box, c.Hatch.spacing(box.Path()))
		for _, l := range lines {
			if l.Pos.X < box.Min.X || l.Pos.X > box.Max.X || l.Pos.Y < box.Min.Y || l.Pos.Y > box.Max.Y {
				t.Errorf("hatch %d: %v is outside %v", c.Hatch, l.Pos, box)
			}
		}
		if len(lines) != 2*c.want {
			t.Errorf("hatch %d of %v: %d lines, want %d", c.Hatch, box, len(lines)/2, c.want)
		}
	}
}
