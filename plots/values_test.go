package plots

import (
	"bytes"
	"errors"
	"io"
	"math"
	"testing"

	"dahl/must"
	"dahl/plots/paper"
)

var stepTime, rate = Quantity{Name: "step time", Unit: "s"}, Quantity{Name: "images per second", More: true}

// exactly is a point without an interval.
func exactly(label string, x, y float64) Point { return Point{label, x, y, y, y} }

// tinyBars is three groups of two series: 100/n images per second for n = 1, 2, 3 of the first one,
// within 10 %, and half of it of the second, which has nothing in the last group.
func tinyBars() *Values {
	v := &Values{Title: "images per second over devices", Summary: "a made-up machine", XLabel: "devices", Quantity: Quantity{Name: "images/s", More: true},
		Labels: []string{"cpu", "gpu", "cpu,gpu"}, Interval: "10 % to either side", Series: []Series{{Name: "heft"}, {Name: "dmda"}}}
	for i, label := range v.Labels {
		y := 100 / float64(i+1)
		v.Series[0].Points = append(v.Series[0].Points, Point{label, 0, y, 0.9 * y, 1.1 * y})
		v.Series[1].Points = append(v.Series[1].Points, exactly(label, 0, y/2))
	}
	v.Series[1].Points = v.Series[1].Points[:2]
	return v
}

// tinyHeat is the images per second of batches of 1, 16 and 64 on 1 to 5 cores: 1000·batch·cores/(batch + cores),
// of which the greatest is at 64 and 5. One cell is empty.
func tinyHeat() *Values {
	v := &Values{Title: "images per second over cores and batch", Summary: "a made-up machine", XLabel: "workers", YLabel: "batch",
		Quantity: Quantity{Name: "images/s", More: true}, Labels: []string{"1", "2", "3", "5"}, Series: []Series{{Name: "1"}, {Name: "16"}, {Name: "64"}}}
	for i, batch := range []float64{1, 16, 64} {
		for j, cores := range []float64{1, 2, 3, 5} {
			if i != 1 || j != 2 {
				v.Series[i].Points = append(v.Series[i].Points, exactly(v.Labels[j], 0, 1000*batch*cores/(batch+cores)))
			}
		}
	}
	return v
}

// tinyCurves is a step of 2 ms of work in tiles of x samples: too few tiles for two workers on the right, one dispatch
// more for each on the left.
func tinyCurves() *Values {
	predicted, measured := Series{Name: "predicted", Dashed: true}, Series{Name: "measured"}
	for _, x := range []float64{1, 2, 4, 8, 16, 32} {
		y := 1e-3*math.Max(1, x/16) + 4e-4/x
		predicted.Points = append(predicted.Points, exactly("", x, y))
		measured.Points = append(measured.Points, Point{"", x, 1.1 * y, 1.08 * y, 1.2 * y})
	}
	return &Values{Title: "step time over tile size", Summary: "a made-up network", XLabel: "samples per tile", Quantity: stepTime, Series: []Series{predicted, measured},
		Interval: "from the least to the greatest repetition"}
}

// tinySpeedup is a speed-up of x^0.8, which stands below the line of what is proportional to x.
func tinySpeedup() *Values {
	v := &Values{Title: "speed-up over workers", Summary: "a made-up network", XLabel: "workers", Quantity: Quantity{Name: "times as fast", More: true}, Ideal: true,
		Series: []Series{{Name: "measured"}}}
	for _, x := range []float64{1, 2, 4, 8} {
		v.Series[0].Points = append(v.Series[0].Points, exactly("", x, math.Pow(x, 0.8)))
	}
	return v
}

type drawValues func(io.Writer, paper.Page, *Values) error

func TestValuesGolden(t *testing.T) {
	for _, c := range []struct {
		name string
		draw drawValues
		v    *Values
	}{{"bars", DrawBars, tinyBars()}, {"heat", DrawHeat, tinyHeat()}, {"curves", DrawCurves, tinyCurves()}, {"speedup", DrawCurves, tinySpeedup()}} {
		var file bytes.Buffer
		must.Do(t, c.draw(&file, paper.Page{Format: "png"}, c.v))
		wantGolden(t, c.name, file.Bytes())
	}
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

// TestValuesRefuse: a point that cannot be drawn is refused by every figure that would draw it, and what is empty is said to be so.
// One value has no scale, and is drawn all the same.
func TestValuesRefuse(t *testing.T) {
	labelled := []drawValues{DrawBars, DrawHeat}
	for name, c := range map[string]struct {
		by    []drawValues
		point Point
	}{
		"outside of its interval": {append(labelled, DrawCurves), Point{"1", 3, 3, 1, 2}},
		"no number":               {append(labelled, DrawCurves), exactly("1", 3, math.NaN())},
		"infinite":                {append(labelled, DrawCurves), Point{"1", 3, 1, 1, math.Inf(1)}},
		"negative":                {[]drawValues{DrawBars, DrawCurves}, exactly("1", 3, -1)},
		"without a label":         {labelled, exactly("2", 3, 1)},
		"at zero":                 {[]drawValues{DrawCurves}, exactly("1", 0, 1)},
		"descending":              {[]drawValues{DrawCurves}, exactly("1", 1, 1)},
	} {
		for i, draw := range c.by {
			v := &Values{Labels: []string{"1"}, Quantity: stepTime, Series: []Series{{Points: []Point{exactly("1", 1.5, 1), c.point}}}}
			if err := draw(io.Discard, paper.Page{Format: "svg"}, v); err == nil || errors.Is(err, ErrNoData) {
				t.Errorf("%s: figure %d: %v", name, i, err)
			}
		}
	}
	many := tinyBars()
	many.Series = make([]Series, len(palette)+1)
	if DrawBars(io.Discard, paper.Page{Format: "svg"}, many) == nil {
		t.Error("more series than colours were drawn")
	}
	for i, draw := range append(labelled, DrawCurves) {
		for _, v := range []*Values{{}, {Series: []Series{{Name: "empty"}}}} {
			if err := draw(io.Discard, paper.Page{Format: "svg"}, v); !errors.Is(err, ErrNoData) {
				t.Errorf("figure %d without points: %v, want ErrNoData", i, err)
			}
		}
		one := &Values{Labels: []string{"1"}, Series: []Series{{Points: []Point{exactly("1", 1, 7)}}}}
		if err := draw(io.Discard, paper.Page{Format: "svg"}, one); err != nil {
			t.Errorf("figure %d of one value: %v", i, err)
		}
	}
}
