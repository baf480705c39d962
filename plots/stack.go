package plots

import (
	"io"

	"dahl/naming"
	"dahl/plots/paper"

	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Stack draws the Gantt charts of several runs above each other, on one time axis. The runs may be of different graphs and
// platforms; names stand above their charts.
func Stack(w io.Writer, p paper.Page, names []string, runs ...*Run) error {
	for _, r := range runs {
		if err := r.check("compare"); err != nil {
			return err
		}
	}
	l, err := p.Layout(naming.Count(len(runs), "run")+" on one time axis", "of runs of several steps two steady ones, unless others are asked for")
	if err != nil {
		return err
	}
	s, err := newGanttStack(l, paper.Margin, names, runs...)
	if err != nil {
		return err
	}
	return l.Render(w, s.height()+paper.Margin, func(page, below draw.Canvas) { s.draw(page, below) })
}

// ganttStack is charts over each other. Labels look the same in all of them.
type ganttStack struct {
	*paper.Layout
	names  []string
	charts []*chart
	talls  []vg.Length
	legend *paper.Legend
}

// newGanttStack arranges charts on a page with something else of a height.
func newGanttStack(l *paper.Layout, beside vg.Length, names []string, runs ...*Run) (*ganttStack, error) {
	s := &ganttStack{Layout: l, names: names}
	colours := colourings(runs...)
	used := make([]bool, colours[0].categories())
	for i, r := range runs {
		ch := newChart(r, colours[i])
		ch.crop()
		for category, u := range ch.used() {
			used[category] = used[category] || u
		}
		s.charts = append(s.charts, ch)
	}
	s.legend = paper.NewLegend(l.Face, l.Inner(), colours[0].legend(used)...)
	var err error
	s.talls, err = setHeights(l, 260, beside+s.height(), s.charts...)
	return s, err
}

const (
	chartCaption = 18
	chartGap     = 8
)

// height is the height of the charts, their axis and the legend.
func (s *ganttStack) height() vg.Length {
	height := paper.AxisBottom + s.legend.Height + vg.Length(len(s.charts)*(chartCaption+stepStrip+chartGap)) - chartGap
	for _, tall := range s.talls {
		height += tall
	}
	return height
}

// draw paints the charts below a head, and the legend across the page. It returns the height below.
func (s *ganttStack) draw(page, below draw.Canvas) (top vg.Length) {
	end, labels := s.charts[0].end, vg.Length(0)
	for _, ch := range s.charts {
		end, labels = max(end, ch.end), max(labels, ch.labelWidth(s.Layout))
	}
	f := s.TimeFrame(below, paper.Margin+labels, end, "time from the start of what is shown")
	style := s.Face.Style(10.5, paper.Ink, text.XLeft, text.YTop)
	top = below.Max.Y
	for i, ch := range s.charts {
		caption := s.names[i] + ": " + ch.shown.caption()
		f.Canvas.FillText(style, vg.Point{X: f.Box.Min.X, Y: top}, paper.Clip(style, caption, f.Box.Max.X-f.Box.Min.X))
		f.Place(top-chartCaption-stepStrip, s.talls[i])
		ch.draw(f)
		if own := ch.shown.length; own < end { // the axis goes on beyond the shorter run
			x := f.X(float64(own))
			paper.Line(f.Canvas, paper.FaintInk, 0.8, vg.Point{X: x, Y: f.Box.Min.Y}, vg.Point{X: x, Y: f.Box.Max.Y})
		}
		top = f.Box.Min.Y - chartGap
	}
	f.DrawX(true)
	top = f.Box.Min.Y - paper.AxisBottom
	s.legend.Draw(page, paper.Margin, top)
	return top - s.legend.Height
}
