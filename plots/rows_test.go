package plots

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"

	"dahl/platform"
	"dahl/plots/paper"
)

// nodeRun is a run on cores and GPUs, each of which does something.
func nodeRun(t *testing.T, cores, gpus int) *Run {
	t.Helper()
	r := largeRun(t, 20*(cores+gpus), cores+gpus, 3, 3)
	p := r.Problem.Platform
	p.Devices[0].Count = cores
	for g := range gpus {
		name := fmt.Sprintf("gpu%d", g)
		p.Devices = append(p.Devices, platform.Device{Name: name, Kind: "cuda", Count: 1, IdleWatts: 20, Busy: platform.BusyPower{UnitWatts: 120}})
		p.Workers[cores+g] = platform.Worker{Name: name, Device: platform.DeviceID(1 + g)}
	}
	return r
}

// Beside 71 cores each of five GPUs has a row several times as tall as that of a core. Every device has
// its name, and no name stands on another.
func TestDevicesAreTallAndNamed(t *testing.T) {
	for _, n := range []struct{ cores, gpus int }{{71, 5}, {3, 2}, {13, 41}} {
		ch := newChart(nodeRun(t, n.cores, n.gpus), newColouring(nodeRun(t, n.cores, n.gpus)))
		ch.crop()
		tall, below := ch.setHeights(520, minRowHeight, maxRowHeight), vg.Length(0)
		heights := map[string]vg.Length{}
		for _, r := range ch.rows {
			if r.top != below {
				t.Errorf("%v: %s begins at %v, want %v", n, r.label, r.top, below)
			}
			below += r.tall
			heights[r.label] = r.tall
		}
		if below != tall {
			t.Errorf("%v: rows end at %v of %v", n, below, tall)
		}
		if n.cores == 71 && heights["gpu0"] < 3*heights["cpu.0"] || heights["gpu0"] < heights["cpu.0"] || heights["gpu0"] < nameHeight {
			t.Errorf("%v: a GPU has %v, a core %v", n, heights["gpu0"], heights["cpu.0"])
		}
		named, last := map[string]bool{}, vg.Length(-nameHeight)
		for _, name := range ch.rowNames() {
			if name.at-last < nameHeight {
				t.Errorf("%v: %s stands %v below the name before it", n, name.text, name.at-last)
			}
			named[name.text], last = true, name.at
		}
		for g := range n.gpus {
			if !named[fmt.Sprintf("gpu%d", g)] {
				t.Errorf("%v: gpu%d has no name", n, g)
			}
		}
		if !named["cpu.0"] {
			t.Errorf("%v: the cores have no name", n)
		}
	}
}

// laidOut is a chart on a page, as Gantt draws it.
func laidOut(r *Run) (*chart, *paper.Frame) {
	ch := newChart(r, newColouring(r))
	ch.crop()
	tall := ch.setHeights(520, minRowHeight, maxRowHeight)
	page := draw.NewCanvas(vgsvg.New(paper.Width, tall+100), paper.Width, tall+100)
	l, err := paper.Page{}.Layout("", "")
	if err != nil {
		panic(err)
	}
	f := l.TimeFrame(page, 80, ch.end, "time")
	f.Place(page.Max.Y-stepStrip, tall)
	return ch, f
}

// crosses reports whether a segment goes through the inside of a box, at a thousand places of it.
func crosses(s segment, b vg.Rectangle) bool {
	const places, rounding = 1000, 1e-6
	for k := range places + 1 {
		share := vg.Length(k) / places
		x, y := s.from.X+vg.Length(share*(s.to.X-s.from.X)), s.from.Y+vg.Length(share*(s.to.Y-s.from.Y))
		if x > b.Min.X+rounding && x < b.Max.X-rounding && y > b.Min.Y+rounding && y < b.Max.Y-rounding {
			return true
		}
	}
	return false
}

// No line of the critical path and no end of a step crosses the name of a task or a copy, also where,
// without the names, some would; and what is cut away of a line lies behind a name.
func TestLinesCrossNoLabels(t *testing.T) {
	tiny := tinyRun(t, "simulated", 1)
	many := nodeRun(t, 5, 2)
	many.Show = many.AllSteps()
	crossed := 0
	for _, r := range []*Run{tiny, statedRun(t), many, nodeRun(t, 3, 2)} {
		ch, f := laidOut(r)
		labels := ch.paintRows(f).labels
		for _, l := range labels {
			for _, s := range ch.lines(f, labels) {
				if crosses(s, l.box()) {
					t.Errorf("%s: a line from %v to %v crosses %q at %v", r.title(), s.from, s.to, l.text, l.box())
				}
			}
			for _, s := range ch.lines(f, nil) {
				if crosses(s, l.box()) {
					crossed++
				}
			}
		}
	}
	if crossed == 0 {
		t.Error("no line would cross a label, so that the test shows nothing")
	}
}

// A line from (0,0) to (12,6) loses what is inside a box: the middle, an end, all of it, or nothing.
func TestWithout(t *testing.T) {
	at := func(x, y vg.Length) vg.Point { return vg.Point{X: x, Y: y} }
	line := segment{from: at(0, 0), to: at(12, 6)}
	for _, c := range []struct {
		box  vg.Rectangle
		want []vg.Point
	}{
		{vg.Rectangle{Min: at(4, 1), Max: at(8, 5)}, []vg.Point{at(0, 0), at(4, 2), at(8, 4), at(12, 6)}},
		{vg.Rectangle{Min: at(-1, -1), Max: at(6, 9)}, []vg.Point{at(6, 3), at(12, 6)}},
		{vg.Rectangle{Min: at(8, -1), Max: at(14, 7)}, []vg.Point{at(0, 0), at(8, 4)}},
		{vg.Rectangle{Min: at(-1, -1), Max: at(13, 7)}, nil},
		{vg.Rectangle{Min: at(0, 4), Max: at(4, 6)}, []vg.Point{at(0, 0), at(12, 6)}},
	} {
		var got []vg.Point
		for _, s := range line.without(c.box) {
			got = append(got, s.from, s.to)
		}
		if !slices.EqualFunc(got, c.want, func(a, b vg.Point) bool {
			return max(a.X-b.X, b.X-a.X, a.Y-b.Y, b.Y-a.Y) < 1e-9
		}) {
			t.Errorf("without %v: %v, want %v", c.box, got, c.want)
		}
	}
}

// Of 11 workers in 1200 ns, or 600 columns, three work for a quarter of the time and one for half a column.
func TestBusyWorkers(t *testing.T) {
	r := largeRun(t, 40, 11, 1, 1)
	s := r.Schedule
	s.Spans, s.Makespan = s.Spans[:4], 1200
	for i := range s.Spans {
		s.Spans[i].Worker, s.Spans[i].Start, s.Spans[i].End = platform.WorkerID(2*i), 300, 600
	}
	s.Spans[3].Start, s.Spans[3].End = 1199, 1200
	ch := newChart(r, newColouring(r))
	ch.crop()
	b := newBusy(ch)
	want := make([]float64, busyColumns)
	for k := 150; k < 300; k++ {
		want[k] = 3
	}
	want[599] = 0.5
	if !slices.Equal(b.workers, want) || b.mean() < 0.75 || b.mean() > 0.751 {
		t.Errorf("busy %v, on average %v, want 3 in columns 150 to 299, half a one in the last, and 0.7508", b.workers, b.mean())
	}
	if svg := string(drawn(t, Figures()[0], "svg", Input{Run: r})); !strings.Contains(svg, "busy workers: 0.75 of 11 on average") {
		t.Error("the picture does not say how many workers were busy")
	}
	r = largeRun(t, 40, busyWorkers-1, 1, 1)
	if ch := newChart(r, newColouring(r)); newBusy(ch) != nil {
		t.Error("few workers are counted")
	}
}
