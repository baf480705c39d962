package plots

import (
	"fmt"
	"io"
	"time"

	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Compare draws a predicted and a measured run of one graph: two Gantt charts on one time axis.
// Below them are each kernel's measured median over its predicted one, and the time of each
// operation in a step.
func Compare(w io.Writer, format string, predicted, measured *Run) error {
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
	face := newTypeface()
	colours := newColouring(measured) // one, so that a layer looks the same above and below
	halves := [2]half{newHalf("predicted", predicted, colours), newHalf("measured", measured, colours)}
	used := halves[0].chart.used()
	for i, u := range halves[1].chart.used() {
		used[i] = used[i] || u
	}
	legend := colours.legend(used)
	legendTall := legendHeight(face, legend, pageWidth-2*pageMargin)
	kernels := pairKernels(predicted, measured)
	table := &opTable{opTotals(predicted, measured), predicted.Schedule.Steps, measured.Schedule.Steps}
	charts := 2*(chartCaption+stepStrip) + halves[0].tall + halves[1].tall + 8
	height := headerHeight + charts + axisBottom + legendTall + scatterTop + scatterSize + axisBottom + pageMargin
	return render(w, format, pageWidth, height, func(c draw.Canvas) {
		below := drawHeader(c, face, measured.name()+": predicted and measured", comparedTimes(predicted, measured))
		top := drawHalves(below, face, halves)
		drawLegend(c, face, legend, pageMargin, pageWidth-pageMargin, top)
		top -= legendTall + scatterTop
		box := vg.Rectangle{Min: vg.Point{X: 80, Y: top - scatterSize}, Max: vg.Point{X: 80 + scatterSize, Y: top}}
		drawScatter(&frame{c: below, face: face, box: box}, kernels, table)
	})
}

// Sizes of the page, in points.
const (
	chartCaption = 18
	scatterSize  = 300
	scatterTop   = 40
)

// half is the chart of one of the two runs.
type half struct {
	name  string
	chart *chart
	tall  vg.Length
}

func newHalf(name string, r *Run, colours *colouring) half {
	ch := newChart(r, colours)
	return half{name, ch, ch.height(260)}
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

// drawHalves paints the charts over each other and returns the height below their axis.
func drawHalves(c draw.Canvas, face typeface, halves [2]half) (top vg.Length) {
	end := max(halves[0].chart.end, halves[1].chart.end)
	f := timeFrame(c, face, pageMargin+max(halves[0].chart.labelWidth(face), halves[1].chart.labelWidth(face)), end)
	top = c.Max.Y
	for _, h := range halves {
		f.c.FillText(face.style(10.5, ink, text.XLeft, text.YTop), vg.Point{X: f.box.Min.X, Y: top}, h.name+": "+formatDuration(h.chart.run.Schedule.Makespan))
		f.place(top-chartCaption-stepStrip, h.tall)
		h.chart.draw(f)
		if own := h.chart.run.Schedule.Makespan; own < end { // the axis goes on beyond the shorter run
			x := f.X(float64(own))
			line(f.c, faintInk, 0.8, vg.Point{X: x, Y: f.box.Min.Y}, vg.Point{X: x, Y: f.box.Max.Y})
		}
		top = f.box.Min.Y - 8
	}
	f.drawX(true)
	return f.box.Min.Y - axisBottom
}
