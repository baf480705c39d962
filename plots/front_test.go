package plots

import (
	"bytes"
	"errors"
	"fmt"
	"image/color"
	"io"
	"math"
	"regexp"
	"strings"
	"testing"

	"dahl/must"
	"dahl/plots/paper"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// tinyFront is plans of n units that take 12/n + 1 ms and n + 3 mJ, of which none beats another, each with one that takes
// a half more of both, and one far away.
func tinyFront() *Front {
	of := &Front{Title: "twelve units", Summary: "a made-up machine", Of: OfJoules, Bound: 3.6e-3, BoundOf: "these 8 tilings on 224 sets of devices and of the plan's own tiles on its devices", Deadline: 9e-3}
	names := []string{"cpu:1", "cpu:2", "cpu:3", "cpu:4", "cpu:6", "all devices"}
	for i, n := range []float64{1, 2, 3, 4, 6, 12} {
		p := FrontPoint{Seconds: (12/n + 1) * 1e-3, Joules: (n + 3) * 1e-3, Label: names[i], Front: true, Chosen: n == 2}
		of.Points = append(of.Points, p, FrontPoint{Seconds: 1.5 * p.Seconds, Joules: 1.5 * p.Joules, Label: p.Label})
	}
	of.Points = append(of.Points, FrontPoint{Seconds: 1, Joules: 1, Label: "far away"})
	return of
}

// The axes reach what is drawn: a bound at most ten times below the front, and plans at most three times above it.
func TestFrontAxes(t *testing.T) {
	of := tinyFront()
	f := &paper.Frame{}
	if f.Lower, f.Left = of.axes(); f.Left.Min > of.Bound || f.Lower.Max > 0.1 || !holds(f, &of.Points[1]) {
		t.Errorf("the axes are %v to %v s and %v to %v J", f.Lower.Min, f.Lower.Max, f.Left.Min, f.Left.Max)
	}
	if got := of.outside(f); got != "1 plan further out" {
		t.Errorf("%q, want 1 plan further out", got)
	}
	of.Bound = 1e-9
	if _, y := of.axes(); y.Min > 4e-3 || y.Min < 0 || y.Log && y.Min < 1e-3 {
		t.Errorf("with a bound of 1 nJ the axis begins at %v J", y.Min)
	}
}

// Where all points are to be seen, the axes reach the far one, too.
func TestFrontWhole(t *testing.T) {
	of := tinyFront()
	of.Whole = true
	f := &paper.Frame{}
	if f.Lower, f.Left = of.axes(); f.Lower.Max < 1 || f.Left.Max < 1 || of.outside(f) != "" {
		t.Errorf("the axes end at %v s and %v J", f.Lower.Max, f.Left.Max)
	}
}

func TestFrontRefuses(t *testing.T) {
	if err := DrawFront(io.Discard, paper.Page{Format: "svg"}, &Front{}); !errors.Is(err, ErrNoData) {
		t.Errorf("without points: %v", err)
	}
	for _, p := range []FrontPoint{{Seconds: 0, Joules: 1}, {Seconds: 1, Joules: math.NaN()}, {Seconds: math.Inf(1), Joules: 1}} {
		if err := DrawFront(io.Discard, paper.Page{Format: "svg"}, &Front{Points: []FrontPoint{p}}); err == nil {
			t.Errorf("%+v was drawn", p)
		}
	}
}

// A name goes below its point to the left, unless a dot or a line is there: then to the right, above,
// and at last nowhere.
func TestLabelsLeaveDotsAndLines(t *testing.T) {
	c := draw.NewCanvas(vgsvg.New(200, 200), 200, 200)
	l := &labels{Frame: &paper.Frame{Canvas: c, Face: paper.NewTypeface(), Box: c.Rectangle}}
	at := func(x, y vg.Length) vg.Point { return vg.Point{X: x, Y: y} }
	for i, keep := range []func(){
		func() {},
		func() { l.leaveDot(at(85, 95)) }, // below to the left
		func() { l.leave([]vg.Point{at(110, 0), at(110, 95)}) },    // below to the right
		func() { l.leave([]vg.Point{at(105, 105), at(130, 105)}) }, // above to the right
		func() { l.leave([]vg.Point{at(70, 105), at(90, 105)}) },   // above to the left
	} {
		keep()
		before := len(l.boxes)
		l.put(fmt.Sprint("n", i), at(100, 100))
		if i == 4 {
			if len(l.boxes) != before {
				t.Errorf("there is a name at %v, where nothing is free", l.boxes[before])
			}
			continue
		}
		if len(l.boxes) != before+1 {
			t.Fatalf("with %d places left there is no name", 4-i)
		}
		box := l.boxes[before]
		left, below := box.Max.X < 100, box.Max.Y < 100
		if want := [][2]bool{{true, true}, {false, true}, {false, false}, {true, false}}[i]; want != [2]bool{left, below} {
			t.Errorf("with %d places taken the name is at %v", i, box)
		}
		l.boxes = l.boxes[:before] // only dots and lines stay
	}
}

// The legend shows what is drawn. In the figure of twelve plans within the axes, six of them on the front and one of these
// chosen, every mark is there once more: 13 faint dots and 7 of the front. The ring and the dot of what was chosen are there twice.
func TestFrontLegendShowsTheMarks(t *testing.T) {
	var file bytes.Buffer
	must.Do(t, DrawFront(&file, paper.Page{Format: "svg"}, tinyFront()))
	hex := func(c color.RGBA) string { return fmt.Sprintf("#%02X%02X%02X", c.R, c.G, c.B) }
	counts := map[string]int{}
	for _, path := range regexp.MustCompile(`<path d="([^"]*)"\s+style="([^"]*)"`).FindAllStringSubmatch(file.String(), -1) {
		for _, c := range []color.RGBA{paper.Lighten(paper.FaintInk, 0.6), palette[0], palette[5]} {
			if strings.Contains(path[1], "A") && strings.Contains(path[2], hex(c)) {
				counts[hex(c)]++
			}
		}
	}
	for c, want := range map[color.RGBA]int{paper.Lighten(paper.FaintInk, 0.6): 12 + 1, palette[0]: 6 + 1, palette[5]: 2 + 2} {
		if got := counts[hex(c)]; got != want {
			t.Errorf("%d marks of %s, want %d", got, hex(c), want)
		}
	}
}
