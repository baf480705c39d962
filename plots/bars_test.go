package plots

import (
	"bytes"
	"errors"
	"io"
	"math"
	"testing"

	"dahl/must"
)

// tinyBars is three groups of two series: 100/n images per second for n = 1, 2, 3 of the first one,
// within 10 %, and half of it of the second, which has nothing in the last group.
func tinyBars() *Bars {
	b := &Bars{Title: "images per second over devices", Summary: "a made-up machine", XLabel: "devices", Y: Quantity{Name: "images/s", More: true},
		Groups: []string{"cpu", "gpu", "cpu,gpu"}, Interval: "10 % to either side", Series: []BarSeries{{Name: "heft"}, {Name: "dmda"}}}
	for n := 1.0; n <= 3; n++ {
		y := 100 / n
		b.Series[0].Bars = append(b.Series[0].Bars, Bar{y, 0.9 * y, 1.1 * y})
		b.Series[1].Bars = append(b.Series[1].Bars, Bar{y / 2, y / 2, y / 2})
	}
	b.Series[1].Bars[2] = Bar{Y: math.NaN()}
	return b
}

func TestBarsGolden(t *testing.T) {
	var file bytes.Buffer
	must.Do(t, DrawBars(&file, "png", tinyBars()))
	wantGolden(t, "bars", file.Bytes())
}

func TestBarsRefuse(t *testing.T) {
	for name, spoil := range map[string]func(*Bars){
		"a bar outside of its interval": func(b *Bars) { b.Series[0].Bars[1].Low = 99 },
		"a negative bar":                func(b *Bars) { b.Series[0].Bars[1] = Bar{-1, -1, -1} },
		"an infinite bar":               func(b *Bars) { b.Series[0].Bars[1].High = math.Inf(1) },
		"a bar without a group":         func(b *Bars) { b.Groups = b.Groups[:2] },
		"more series than colours":      func(b *Bars) { b.Series = make([]BarSeries, len(palette)+1) },
	} {
		b := tinyBars()
		if spoil(b); DrawBars(io.Discard, "svg", b) == nil {
			t.Errorf("%s was drawn", name)
		}
	}
	none := tinyBars()
	none.Series, none.Groups = []BarSeries{{Bars: []Bar{{Y: math.NaN()}}}}, []string{"cpu"}
	for _, b := range []*Bars{{}, none} {
		if err := DrawBars(io.Discard, "svg", b); !errors.Is(err, ErrNoData) {
			t.Errorf("without bars: %v, want ErrNoData", err)
		}
	}
}
