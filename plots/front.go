package plots

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"

	"dahl/naming"
	"dahl/plots/paper"

	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Front is a figure of plans by seconds and joules: those that no other beats in both are joined by a line.
type Front struct {
	Title, Summary string
	Points         []FrontPoint
	// What names a point, and Per the unit of its seconds and joules. Empty means a plan, and a
	// step.
	What, Per string
	// Whole lets the axes reach every point, which has its label where there is room.
	Whole bool
	// Bound is a lower bound on all plans of BoundOf, in the unit of Of. Zero means unknown.
	Bound   float64
	BoundOf string
	Of      FrontBound
	// Deadline is how many seconds a plan may take; 0 means no matter.
	Deadline float64
}

// FrontPoint is a plan.
type FrontPoint struct {
	Seconds, Joules float64
	Label           string
	Front           bool // no other beats it in both
	Chosen          bool
}

// FrontBound is the quantity that a bound limits.
type FrontBound string

// What a bound can be of: a line of equal seconds, joules, or joules times seconds.
const (
	OfSeconds FrontBound = "time"
	OfJoules  FrontBound = "energy"
	OfProduct FrontBound = "edp"
)

// DrawFront writes the figure. An error wraps ErrNoData where there is no point.
func DrawFront(w io.Writer, p paper.Page, of *Front) error {
	if len(of.Points) == 0 {
		return fmt.Errorf("front: %w", ErrNoData)
	}
	for i, p := range of.Points {
		if !(p.Seconds > 0) || !(p.Joules >= 0) || math.IsInf(p.Seconds+p.Joules, 0) {
			return fmt.Errorf("front: point %d takes %g s and %g J", i, p.Seconds, p.Joules)
		}
	}
	f := &paper.Frame{}
	f.Lower, f.Left = of.axes()
	page, err := (&Values{Title: of.Title, Summary: of.Summary}).page(p, valuesLeft, "", of.legend(f))
	if err != nil {
		return err
	}
	return page.render(w, max(170, vg.Length(frontTall*page.Share())), func(at *paper.Frame) {
		at.Lower, at.Left = of.axes()
		of.draw(at)
	})
}

// frontTall is the height of a front from the lower axis up.
const frontTall = 356

func (of *Front) draw(f *paper.Frame) {
	f.DrawGrid()
	of.drawBound(f)
	if x := of.Deadline; x > f.Lower.Min && x < f.Lower.Max {
		paper.Line(f.Canvas, paper.Ink, 0.8, vg.Point{X: f.X(x), Y: f.Box.Min.Y}, vg.Point{X: f.X(x), Y: f.Box.Max.Y}, 2, 2)
		f.Canvas.FillText(f.Face.Style(8.5, paper.FaintInk, text.XLeft, text.YTop), vg.Point{X: f.X(x) + 3, Y: f.Box.Max.Y}, "deadline")
	}
	of.drawPoints(f)
}

// legend says what the marks and lines are.
func (of *Front) legend(f *paper.Frame) []paper.Entry {
	what := cmp.Or(of.What, "plan")
	entries := []paper.Entry{
		{Name: "another " + what + inBrackets(of.outside(f)), Colour: paper.Lighten(paper.FaintInk, 0.6), Mark: paper.FaintMark},
		{Name: what + "s that no other beats in both", Colour: palette[0], Stroke: true, Mark: paper.DotMark},
	}
	if slices.ContainsFunc(of.Points, func(p FrontPoint) bool { return p.Chosen }) {
		entries = append(entries, paper.Entry{Name: "the " + what + " that was chosen", Colour: palette[5], Mark: paper.ChosenMark})
	}
	if of.Bound > 0 {
		entries = append(entries, paper.Entry{Name: "no plan of " + of.BoundOf + " is below", Colour: reservedRed, Stroke: true, Dashed: true})
	}
	return entries
}

// How far from the front, as a ratio, the axes reach: to the bound below it, and to plans above it.
const (
	farBelow = 10
	farAbove = 3
)

// axes cover the front, the plans near it, and the bound where that is near.
func (of *Front) axes() (x, y paper.Axis) {
	var seconds, joules []float64
	for _, p := range of.Points {
		if p.Front || p.Chosen {
			seconds, joules = append(seconds, p.Seconds), append(joules, p.Joules)
		}
	}
	if len(seconds) == 0 {
		seconds, joules = append(seconds, of.Points[0].Seconds), append(joules, of.Points[0].Joules)
	}
	mostSeconds, mostJoules := farAbove*slices.Max(seconds), farAbove*slices.Max(joules)
	for _, p := range of.Points {
		if of.Whole || p.Seconds <= mostSeconds && p.Joules <= mostJoules {
			seconds, joules = append(seconds, p.Seconds), append(joules, p.Joules)
		}
	}
	switch {
	case of.Of == OfSeconds && of.Bound > slices.Min(seconds)/farBelow:
		seconds = append(seconds, of.Bound)
	case of.Of == OfJoules && of.Bound > slices.Min(joules)/farBelow:
		joules = append(joules, of.Bound)
	}
	per := cmp.Or(of.Per, "a step")
	return frontAxis(seconds, "s", "time of "+per), frontAxis(joules, "J", "energy of "+per)
}

// frontAxis is logarithmic where values differ by more than a factor of four.
func frontAxis(values []float64, base, what string) paper.Axis {
	const wide = 4
	least, most := slices.Min(values), slices.Max(values)
	u := paper.SIUnit(base, most)
	if least > 0 && most > wide*least {
		return paper.LogAxis(least/1.15, most*1.15, paper.SIUnit(base, math.Sqrt(least*most)), what)
	}
	return paper.LinearAxis(most, 0.08, u, what, 8)
}

// drawBound paints the line below which no plan is.
func (of *Front) drawBound(f *paper.Frame) {
	if !(of.Bound > 0) {
		return
	}
	var pts []vg.Point
	const steps = 200
	for i := range steps + 1 {
		share := float64(i) / steps
		x, y := valueAt(&f.Lower, share), of.Bound
		switch of.Of {
		case OfSeconds:
			x, y = of.Bound, valueAt(&f.Left, share)
		case OfProduct:
			y = of.Bound / x
		}
		if x > 0 && x >= f.Lower.Min && x <= f.Lower.Max && y >= f.Left.Min && y <= f.Left.Max {
			pts = append(pts, vg.Point{X: f.X(x), Y: f.Y(y)})
		}
	}
	if len(pts) > 1 {
		f.Canvas.StrokeLines(draw.LineStyle{Color: reservedRed, Width: 1, Dashes: []vg.Length{4, 3}}, pts)
	}
}

// valueAt is the value at a share of the axis.
func valueAt(a *paper.Axis, share float64) float64 {
	if a.Log {
		return a.Min * math.Pow(a.Max/a.Min, share)
	}
	return a.Min + float64(share*(a.Max-a.Min))
}

// holds reports whether a plan is within the axes.
func holds(f *paper.Frame, p *FrontPoint) bool {
	return p.Seconds <= f.Lower.Max && p.Joules <= f.Left.Max
}

// outside says how many plans are beyond the axes; empty means none.
func (of *Front) outside(f *paper.Frame) string {
	n := 0
	for i := range of.Points {
		if !holds(f, &of.Points[i]) {
			n++
		}
	}
	if n == 0 {
		return ""
	}
	return naming.Count(n, cmp.Or(of.What, "plan")) + " further out"
}

// drawPoints paints all plans faintly, the front as a line with the names of its devices, and the chosen plan.
func (of *Front) drawPoints(f *paper.Frame) {
	at := func(p *FrontPoint) vg.Point { return vg.Point{X: f.X(p.Seconds), Y: f.Y(p.Joules)} }
	var front []*FrontPoint
	for i := range of.Points {
		p := &of.Points[i]
		if p.Front {
			front = append(front, p)
		}
		if holds(f, p) {
			paper.FaintMark.Draw(f.Canvas, at(p), paper.Lighten(paper.FaintInk, 0.6))
		}
	}
	slices.SortStableFunc(front, func(a, b *FrontPoint) int {
		if a.Seconds < b.Seconds || a.Seconds == b.Seconds && a.Joules > b.Joules {
			return -1
		}
		return 1
	})
	var line []vg.Point
	for i, p := range front {
		if i > 0 { // what is between two plans is no plan
			line = append(line, vg.Point{X: at(p).X, Y: line[len(line)-1].Y})
		}
		line = append(line, at(p))
	}
	if len(line) > 1 {
		f.Canvas.StrokeLines(draw.LineStyle{Color: palette[0], Width: 1.4}, line)
	}
	for _, p := range front {
		paper.DotMark.Draw(f.Canvas, at(p), palette[0])
	}
	l := &labels{Frame: f}
	l.leave(line)
	for i := range of.Points {
		if p := &of.Points[i]; of.Whole || p.Front || p.Chosen {
			l.leaveDot(at(p))
		}
	}
	for i := range of.Points {
		if p := &of.Points[i]; p.Chosen {
			paper.ChosenMark.Draw(f.Canvas, at(p), palette[5])
			l.put(p.Label, at(p))
		}
	}
	for _, p := range front {
		l.put(p.Label, at(p))
	}
	for i := range of.Points {
		if p := &of.Points[i]; of.Whole && !p.Front {
			l.put(p.Label, at(p))
		}
	}
}

// labels are the texts of a figure, none over another.
type labels struct {
	*paper.Frame
	boxes []vg.Rectangle // what texts must leave free, and the texts
	seen  []string
	patch bool // of the paper's colour behind each text, which hides lines
}

// leaveDot keeps texts off a dot.
func (l *labels) leaveDot(at vg.Point) {
	const half = 4
	l.boxes = append(l.boxes, vg.Rectangle{Min: vg.Point{X: at.X - half, Y: at.Y - half}, Max: vg.Point{X: at.X + half, Y: at.Y + half}})
}

// leave keeps texts off a line of upright and level parts.
func (l *labels) leave(line []vg.Point) {
	for i := 1; i < len(line); i++ {
		a, b := line[i-1], line[i]
		l.boxes = append(l.boxes, vg.Rectangle{Min: vg.Point{X: min(a.X, b.X) - 1, Y: min(a.Y, b.Y) - 1}, Max: vg.Point{X: max(a.X, b.X) + 1, Y: max(a.Y, b.Y) + 1}})
	}
}

// put writes a text next to a point if there is room, and the text stands nowhere else.
func (l *labels) put(what string, at vg.Point) {
	const size, apart, widest = 8, 8, 190
	style := l.Face.Style(size, paper.Ink, text.XLeft, text.YBottom)
	what = paper.Clip(style, what, widest)
	if what == "" || slices.Contains(l.seen, what) {
		return
	}
	width := style.Width(what)
	for _, from := range []vg.Point{ // no plan is below a point of the front and to the left of it
		{X: at.X - apart - width, Y: at.Y - size - 3}, {X: at.X + apart, Y: at.Y - size - 3},
		{X: at.X + apart, Y: at.Y + 3}, {X: at.X - apart - width, Y: at.Y + 3},
	} {
		box := vg.Rectangle{Min: from, Max: vg.Point{X: from.X + width, Y: from.Y + size}}
		if box.Min.X < l.Box.Min.X || box.Max.X > l.Box.Max.X || box.Min.Y < l.Box.Min.Y || box.Max.Y > l.Box.Max.Y ||
			slices.ContainsFunc(l.boxes, func(b vg.Rectangle) bool {
				return box.Min.X < b.Max.X && b.Min.X < box.Max.X && box.Min.Y < b.Max.Y && b.Min.Y < box.Max.Y
			}) {
			continue
		}
		l.boxes, l.seen = append(l.boxes, box), append(l.seen, what)
		if l.patch {
			paper.FillRect(l.Canvas, box, paper.White)
		}
		l.Canvas.FillText(style, from, what)
		return
	}
}
