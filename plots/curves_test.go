package plots

import (
	"bytes"
	"errors"
	"io"
	"math"
	"testing"

	"dahl/must"
)

var stepTime, rate = Quantity{Name: "step time", Unit: "s"}, Quantity{Name: "images per second", More: true}

func tinyCurves() *Curves {
	predicted := Series{Name: "predicted", Dashed: true}
	measured := Series{Name: "measured"}
	// A step of 2 ms of work in tiles of x samples: too few tiles for two workers on
	// the right, one dispatch more for each on the left.
	for _, x := range []float64{1, 2, 4, 8, 16, 32} {
		y := 1e-3*math.Max(1, x/16) + 4e-4/x
		predicted.Points = append(predicted.Points, CurvePoint{x, y, y, y})
		measured.Points = append(measured.Points, CurvePoint{x, 1.1 * y, 1.08 * y, 1.2 * y})
	}
	return &Curves{Title: "step time over tile size", Summary: "a made-up network", XLabel: "samples per tile", Y: stepTime, Series: []Series{predicted, measured},
		Interval: "from the least to the greatest repetition"}
}

// Of 1.4, 1.2, 1.1, 1.05, 1.025 and 2.0125 ms the fifth is the least, at 16 samples;
// as rates the last would be the best.
func TestSeriesBest(t *testing.T) {
	s := tinyCurves().Series[0]
	if got := s.Points[s.Best(stepTime)].X; got != 16 {
		t.Errorf("best time at %v samples, want 16", got)
	}
	if got := s.Points[s.Best(rate)].X; got != 32 {
		t.Errorf("best rate at %v samples, want 32", got)
	}
}

func TestCurvesGolden(t *testing.T) {
	var file bytes.Buffer
	must.Do(t, DrawCurves(&file, "png", tinyCurves()))
	wantGolden(t, "curves", file.Bytes())
}

// A speed-up of x^0.8 stands below the line of what is proportional to x.
func TestSpeedupGolden(t *testing.T) {
	c := &Curves{Title: "speed-up over workers", Summary: "a made-up network", XLabel: "workers", Y: Quantity{Name: "times as fast", More: true}, Ideal: true,
		Series: []Series{{Name: "measured"}}}
	for _, x := range []float64{1, 2, 4, 8} {
		y := math.Pow(x, 0.8)
		c.Series[0].Points = append(c.Series[0].Points, CurvePoint{x, y, y, y})
	}
	var file bytes.Buffer
	must.Do(t, DrawCurves(&file, "png", c))
	wantGolden(t, "speedup", file.Bytes())
}

func TestCurvesRefuse(t *testing.T) {
	for name, points := range map[string][]CurvePoint{
		"descending": {{2, 1, 1, 1}, {1, 1, 1, 1}},
		"at zero":    {{0, 1, 1, 1}},
		"no number":  {{1, math.NaN(), 1, 1}},
		"outside":    {{1, 3, 1, 2}},
	} {
		c := &Curves{Y: stepTime, Series: []Series{{Name: name, Points: points}}}
		if err := DrawCurves(io.Discard, "svg", c); err == nil {
			t.Errorf("%s points were drawn", name)
		}
	}
	for _, c := range []*Curves{{Y: rate}, {Y: rate, Series: []Series{{Name: "empty"}}}} {
		if err := DrawCurves(io.Discard, "svg", c); !errors.Is(err, ErrNoData) {
			t.Errorf("an empty figure: %v, want ErrNoData", err)
		}
	}
}
