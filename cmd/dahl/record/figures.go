package record

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"

	"dahl/cmd/cli"
	"dahl/naming"
	"dahl/plan/problem"
	"dahl/plots"
	"dahl/rundir"
	"dahl/train"
)

// FrontOf is the figure of the plans that a search on a machine has simulated.
func (s *Summary) FrontOf(points []plots.FrontPoint, machine string) *plots.Front {
	o := s.ObjectiveSummary
	of := &plots.Front{Title: fmt.Sprintf("%s on %s: time and energy of %s plans", cmp.Or(s.Network, s.Graph), machine, naming.Thousands(len(points))),
		Points: points, Of: plots.FrontBound(o.Objective), BoundOf: o.LowerBoundOf, Deadline: o.DeadlineS, Bound: s.LowerBoundS}
	switch problem.Objective(o.Objective) {
	case problem.Energy:
		of.Bound = *cmp.Or(o.LowerBoundJ, new(float64))
	case problem.EDP:
		of.Bound = *cmp.Or(o.LowerBoundJS, new(float64))
	}
	on := 0
	for i := range points {
		if points[i].Front {
			on++
		}
	}
	of.Summary = fmt.Sprintf("%d that no other beats in both", on)
	if i := slices.IndexFunc(points, func(p plots.FrontPoint) bool { return p.Chosen }); i >= 0 {
		p := &points[i]
		of.Summary += fmt.Sprintf("; chosen by %s: %s, %s, %s", o.Objective, p.Label, cli.ShowTime(p.Seconds), cli.ShortJoules(p.Joules))
	}
	return of
}

// Front reads the points of the front of a run. None means that no search has written them.
func (r *LoadedRun) Front() ([]plots.FrontPoint, error) {
	if !r.Manifest.Lists(FrontFile) {
		return nil, nil
	}
	return rundir.ReadAs(filepath.Join(r.Path, FrontFile), ReadFront)
}

// Figures reads the data of the figures that need more than a schedule: the front of a search, and the confusion matrix of
// an evaluation.
func (r *LoadedRun) Figures(in *plots.Input) error {
	points, err := r.Front()
	if err != nil {
		return err
	}
	if points != nil && r.Summary.ObjectiveSummary != nil {
		in.Front = r.Summary.FrontOf(points, r.Manifest.Platform.Name)
	}
	if !r.Manifest.Lists(PredictionsFile) || r.Summary.TestAccuracy == nil || r.Summary.TestLoss == nil || r.Manifest.Data == nil {
		return nil
	}
	said, err := rundir.ReadAs(filepath.Join(r.Path, PredictionsFile), ReadPredictions)
	if err != nil {
		return err
	}
	classes := int32(0)
	for _, p := range said {
		classes = max(classes, p.Label+1, p.Predicted+1)
	}
	if classes <= MostClassesDrawn {
		in.Confusion = r.Summary.Confusion(fmt.Sprintf("%s on %s", r.Manifest.Model, r.Manifest.Data.Name), Counted(int(classes), said))
	}
	return nil
}

// MostClassesDrawn bounds the confusion matrix that is drawn.
const MostClassesDrawn = 40

// Confusion is the figure of how often each class was predicted for each label, the first label on top.
func (s *Summary) Confusion(title string, counts [][]int) *plots.Values {
	v := &plots.Values{Title: title, XLabel: "predicted class", YLabel: "label", Quantity: plots.Quantity{Name: "samples", More: true}, Counts: true,
		Summary: fmt.Sprintf("accuracy %.2f %%, loss %.4g", 100**s.TestAccuracy, float64(*s.TestLoss))}
	for class := range counts {
		v.Labels = append(v.Labels, strconv.Itoa(class))
	}
	for label, row := range slices.Backward(counts) {
		series := plots.Series{Name: strconv.Itoa(label)}
		for predicted, n := range row {
			series.Points = append(series.Points, plots.Point{Label: strconv.Itoa(predicted), Y: float64(n), Low: float64(n), High: float64(n)})
		}
		v.Series = append(v.Series, series)
	}
	return v
}

// Counted is how often each of some classes was predicted for each label: labels are rows. Labels of -1 do not count.
func Counted(classes int, said []train.Prediction) [][]int {
	counts := make([][]int, classes)
	for i := range counts {
		counts[i] = make([]int, classes)
	}
	for _, p := range said {
		if p.Label >= 0 {
			counts[p.Label][p.Predicted]++
		}
	}
	return counts
}
