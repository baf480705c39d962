package plots

import (
	"fmt"
	"time"

	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Compare draws a predicted and a measured run of one graph: two Gantt charts on one time axis.
// Below them are each kernel's measured median over its predicted one, and the time of each
// operation in a step.
func Compare(path string, predicted, measured *Run) error {
	if predicted == nil {
		return fmt.Errorf("compare: there is no prediction to compare with: %w", ErrNoData)
	}
	for _, r := range []*Run{predicted, measured} {
		if err := r.check("compare"); err != nil {
			return err
		}
	}
	if predicted.Problem.Graph != measured.Problem.Graph && len(predicted.Problem.Graph.Tasks) != len(measured.Problem.Graph.Tasks) {
		return fmt.Errorf("compare: the runs are of different graphs (%d and %d tasks)", len(predicted.Problem.Graph.Tasks), len(measured.Problem.Graph.Tasks))
	}
	p := newComparison(predicted, measured)
	return render(path, pageWidth, p.height(), p.draw)
}

// comparison is the contents of one page.
type comparison struct {
	face                typeface
	title, summary      string
	predicted, measured *chart
	legend              []legendGroup
	kernels             []kernelPair
	table               *opTable
	legendTall          vg.Length
	predictedTall       vg.Length
	measuredTall        vg.Length
}

// Sizes of the page, in points.
const (
	chartCaption = 18
	scatterSize  = 300
	scatterTop   = 40
)

func newComparison(predicted, measured *Run) *comparison {
	face := newTypeface()
	// One colouring, so that a layer looks the same above and below.
	colours := newColouring(measured)
	c := &comparison{face: face, title: measured.name() + ": predicted and measured",
		predicted: newChart(predicted, colours), measured: newChart(measured, colours),
		kernels: pairKernels(predicted, measured), table: &opTable{opTotals(predicted, measured), predicted.Schedule.Steps, measured.Schedule.Steps}}
	c.summary = comparedTimes(predicted, measured)
	used := c.predicted.used()
	for i, u := range c.measured.used() {
		used[i] = used[i] || u
	}
	c.legend = colours.legend(used)
	c.legendTall = legendHeight(face, c.legend, pageWidth-2*pageMargin)
	c.predictedTall, c.measuredTall = c.predicted.height(260), c.measured.height(260)
	return c
}

// comparedTimes is the line under the title: the time of the steps if both runs have as many of
// them, else of a steady step.
func comparedTimes(predicted, measured *Run) string {
	what, p, m := plural(measured.Schedule.Steps, "step"), predicted.Schedule.Makespan, measured.Schedule.Makespan
	if predicted.Schedule.Steps != measured.Schedule.Steps {
		what, p, m = "a steady step", steadyStep(predicted), steadyStep(measured)
	}
	text := fmt.Sprintf("%s: predicted %s, measured %s", what, formatDuration(p), formatDuration(m))
	if m > 0 {
		text += fmt.Sprintf(", error %+.1f %%", 100*(float64(p)/float64(m)-1))
	}
	if measured.Part != "" {
		text += "; measured are " + measured.Part
	}
	return text
}

// steadyStep is the time from step to step, or the mean of a run too short for one.
func steadyStep(r *Run) time.Duration {
	if r.Schedule.Period > 0 {
		return r.Schedule.Period
	}
	return r.Schedule.Makespan / time.Duration(max(1, r.Schedule.Steps))
}

func (p *comparison) height() vg.Length {
	charts := 2*(chartCaption+stepStrip) + p.predictedTall + p.measuredTall + 8
	return headerHeight + charts + axisBottom + p.legendTall + scatterTop + scatterSize + axisBottom + pageMargin
}

func (p *comparison) draw(c draw.Canvas) {
	below := drawHeader(c, p.face, p.title, p.summary)
	end := max(p.predicted.end, p.measured.end)
	labels := max(p.predicted.labelWidth(p.face), p.measured.labelWidth(p.face))
	top := below.Max.Y
	var f *frame
	for _, half := range []struct {
		name  string
		chart *chart
		tall  vg.Length
	}{{"predicted", p.predicted, p.predictedTall}, {"measured", p.measured, p.measuredTall}} {
		f = half.chart.frame(below, p.face, labels, end)
		f.c.FillText(p.face.style(10.5, ink, text.XLeft, text.YTop), vg.Point{X: f.box.Min.X, Y: top}, half.name+": "+formatDuration(half.chart.makespan))
		f.box.Max.Y = top - chartCaption - stepStrip
		f.box.Min.Y = f.box.Max.Y - half.tall
		half.chart.draw(f)
		p.drawEnd(f, half.chart.makespan, end)
		top = f.box.Min.Y - 8
	}
	f.drawX(true)
	top = f.box.Min.Y - axisBottom
	drawLegend(c, p.face, p.legend, pageMargin, pageWidth-pageMargin, top)
	top -= p.legendTall + scatterTop
	box := vg.Rectangle{Min: vg.Point{X: 80, Y: top - scatterSize}, Max: vg.Point{X: 80 + scatterSize, Y: top}}
	drawScatter(&frame{c: below, face: p.face, box: box}, p.kernels, p.table)
}

// drawEnd marks the end of the shorter chart, since its axis goes on.
func (p *comparison) drawEnd(f *frame, own, end time.Duration) {
	if own < end {
		x := f.X(float64(own))
		line(f.c, faintInk, 0.8, vg.Point{X: x, Y: f.box.Min.Y}, vg.Point{X: x, Y: f.box.Max.Y})
	}
}
