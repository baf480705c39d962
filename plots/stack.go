package plots

import (
	"io"

	"dahl/naming"

	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Stack draws the Gantt charts of several runs above each other, on one time axis. The runs may be of different graphs and
// platforms; names stand above their charts.
func Stack(w io.Writer, p Page, names []string, runs ...*Run) error {
	for _, r := range runs {
		if err := r.check("compare"); err != nil {
			return err
		}
	}
	l, err := p.layout(naming.Count(len(runs), "run")+" on one time axis", "of runs of several steps two steady ones, unless others are asked for")
	if err != nil {
		return err
	}
	s, err := newGanttStack(l, pageMargin, names, runs...)
	if err != nil {
		return err
	}
	return l.render(w, s.height()+pageMargin, func(page, below draw.Canvas) { s.draw(page, below) })
}

// ganttStack is charts over each other. Labels look the same in all of them.
type ganttStack struct {
	*layout
	names  []string
	charts []*chart
	talls  []vg.Length
	legend *legend
}

// newGanttStack arranges charts on a page with something else of a height.
func newGanttStack(l *layout, beside vg.Length, names []string, runs ...*Run) (*ganttStack, error) {
	s := &ganttStack{layout: l, names: names}
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
	s.legend = newLegend(l.face, l.inner(), colours[0].legend(used)...)
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
	height := axisBottom + s.legend.height + vg.Length(len(s.charts)*(chartCaption+stepStrip+chartGap)) - chartGap
	for _, tall := range s.talls {
		height += tall
	}
	return height
}

// draw paints the charts below a head, and the legend across the page. It returns the height below.
func (s *ganttStack) draw(page, below draw.Canvas) (top vg.Length) {
	end, labels := s.charts[0].end, vg.Length(0)
	for _, ch := range s.charts {
		end, labels = max(end, ch.end), max(labels, ch.labelWidth(s.layout))
	}
	f := s.timeFrame(below, pageMargin+labels, end, "time from the start of what is shown")
	style := s.face.style(10.5, ink, text.XLeft, text.YTop)
	top = below.Max.Y
	for i, ch := range s.charts {
		caption := s.names[i] + ": " + ch.shown.caption()
		f.c.FillText(style, vg.Point{X: f.box.Min.X, Y: top}, clip(style, caption, f.box.Max.X-f.box.Min.X))
		f.place(top-chartCaption-stepStrip, s.talls[i])
		ch.draw(f)
		if own := ch.shown.length; own < end { // the axis goes on beyond the shorter run
			x := f.X(float64(own))
			line(f.c, faintInk, 0.8, vg.Point{X: x, Y: f.box.Min.Y}, vg.Point{X: x, Y: f.box.Max.Y})
		}
		top = f.box.Min.Y - chartGap
	}
	f.drawX(true)
	top = f.box.Min.Y - axisBottom
	s.legend.draw(page, pageMargin, top)
	return top - s.legend.height
}
