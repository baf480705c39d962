package plots

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"dahl/energy"
	"dahl/must"
	"dahl/plots/paper"
	"dahl/schedule"
)

// column is a page as wide as a column of a paper: 85 mm, which are 240.94 points, with text of 8 points.
var column = paper.Page{Format: "svg", WidthPt: 85 / paper.MMPerPt, FontPt: 8}

// TestColumn: each figure fits a column, with all of its text, of which none is cut.
func TestColumn(t *testing.T) {
	in := tinyInput(t)
	in.Compared.Operations = append(in.Compared.Operations, Operation{Name: "conv2d.nhwc.norm.relu.moments.dw.sgd", Calls: 1})
	for _, f := range Figures() {
		var svg bytes.Buffer
		must.Do(t, f.Draw(&svg, column, in))
		if !strings.Contains(svg.String(), `width="240.94pt"`) {
			t.Errorf("%s is %.120s, want a width of 240.94pt", f.Name, svg.String())
		}
		// A page has 256 points of figures for a screen, as 8 are 8.5 there.
		for text, at := range textsOf(t, svg.Bytes()) {
			if strings.HasSuffix(text, "...") || at[0] < 0 || at[1] > 256.1 {
				t.Errorf("%s: %q is from %g to %g of 256 points", f.Name, text, at[0], at[1])
			}
		}
	}
	long := tinyBars()
	for i := range long.Labels {
		for k := range long.Series {
			for j := range long.Series[k].Points {
				if p := &long.Series[k].Points[j]; p.Label == long.Labels[i] {
					p.Label += " with a strategy of a paper"
				}
			}
		}
		long.Labels[i] += " with a strategy of a paper"
	}
	for i, draw := range []func(io.Writer) error{
		func(w io.Writer) error { return DrawBars(w, column, long) },
		func(w io.Writer) error { return DrawHeat(w, column, tinyHeat()) },
		func(w io.Writer) error { return DrawCurves(w, column, tinyCurves()) },
		func(w io.Writer) error { return DrawSheet(w, column, tinySheet()) },
	} {
		var svg bytes.Buffer
		must.Do(t, draw(&svg))
		for text, at := range textsOf(t, svg.Bytes()) {
			if strings.HasSuffix(text, "...") || at[0] < 0 || at[1] > 256.1 {
				t.Errorf("figure %d: %q is from %g to %g of 256 points", i, text, at[0], at[1])
			}
		}
	}
	column.Format = "png"
	var png bytes.Buffer
	must.Do(t, Gantt(&png, column, in.Run))
	wantGolden(t, "column", png.Bytes())
}

// textsOf are the level texts of a figure, with their left and right ends.
func textsOf(t *testing.T, svg []byte) map[string][2]float64 {
	t.Helper()
	texts, turned := map[string][2]float64{}, 0
	var open *xml.StartElement
	for d := xml.NewDecoder(bytes.NewReader(svg)); ; {
		token, err := d.Token()
		if err == io.EOF {
			return texts
		}
		must.Do(t, err)
		number := func(name string) (v float64) {
			for _, a := range open.Attr {
				if a.Name.Local == name {
					v = must.Get(strconv.ParseFloat(a.Value, 64))(t)
				}
			}
			return v
		}
		switch e := token.(type) {
		case xml.StartElement:
			open = &e
			if e.Name.Local == "g" && (turned > 0 || len(e.Attr) > 0 && strings.HasPrefix(e.Attr[0].Value, "rotate")) {
				turned++
			}
		case xml.EndElement:
			if turned > 0 && e.Name.Local == "g" {
				turned--
			}
		case xml.CharData:
			if open != nil && open.Name.Local == "text" && turned == 0 && strings.TrimSpace(string(e)) != "" {
				texts[string(e)] = [2]float64{number("x"), number("x") + number("textLength")}
			}
		}
	}
}

// TestHeight: a page of a height is as high, and one without room says how high it has to be.
func TestHeight(t *testing.T) {
	in := tinyInput(t)
	for _, f := range Figures() {
		p := paper.Page{Format: "svg", WidthPt: 360, HeightPt: 830}
		var svg bytes.Buffer
		must.Do(t, f.Draw(&svg, p, in))
		if !strings.Contains(svg.String(), `height="830pt"`) {
			t.Errorf("%s is %.120s, want a height of 830pt", f.Name, svg.String())
		}
		p.HeightPt = 30
		err := f.Draw(io.Discard, p, in)
		least := regexp.MustCompile(`at least (\d+) mm`).FindStringSubmatch(err.Error())
		if !errors.Is(err, paper.ErrPage) || least == nil {
			t.Fatalf("%s: %v", f.Name, err)
		}
		p.HeightPt = must.Get(strconv.ParseFloat(least[1], 64))(t) / paper.MMPerPt
		if err := f.Draw(io.Discard, p, in); err != nil {
			t.Errorf("%s with a height of %s mm: %v", f.Name, least[1], err)
		}
	}
}

// TestTitleOfPage: a title takes the place of what a figure says of itself, and an empty one that of nothing.
func TestTitleOfPage(t *testing.T) {
	r := tinyRun(t, schedule.Measured, 1)
	draw := func(p paper.Page) string {
		p.Format = "svg"
		var svg bytes.Buffer
		must.Do(t, Gantt(&svg, p, r))
		return svg.String()
	}
	own, empty := "What & why", ""
	if svg := draw(paper.Page{Title: &own}); !strings.Contains(svg, ">What &amp; why<") || strings.Contains(svg, "workers busy") {
		t.Error("the title is not in the place of the figure's own")
	}
	if svg := draw(paper.Page{Title: &empty}); strings.Contains(svg, "tiny") || strings.Contains(svg, "workers busy") {
		t.Error("the figure has a title")
	}
	if err := Gantt(io.Discard, paper.Page{Format: "svg", WidthPt: 100}, r); !errors.Is(err, paper.ErrPage) {
		t.Errorf("a width of 100 points: %v", err)
	}
	if err := Gantt(io.Discard, paper.Page{Format: "png", DPI: 2400, WidthPt: 9000}, r); !errors.Is(err, paper.ErrPage) {
		t.Errorf("a PNG of 300,000 pixels across: %v", err)
	}
}

// TestPartOfPower: of steps at 1, 2, 3 and 4 W two in the middle take 2 W times the time of the one and 3 W times that of
// the other.
func TestPartOfPower(t *testing.T) {
	r := lengthenedRun(t, 3, 1, 2, 1)
	ends, at := r.stepEnds(), time.Duration(0)
	r.Power = []energy.PowerTrace{{Name: "cpu"}}
	for k, end := range ends {
		r.Power[0].Samples = append(r.Power[0].Samples, energy.PowerSample{At: at, Watts: float64(k + 1)})
		at = end
	}
	r.Show = StepRange{2, 3}
	part := r.within()
	want := 2*(ends[1]-ends[0]).Seconds() + 3*(ends[2]-ends[1]).Seconds()
	if got := newStack(part.Power, part.Schedule.Makespan, powerColumns).total(); math.Abs(got-want) > 1e-9*want {
		t.Errorf("%g J, want %g J", got, want)
	}
}
