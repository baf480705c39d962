package experiment

import (
	"math"
	"slices"
	"strings"
	"testing"
)

// chartNames lists the pictures of a table.
func chartNames(t *Table) (all []string) {
	for _, c := range t.Charts() {
		all = append(all, c.Name)
	}
	return all
}

// What fits a number and a choice of networks: curves over the number, and a front of each network.
func TestCharts(t *testing.T) {
	table := tinyTable(t)
	if got, want := chartNames(table), []string{"curves-images_per_s-batch-model", "front,model=mlp", "front,model=lenet5"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	c := table.Charts()[0]
	if len(c.Series) != 2 || c.Series[1].Name != "lenet5" || len(c.Series[1].Points) != 2 || c.Runs != [2]int{3, 4} {
		t.Fatalf("%+v", c)
	}
	// Rates of 1000, 1000/1.1, 1000/1.2, 1000/1.3: the two in the middle are 909.1 and 833.3.
	if p := c.Series[1].Points[0]; p.X != 1 || math.Abs(p.Y-(1000/1.1+1000/1.2)/2) > 1e-9 || p.High != 1000 {
		t.Errorf("%+v", p)
	}
}

// Twice the batch takes twice the step: half as fast, whichever way it is said. Where times are related, the
// greatest of them is the least.
func TestSpeedup(t *testing.T) {
	table := tinyTable(t)
	for _, y := range []Column{Rate, StepTime} {
		table.File.Figures = []Figure{{Speedup, "batch", "model", y}}
		p := table.Charts()[0].Series[1].Points[1]
		if math.Abs(p.Y-0.5) > 1e-9 || !(p.Low < p.Y && p.Y < p.High) {
			t.Errorf("%s: %+v", y, p)
		}
	}
}

// Curves of executed steps stand beside what was predicted of them: half of it.
func TestPredictedCurves(t *testing.T) {
	table := tinyTable(t)
	table.File.Figures = []Figure{{Curves, "batch", "model", StepTime}}
	s := table.Charts()[0].Series
	if len(s) != 4 || s[1].Name != "mlp predicted" || !s[1].Predicted || math.Abs(s[1].Points[0].Y/s[0].Points[0].Y-0.5) > 1e-9 {
		t.Errorf("%+v", s)
	}
}

// A figure has a picture for each value of the axes that it does not have.
func TestParts(t *testing.T) {
	table := tinyTable(t)
	table.File.Figures = []Figure{{Bars, "batch", "", JoulesPerSample}}
	if got, want := chartNames(table), []string{"bars-joules_per_image-batch,model=mlp", "bars-joules_per_image-batch,model=lenet5"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// A row that failed or has no value leaves no point, and a picture without points is left out.
func TestNoPoints(t *testing.T) {
	table := tinyTable(t)
	table.File.Figures = []Figure{{Bars, "batch", "model", Accuracy}}
	if got := chartNames(table); got != nil {
		t.Errorf("%q", got)
	}
	for i := range table.Rows {
		table.Rows[i].Status = Failed
	}
	table.File.Figures = nil
	if got := chartNames(table); got != nil {
		t.Errorf("%q", got)
	}
}

// What is suggested fits the axes: speed-ups over workers, a map over two numbers, bars where there is no
// number, a front where there are joules.
func TestSuggested(t *testing.T) {
	for axes, want := range map[string][]string{
		"workers = [1, 2]":                                                              {"speedup workers", "front"},
		"workers = [1, 2]\nbatch = [4, 5]":                                              {"speedup workers", "curves batch", "heat workers batch", "front"},
		"policy = [\"heft\", \"dmda\"]":                                                 {"bars policy", "bars policy", "front"},
		"model = [\"mlp\", \"lenet5\"]\npolicy = [\"heft\", \"dmda\"]":                  {"bars model policy", "bars model policy", "front"},
		"devices = [\"cpu\", \"gpu\"]\npolicy = [\"a\", \"b\"]\nmodel = [\"x\", \"y\"]": {"bars devices policy", "bars devices policy", "front"},
		"model = [\"mlp\", \"lenet5\"]":                                                 {"bars model", "bars model", "front"},
		"seed = [1, 2]":                                                                 nil,
		"policy = [\"heft\"]":                                                           nil,
	} {
		f := parse(t, "name = \"n\"\n[run]\ncommand = \"execute\"\n[grid]\n"+axes, false)
		var got []string
		for _, s := range f.Suggested(true) {
			got = append(got, strings.TrimSpace(string(s.Kind)+" "+strings.TrimSpace(s.X+" "+s.By)))
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", axes, got, want)
		}
	}
}
