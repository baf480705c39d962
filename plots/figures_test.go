package plots

import (
	"bytes"
	"encoding/xml"
	"errors"
	"flag"
	"fmt"
	"image"
	"image/draw"
	"image/png"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"dahl/energy"
	"dahl/must"
	"dahl/plots/paper"
	"dahl/schedule"
)

var update = flag.Bool("update", false, "write the golden pictures anew; look at them before committing")

func tinyInput(t testing.TB) Input {
	return Input{Run: tinyRun(t, schedule.Measured, 1), Predicted: tinyRun(t, schedule.Simulated, 0.93), Compared: comparedRuns(), Front: tinyFront(), Confusion: tinyConfusion()}
}

// tinyConfusion is of ten classes, of which each sample is predicted right, or as the next class in one case of a hundred.
func tinyConfusion() *Values {
	v := &Values{Title: "a made-up network", Summary: "accuracy 99.00 %", XLabel: "predicted class", YLabel: "label", Quantity: Quantity{Name: "samples", More: true}, Counts: true}
	for label := 9; label >= 0; label-- {
		row := Series{Name: fmt.Sprint(label)}
		for class := range 10 {
			name := fmt.Sprint(class)
			switch class {
			case label:
				row.Points = append(row.Points, exactly(name, 0, 1000+float64(7*label)))
			case (label + 1) % 10:
				row.Points = append(row.Points, exactly(name, 0, 10))
			default:
				row.Points = append(row.Points, exactly(name, 0, 0))
			}
		}
		v.Series = append(v.Series, row)
	}
	for class := range 10 {
		v.Labels = append(v.Labels, fmt.Sprint(class))
	}
	return v
}

// TestUnknownFigure: a name that no figure has is answered with those that there are.
func TestUnknownFigure(t *testing.T) {
	want := `figure "none" is not one of gantt, power, `
	if _, err := FigureByName("none"); err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("error %v, want %s", err, want)
	}
}

// drawn is a figure in a format.
func drawn(t *testing.T, f Figure, format string, in Input) []byte {
	t.Helper()
	var file bytes.Buffer
	must.Do(t, f.Draw(&file, paper.Page{Format: format}, in))
	return file.Bytes()
}

// The pictures of two steps of a ten-task graph on two cores and a GPU were
// looked at when they were committed.
func TestGoldenPictures(t *testing.T) {
	for _, f := range Figures() {
		t.Run(f.Name, func(t *testing.T) {
			wantGolden(t, f.Name, drawn(t, f, "png", tinyInput(t)))
		})
	}
}

// wantGolden compares a picture with the one that is committed.
func wantGolden(t *testing.T, name string, got []byte) {
	t.Helper()
	golden := filepath.Join("testdata", name+".golden.png")
	if *update {
		must.Do(t, os.WriteFile(golden, got, 0o666))
	}
	want := must.Get(os.ReadFile(golden))(t)
	if off := differingPixels(t, got, want); off > 0 {
		t.Errorf("%d pixels differ from %s; if that is meant, look at it with -update", off, golden)
	}
}

// differingPixels counts pixels that differ by more than 2 of 255 in a channel:
// less is the rounding of the rasteriser, which may fuse multiplications.
func differingPixels(t *testing.T, a, b []byte) int {
	t.Helper()
	decode := func(file []byte) *image.RGBA {
		img := must.Get(png.Decode(bytes.NewReader(file)))(t)
		flat := image.NewRGBA(img.Bounds())
		draw.Draw(flat, flat.Rect, img, img.Bounds().Min, draw.Src)
		return flat
	}
	x, y := decode(a), decode(b)
	if x.Rect != y.Rect {
		t.Fatalf("the pictures measure %v and %v", x.Rect, y.Rect)
	}
	count := 0
	for i := 0; i < len(x.Pix); i += 4 {
		for c := range 4 {
			if v, w := x.Pix[i+c], y.Pix[i+c]; max(v, w)-min(v, w) > 2 {
				count++
				break
			}
		}
	}
	return count
}

func TestGoldenPicturesBelongToFigures(t *testing.T) {
	files := must.Get(filepath.Glob("testdata/*"))(t)
	for _, file := range files {
		name := strings.TrimSuffix(strings.TrimSuffix(filepath.Base(file), ".golden.png"), "-states")
		if _, err := FigureByName(name); err != nil && !slices.Contains([]string{"bars", "curves", "heat", "speedup", "column", "sheet"}, name) { // not of a run: drawn by tests of their own
			t.Errorf("%s belongs to no figure", file)
		}
	}
}

func TestEqualInputGivesEqualBytes(t *testing.T) {
	for _, format := range paper.Formats() {
		for _, f := range Figures() {
			if format == "png" && f.Name != "compare" {
				continue // slow, and one rasteriser draws them all
			}
			first := drawn(t, f, format, tinyInput(t))
			for range 2 { // a map walked in two orders may agree by chance once
				if !bytes.Equal(first, drawn(t, f, format, tinyInput(t))) {
					t.Errorf("%s.%s: two drawings differ", f.Name, format)
				}
			}
		}
	}
}

// Every text carries its length, so that a viewer without the font keeps the layout.
func TestSVGTextKeepsItsLength(t *testing.T) {
	for _, f := range Figures() {
		svg := drawn(t, f, "svg", tinyInput(t))
		texts, fixed := bytes.Count(svg, []byte("<text")), bytes.Count(svg, []byte("<text textLength="))
		if texts == 0 || texts != fixed {
			t.Errorf("%s: %d of %d texts have a length", f.Name, fixed, texts)
		}
		if err := xml.Unmarshal(svg, new(struct{})); err != nil {
			t.Errorf("%s: %v", f.Name, err)
		}
	}
}

func TestPDFHasNoDateOfToday(t *testing.T) {
	pdf := drawn(t, Figures()[0], "pdf", tinyInput(t))
	if n := bytes.Count(pdf, []byte("(D:20000101000000)")); n != 2 {
		t.Errorf("%d fixed dates, want those of creation and modification", n)
	}
	if bytes.Contains(pdf, []byte("(D:"+time.Now().Format("2006"))) {
		t.Error("the file holds the date of today")
	}
}

// Ten thousand tasks stay far below the size that browsers open with ease, and
// nothing in the file is a picture of pixels.
func TestSVGOfTenThousandTasksIsSmall(t *testing.T) {
	in := Input{Run: largeRun(t, 10000, 8, 4, 1), Predicted: largeRun(t, 10000, 8, 4, 2), Compared: comparedRuns(), Front: tinyFront(), Confusion: tinyConfusion()}
	if n := len(in.Run.Schedule.Spans); n != 10000 {
		t.Fatalf("the run has %d tasks", n)
	}
	for _, f := range Figures() {
		svg := drawn(t, f, "svg", in)
		if len(svg) >= 2e6 {
			t.Errorf("%s.svg has %d bytes, want less than 2 MB", f.Name, len(svg))
		}
		if bytes.Contains(svg, []byte("<image")) {
			t.Errorf("%s.svg holds a raster image", f.Name)
		}
	}
}

// With more workers than rows the chart groups them, and the size stays bounded.
func TestManyWorkersShareRows(t *testing.T) {
	r := largeRun(t, 20000, 500, 1, 3)
	ch := newChart(r, newColouring(r))
	// ceil(500/96) = 6 workers share a row, which makes ceil(500/6) = 84 rows.
	if len(ch.rows) != 84 || ch.rows[0].label != "cpu.0..5" || ch.rows[83].label != "cpu.498..499" {
		t.Errorf("%d rows from %q to %q, want 84 from cpu.0..5 to cpu.498..499", len(ch.rows), ch.rows[0].label, ch.rows[len(ch.rows)-1].label)
	}
	if svg := drawn(t, Figures()[0], "svg", Input{Run: r}); len(svg) >= 2e6 {
		t.Errorf("%d bytes, want less than 2 MB", len(svg))
	}
}

func TestFiguresSayWhatIsMissing(t *testing.T) {
	tiny := tinyRun(t, schedule.Measured, 1)
	without := func(change func(r *Run, s *schedule.Schedule)) *Run {
		r, s := *tiny, *tiny.Schedule
		r.Schedule = &s
		change(&r, &s)
		return &r
	}
	for _, c := range []struct {
		figure string
		in     Input
	}{
		{"gantt", Input{}},
		{"gantt", Input{Run: &Run{}}},
		{"gantt", Input{Run: without(func(_ *Run, s *schedule.Schedule) { s.Spans = nil })}},
		{"power", Input{Run: without(func(r *Run, _ *schedule.Schedule) { r.Power = nil })}},
		{"memory", Input{Run: without(func(_ *Run, s *schedule.Schedule) { s.Memory = nil })}},
		{"compare", Input{Run: tiny}},
		{"front", Input{Run: tiny}},
		{"confusion", Input{Run: tiny}},
	} {
		f := must.Get(FigureByName(c.figure))(t)
		var file bytes.Buffer
		if err := f.Draw(&file, paper.Page{Format: "svg"}, c.in); !errors.Is(err, ErrNoData) || file.Len() > 0 {
			t.Errorf("%s: error %v, want ErrNoData; %d bytes were written", c.figure, err, file.Len())
		}
	}
}

// Damaged runs end in an error, never in a panic.
func TestDamagedRunsAreRefused(t *testing.T) {
	for name, damage := range map[string]func(r *Run){
		"task":         func(r *Run) { r.Schedule.Spans[3].Task = 10 },
		"negative":     func(r *Run) { r.Schedule.Spans[3].Task = -1 },
		"worker":       func(r *Run) { r.Schedule.Spans[3].Worker = 3 },
		"step":         func(r *Run) { r.Schedule.Spans[3].Step = -1 },
		"backwards":    func(r *Run) { r.Schedule.Spans[3].End = r.Schedule.Spans[3].Start - 1 },
		"makespan":     func(r *Run) { r.Schedule.Makespan = 1 },
		"route":        func(r *Run) { r.Schedule.Transfers[0].To = 2 },
		"buffer":       func(r *Run) { r.Schedule.Transfers[0].Buffer = -1 },
		"destination":  func(r *Run) { r.Schedule.Transfers[0].For = 99 },
		"memory":       func(r *Run) { r.Schedule.Memory[0].Memory = 7 },
		"unknown step": func(r *Run) { r.Schedule.Spans[3].Step = 2 },
	} {
		in := tinyInput(t)
		in.Front, in.Confusion = nil, nil // which have no schedule
		damage(in.Run)
		for _, f := range Figures() {
			if err := f.Draw(io.Discard, paper.Page{Format: "svg"}, in); err == nil {
				t.Errorf("%s: %s was drawn", name, f.Name)
			}
		}
		if err := Chrome(&bytes.Buffer{}, in.Run); err == nil {
			t.Errorf("%s: a Chrome trace was written", name)
		}
		if err := Paje(&bytes.Buffer{}, in.Run); err == nil {
			t.Errorf("%s: a Pajé trace was written", name)
		}
	}
}

func TestPowerThatIsNoStepFunctionIsRefused(t *testing.T) {
	for _, samples := range [][]energy.PowerSample{
		{{At: 2, Watts: 1}, {At: 1, Watts: 1}},
		{{At: 0, Watts: -1}},
		{{At: 0, Watts: 1e300}},
	} {
		r := tinyRun(t, schedule.Measured, 1)
		r.Power = []energy.PowerTrace{{Name: "cpu", Samples: samples}}
		if err := Power(io.Discard, paper.Page{Format: "svg"}, r); err == nil || errors.Is(err, ErrNoData) {
			t.Errorf("%v: error %v", samples, err)
		}
	}
}

// Runs at the ends of what a clock can hold are drawn without a panic: no time at
// all, one nanosecond, and 292 years.
func TestExtremeTimesAreDrawn(t *testing.T) {
	for _, makespan := range []time.Duration{0, 1, 1<<63 - 1} {
		in := tinyInput(t)
		for _, r := range []*Run{in.Run, in.Predicted} {
			s := r.Schedule
			for i := range s.Spans {
				s.Spans[i].Start, s.Spans[i].End = 0, makespan/time.Duration(1+i%3)
			}
			for i := range s.Transfers {
				s.Transfers[i].Start, s.Transfers[i].End = 0, makespan
			}
			for i := range s.Memory {
				s.Memory[i].At = 0
			}
			s.Makespan, r.Power = makespan, []energy.PowerTrace{{Name: "cpu", Samples: []energy.PowerSample{{At: 0, Watts: 5}}}}
		}
		for _, f := range Figures() {
			var svg bytes.Buffer
			if err := f.Draw(&svg, paper.Page{Format: "svg"}, in); err != nil && !errors.Is(err, ErrNoData) {
				t.Errorf("makespan %v: %v", makespan, err)
			} else if bytes.Contains(svg.Bytes(), []byte("NaN")) || bytes.Contains(svg.Bytes(), []byte("Inf")) {
				t.Errorf("makespan %v: %s has coordinates that are no numbers", makespan, f.Name)
			}
		}
	}
}

// Names come from files of users; the SVG must stay readable whatever they hold.
func TestSVGSurvivesOddNames(t *testing.T) {
	r := tinyRun(t, schedule.Measured, 1)
	r.Title = "a <b> & \x01\x02 \xff \"c\""
	svg := drawn(t, Figures()[0], "svg", Input{Run: r})
	if err := xml.Unmarshal(svg, new(struct{})); err != nil {
		t.Error(err)
	}
}

// TestNoFigure: a format that there is not, and a writer that takes nothing, are errors.
func TestNoFigure(t *testing.T) {
	r := tinyRun(t, schedule.Measured, 1)
	if err := Gantt(io.Discard, paper.Page{Format: "bmp"}, r); err == nil || !strings.Contains(err.Error(), "svg, png, pdf") {
		t.Errorf("error %v, want one that lists the formats", err)
	}
	in, out := io.Pipe()
	in.CloseWithError(io.ErrClosedPipe)
	if err := Gantt(out, paper.Page{Format: "svg"}, r); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("error %v, want that of the writer", err)
	}
}
