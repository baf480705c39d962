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
func Stack(w io.Writer, format string, names []string, runs ...*Run) error {
	for _, r := range runs {
		if err := r.check("compare"); err != nil {
			return err
		}
	}
	face := newTypeface()
	s := newGanttStack(names, runs...)
	return render(w, format, pageWidth, headerHeight+s.height(face)+pageMargin, func(c draw.Canvas) {
		below := drawHeader(c, face, naming.Count(len(runs), "run")+" on one time axis", "of runs of several steps two steady ones, unless others are asked for")
		s.draw(c, below, face)
	})
}

// ganttStack is charts over each other. Labels look the same in all of them.
type ganttStack struct {
	names  []string
	charts []*chart
	talls  []vg.Length
	legend []legendGroup
}

func newGanttStack(names []string, runs ...*Run) *ganttStack {
	s := &ganttStack{names: names}
	colours := colourings(runs...)
	used := make([]bool, colours[0].categories())
	for i, r := range runs {
		ch := newChart(r, colours[i])
		ch.crop()
		for category, u := range ch.used() {
			used[category] = used[category] || u
		}
		s.charts, s.talls = append(s.charts, ch), append(s.talls, ch.setHeights(260))
	}
	s.legend = colours[0].legend(used)
	return s
}

const (
	chartCaption = 18
	chartGap     = 8
)

// height is the height of the charts, their axis and the legend.
func (s *ganttStack) height(face typeface) vg.Length {
	height := axisBottom + legendHeight(face, s.legend, pageWidth-2*pageMargin)
	for _, tall := range s.talls {
		height += chartCaption + stepStrip + tall + chartGap
	}
	return height - chartGap
}

// draw paints the charts below a header, and the legend across the page. It returns the height below.
func (s *ganttStack) draw(page, below draw.Canvas, face typeface) (top vg.Length) {
	end, labels := s.charts[0].end, vg.Length(0)
	for _, ch := range s.charts {
		end, labels = max(end, ch.end), max(labels, ch.labelWidth(face))
	}
	f := timeFrame(below, face, pageMargin+labels, end, "time from the start of what is shown")
	top = below.Max.Y
	for i, ch := range s.charts {
		f.c.FillText(face.style(10.5, ink, text.XLeft, text.YTop), vg.Point{X: f.box.Min.X, Y: top}, s.names[i]+": "+ch.shown.caption())
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
	drawLegend(page, face, s.legend, pageMargin, pageWidth-pageMargin, top)
	return top - legendHeight(face, s.legend, pageWidth-2*pageMargin)
}
