package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"dahl/cmd/dahl/record"
	"dahl/naming"
	"dahl/nn"
	"dahl/plots"
	"dahl/train"
)

// confusion counts how often each class was predicted for each label: labels are rows.
type confusion [][]int

const (
	// mostClassesDrawn and mostClassesPrinted bound a picture and a table that can be read.
	mostClassesDrawn, mostClassesPrinted = 40, 16
	// mostMistakes is how many of the most frequent mistakes are named for more classes.
	mostMistakes = 10
)

func newConfusion(m *nn.Model, said []train.Prediction) confusion {
	c := make(confusion, m.Classes())
	for i := range c {
		c[i] = make([]int, m.Classes())
	}
	for _, p := range said {
		if p.Label >= 0 {
			c[p.Label][p.Predicted]++
		}
	}
	return c
}

// print writes the table, or the most frequent mistakes of many classes.
func (c confusion) print(out io.Writer) {
	if len(c) > mostClassesPrinted {
		c.printMistakes(out)
		return
	}
	wide := 1
	for _, row := range c {
		wide = max(wide, len(fmt.Sprint(slices.Max(row))))
	}
	wide = max(wide, len(fmt.Sprint(len(c)-1)))
	line := func(head string, cells []int) {
		fmt.Fprint(out, head)
		for _, n := range cells {
			fmt.Fprintf(out, " %*d", wide, n)
		}
		fmt.Fprintln(out)
	}
	classes := make([]int, len(c))
	for i := range classes {
		classes[i] = i
	}
	line("predicted   ", classes)
	for label, row := range c {
		head := strings.Repeat(" ", 6)
		if label == 0 {
			head = "label "
		}
		line(fmt.Sprintf("%s%5d ", head, label), row)
	}
}

func (c confusion) printMistakes(out io.Writer) {
	type mistake struct{ label, predicted, times int }
	var all []mistake
	for label, row := range c {
		for predicted, times := range row {
			if label != predicted && times > 0 {
				all = append(all, mistake{label, predicted, times})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b mistake) int { return cmp.Compare(b.times, a.times) })
	for _, m := range all[:min(len(all), mostMistakes)] {
		fmt.Fprintf(out, "mistaken  label %d for %d: %s\n", m.label, m.predicted, naming.Count(m.times, "time"))
	}
}

// draw draws the matrix as an SVG, the first label on top.
func (c confusion) draw(out io.Writer, w *workload, s *record.Summary) error {
	v := plots.Values{Title: fmt.Sprintf("%s on %s", w.Model.Name, w.Data.Test.Name), XLabel: "predicted class", YLabel: "label",
		Summary: fmt.Sprintf("accuracy %.2f %%, loss %.4g", 100**s.TestAccuracy, float64(*s.TestLoss)), Quantity: plots.Quantity{Name: "samples", More: true}, Counts: true}
	for class := range c {
		v.Labels = append(v.Labels, fmt.Sprint(class))
	}
	for label := len(c) - 1; label >= 0; label-- {
		row := plots.Series{Name: fmt.Sprint(label)}
		for predicted, n := range c[label] {
			row.Points = append(row.Points, plots.Point{Label: fmt.Sprint(predicted), Y: float64(n), Low: float64(n), High: float64(n)})
		}
		v.Series = append(v.Series, row)
	}
	return plots.DrawHeat(out, "svg", &v)
}
