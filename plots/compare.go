package plots

import (
	"dahl/plots/paper"
	"fmt"
	"io"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Compared has the words and numbers of a comparison of two runs. The picture shows these and computes none.
type Compared struct {
	Text       string      // under the title
	Operations []Operation // and copies on their ways, in the order in which they are listed
	Kernels    Operation   // all of them
}

// Operation is the calls of an operation in a step, or copies, and the seconds that they take together.
type Operation struct {
	Name                         string
	Calls, PredictedS, MeasuredS float64
}

// Add adds calls of the operation.
func (o *Operation) Add(calls, predictedS, measuredS float64) {
	o.Calls, o.PredictedS, o.MeasuredS = o.Calls+calls, o.PredictedS+predictedS, o.MeasuredS+measuredS
}

// Compare draws a predicted and a measured run of one graph: two Gantt charts on one time axis, of
// Run.Show, and of the same steps of the prediction where it has as many.
// Below them are each kernel's measured median over its predicted one, and the time of each
// operation in a step.
func Compare(w io.Writer, p paper.Page, in Input) error {
	predicted, measured := in.Predicted, in.Run
	if predicted == nil || in.Compared == nil {
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
	l, err := p.Layout(measured.name()+": predicted and measured", in.Compared.Text)
	if err != nil {
		return err
	}
	table, size := &opTable{in.Compared, measured.Schedule.Steps, l.Face, l.Wide - scatterLeft - scatterSize - 44 - paper.Margin}, vg.Length(scatterSize)
	below := scatterTop + size + paper.AxisBottom + paper.Margin
	beside := table.width >= leastTable // else the table is below the scatter
	if !beside {
		table.width, size = l.Inner(), min(size, l.Wide-scatterLeft-2*paper.Margin)
		below = scatterTop + size + paper.AxisBottom + paper.Margin + scatterTop + table.height()
	}
	s, err := newGanttStack(l, below, []string{"predicted", "measured"}, predicted, measured)
	if err != nil {
		return err
	}
	kernels := pairKernels(s.charts[0], s.charts[1])
	return l.Render(w, s.height()+below, func(page, c draw.Canvas) {
		top := s.draw(page, c) - scatterTop
		f := &paper.Frame{Canvas: c, Face: l.Face, Box: vg.Rectangle{Min: vg.Point{X: scatterLeft, Y: top - size}, Max: vg.Point{X: scatterLeft + size, Y: top}}}
		drawScatter(f, kernels, s.charts[1].colours.fills)
		at := vg.Point{X: f.Box.Max.X + 44, Y: top}
		if !beside {
			at = vg.Point{X: paper.Margin, Y: f.Box.Min.Y - paper.AxisBottom - scatterTop}
		}
		table.draw(c, at)
	})
}

// Sizes of the page, in points.
const (
	scatterSize = 300
	scatterTop  = 40
	scatterLeft = 80
	leastTable  = 480 // the width of a table of operations to the right of the scatter
)
