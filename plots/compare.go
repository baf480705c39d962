package plots

import (
	"fmt"
	"io"
	"time"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Compare draws a predicted and a measured run of one graph: two Gantt charts on one time axis, of
// measured.Show, and of the same steps of the prediction where it has as many.
// Below them are each kernel's measured median over its predicted one, and the time of each
// operation in a step.
func Compare(w io.Writer, format string, predicted, measured *Run) error {
	if predicted == nil {
		return fmt.Errorf("compare: there is no prediction to compare with: %w", ErrNoData)
	}
	if err := measured.check("compare"); err != nil {
		return err
	}
	predicted = predicted.showing(measured)
	if err := predicted.check("compare"); err != nil {
		return err
	}
	if predicted.Problem.Graph != measured.Problem.Graph && len(predicted.Problem.Graph.Tasks) != len(measured.Problem.Graph.Tasks) {
		return fmt.Errorf("compare: the runs are of different graphs (%d and %d tasks)", len(predicted.Problem.Graph.Tasks), len(measured.Problem.Graph.Tasks))
	}
	face := newTypeface()
	s := newGanttStack([]string{"predicted", "measured"}, predicted, measured)
	kernels := pairKernels(s.charts[0], s.charts[1])
	table := &opTable{opTotals(s.charts[0], s.charts[1]), predicted.Schedule.Steps, measured.Schedule.Steps}
	height := headerHeight + s.height(face) + scatterTop + scatterSize + axisBottom + pageMargin
	return render(w, format, pageWidth, height, func(c draw.Canvas) {
		below := drawHeader(c, face, measured.name()+": predicted and measured", comparedTimes(predicted, measured))
		top := s.draw(c, below, face) - scatterTop
		box := vg.Rectangle{Min: vg.Point{X: 80, Y: top - scatterSize}, Max: vg.Point{X: 80 + scatterSize, Y: top}}
		drawScatter(&frame{c: below, face: face, box: box}, kernels, s.charts[1].colours.fills, table)
	})
}

// Sizes of the page, in points.
const (
	scatterSize = 300
	scatterTop  = 40
)

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
