package plots

import (
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
func Compare(w io.Writer, format string, in Input) error {
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
	face := newTypeface()
	s := newGanttStack([]string{"predicted", "measured"}, predicted, measured)
	kernels := pairKernels(s.charts[0], s.charts[1])
	table := &opTable{in.Compared, measured.Schedule.Steps}
	height := headerHeight + s.height(face) + scatterTop + scatterSize + axisBottom + pageMargin
	return render(w, format, pageWidth, height, func(c draw.Canvas) {
		below := drawHeader(c, face, measured.name()+": predicted and measured", in.Compared.Text)
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
