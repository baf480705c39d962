package runs

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"dahl/cmd/cli"
	"dahl/cmd/dahl/flags"
	"dahl/cmd/dahl/record"
	"dahl/plots"
	"dahl/schedule/explain"
)

// RunsComparison is a comparison of several runs: the inputs in which they differ, then their results.
type RunsComparison struct {
	Runs    []string   `json:"runs"`
	Differ  []inputRow `json:"inputs"`
	Figures []Figure   `json:"figures"`
}

// inputRow is an input, and what it is in each run; empty means none.
type inputRow struct {
	Name   string   `json:"name"`
	Values []string `json:"values"`
}

// Figure is something that runs gave; a number is nil where a run has none.
type Figure struct {
	Name   string     `json:"name"`
	Unit   string     `json:"unit,omitempty"`
	Values []*float64 `json:"values"`

	show func(float64) string
}

// compareAny compares runs of any graphs and machines.
func compareAny(stdout io.Writer, dirs []string, runs []*record.LoadedRun, out *flags.Output) error {
	if err := drawPicture(out, func(w io.Writer) error { return drawStack(w, dirs, runs) }); err != nil {
		return err
	}
	c := &RunsComparison{Runs: dirs, Differ: differingInputs(runs), Figures: figuresOf(runs)}
	if out.JSON {
		return cli.PrintJSON(stdout, c)
	}
	if err := c.print(stdout); err != nil {
		return err
	}
	if len(runs) == 2 && runs[0].Summary.Trained != nil && runs[1].Summary.Trained != nil && runs[0].Summary.Trained.WeightsSHA256 != runs[1].Summary.Trained.WeightsSHA256 {
		fmt.Fprintf(stdout, "the weights differ; number by number: dahl compare %s %s\n", filepath.Join(dirs[0], record.WeightsFile), filepath.Join(dirs[1], record.WeightsFile))
	}
	return nil
}

func drawStack(w io.Writer, names []string, runs []*record.LoadedRun) error {
	var all []*plots.Run
	for _, r := range runs {
		p, err := record.NewPlotRun(r.Problem, r.Schedule, r.Summary)
		if err != nil {
			return err
		}
		all = append(all, p)
	}
	return plots.Stack(w, record.Screen, names, all...)
}

// differingInputs lists the inputs that are not the same in all runs: the options first, by name, and tiles last. The hash of
// an input is left out where its name differs already.
func differingInputs(runs []*record.LoadedRun) []inputRow {
	var all []map[string]string
	names := map[string]bool{}
	for _, r := range runs {
		in := r.Manifest.Given()
		in["source of joules"] = r.Summary.EnergyJ.Grounds
		all = append(all, in)
		for name := range in {
			names[name] = true
		}
	}
	const options, hash = "options.", ".sha256"
	rank := func(name string) int {
		switch {
		case strings.HasPrefix(name, options):
			return 0
		case strings.HasPrefix(name, "lowering."):
			return 2
		}
		return 1
	}
	var rows []inputRow
	for _, name := range slices.SortedFunc(maps.Keys(names), func(a, b string) int {
		return cmp.Or(rank(a)-rank(b), strings.Compare(a, b))
	}) {
		row := inputRow{Name: strings.TrimPrefix(name, options)}
		for _, in := range all {
			row.Values = append(row.Values, in[name])
		}
		of, isHash := strings.CutSuffix(name, hash)
		named := slices.ContainsFunc(rows, func(r inputRow) bool { return isHash && r.Name == of+".name" })
		if !named && len(slices.Compact(slices.Clone(row.Values))) > 1 {
			rows = append(rows, row)
		}
	}
	return rows
}

// figuresOf lists what any of the runs has.
func figuresOf(runs []*record.LoadedRun) []Figure {
	var all []Figure
	add := func(name, unit string, show func(float64) string, of func(s *record.Summary) (v float64, has bool)) {
		f, any := Figure{Name: name, Unit: unit, show: show}, false
		for _, r := range runs {
			if v, has := of(r.Summary); has {
				f.Values, any = append(f.Values, &v), true
			} else {
				f.Values = append(f.Values, nil)
			}
		}
		if any {
			all = append(all, f)
		}
	}
	always := func(of func(s *record.Summary) float64) func(*record.Summary) (float64, bool) {
		return func(s *record.Summary) (float64, bool) { return of(s), true }
	}

	size := func(v float64) string { return cli.ShortBytes(int64(v)) }

	add("step", "s", cli.ShowTime, always(func(s *record.Summary) float64 { return s.StepS }))
	add("samples per second", "1/s", cli.WholeNumber, func(s *record.Summary) (float64, bool) { return deref(s.SamplesPerS) })
	add("energy per sample", "J", cli.ShortJoules, func(s *record.Summary) (float64, bool) { return s.EnergyJ.PerSample, s.EnergyJ.PerSample > 0 })
	add("steps", "", cli.WholeNumber, always(func(s *record.Summary) float64 { return float64(s.Steps) }))
	add("run", "s", cli.ShowTime, always(func(s *record.Summary) float64 { return s.MakespanS }))
	add("energy of the run, modelled", "J", cli.ShortJoules, func(s *record.Summary) (float64, bool) { return s.EnergyJ.Total, s.EnergyJ.Total > 0 })
	add("tasks", "", cli.WholeNumber, always(func(s *record.Summary) float64 { return float64(s.Tasks) }))
	add("moved", "bytes", size, always(func(s *record.Summary) float64 { return float64(s.BytesMoved) }))
	for _, memory := range memoriesOf(runs) {
		add("live peak "+memory, "bytes", size, func(s *record.Summary) (float64, bool) { b, has := s.LivePeakBytes[memory]; return float64(b), has })
	}
	for cause := range explain.NumIdleCauses {
		add("idle per step: "+cause.String(), "s", cli.ShowTime, func(s *record.Summary) (float64, bool) {
			if s.Waits == nil {
				return 0, false
			}
			v := s.Waits.PerStepS[cause.String()]
			return v, v > 0
		})
	}
	add("training loss", "", cli.ThreeDigits, func(s *record.Summary) (float64, bool) { return deref((*float64)(s.TrainingLoss)) })
	add("test accuracy", "", cli.ShowShare, func(s *record.Summary) (float64, bool) { return deref(s.TestAccuracy) })
	return all
}

func deref(v *float64) (float64, bool) {
	if v == nil {
		return 0, false
	}
	return *v, true
}

func memoriesOf(runs []*record.LoadedRun) []string {
	names := map[string]bool{}
	for _, r := range runs {
		for name := range r.Summary.LivePeakBytes {
			names[name] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// maxInputRows bounds the inputs that are printed; --json has all.
const maxInputRows = 16

// print writes a column for each run. A figure is followed by its ratio to the first run's.
func (c *RunsComparison) print(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	row := func(cells ...string) { fmt.Fprintln(w, strings.Join(cells, "\t")) }
	row(append([]string{""}, c.Runs...)...)
	for _, in := range c.Differ[:min(len(c.Differ), maxInputRows)] {
		cells := []string{in.Name}
		for _, v := range in.Values {
			cells = append(cells, cmp.Or(cli.Cut(v, maxInputWidth), "-"))
		}
		row(cells...)
	}
	if more := len(c.Differ) - maxInputRows; more > 0 {
		row(fmt.Sprintf("and %d more", more))
	}
	if len(c.Differ) == 0 {
		row("equal inputs")
	}
	row()
	for _, f := range c.Figures {
		cells := []string{f.Name}
		for i, v := range f.Values {
			text := "-"
			if v != nil {
				text = f.show(*v)
			}
			if first := f.Values[0]; i > 0 && v != nil && first != nil && *first != 0 {
				text += fmt.Sprintf(" (×%.3g)", *v / *first)
			}
			cells = append(cells, text)
		}
		row(cells...)
	}
	return w.Flush()
}

// maxInputWidth is how much of an input is printed.
const maxInputWidth = 24
