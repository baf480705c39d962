package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"dahl/cmd/cli"
	"dahl/cmd/dahl/flags"
	"dahl/plots"
	"dahl/schedule/explain"
)

// runsComparison is several runs beside each other: the inputs in which they differ, then their results.
type runsComparison struct {
	Runs    []string   `json:"runs"`
	Differ  []inputRow `json:"inputs"`
	Figures []figure   `json:"figures"`
}

// inputRow is an input, and what it is in each run; "": the run has none.
type inputRow struct {
	Name   string   `json:"name"`
	Values []string `json:"values"`
}

// figure is something that runs gave; a number is nil where a run has none.
type figure struct {
	Name   string     `json:"name"`
	Unit   string     `json:"unit,omitempty"`
	Values []*float64 `json:"values"`

	show func(float64) string
}

// compareAny lays runs beside each other, which may be of different graphs and machines.
func compareAny(stdout io.Writer, dirs []string, runs []*loadedRun, out *flags.Output) error {
	if err := drawPicture(out, func(w io.Writer) error { return drawStack(w, dirs, runs) }); err != nil {
		return err
	}
	c := &runsComparison{Runs: dirs, Differ: differingInputs(runs), Figures: figuresOf(runs)}
	if out.JSON {
		return cli.PrintJSON(stdout, c)
	}
	return c.print(stdout)
}

func drawStack(w io.Writer, names []string, runs []*loadedRun) error {
	var all []*plots.Run
	for _, r := range runs {
		p, err := newPlotRun(r.Problem, r.Schedule, r.summary)
		if err != nil {
			return err
		}
		all = append(all, p)
	}
	return plots.Stack(w, "svg", names, all...)
}

// inputs are what the run was given, by the names of the manifest in JSON. Results are left out.
func (m *manifest) inputs() map[string]string {
	given := struct {
		Command  string        `json:"command"`
		Options  flags.Options `json:"options"`
		Platform cli.Identity  `json:"platform"`
		Lowering any           `json:"lowering"`
		Chosen   string        `json:"chosen_devices,omitempty"`
		Inputs   []string      `json:"inputs"`
		Data     *cli.Identity `json:"data"`
		Build    cli.Build     `json:"build"`
		Host     cli.Host      `json:"host"`
	}{Command: m.Command, Options: m.Options, Platform: m.Platform, Lowering: m.Lowering, Data: m.Data, Build: m.Build, Host: m.Host}
	if m.Chosen != nil {
		given.Chosen = m.Chosen.Devices
	}
	for _, in := range m.Inputs {
		given.Inputs = append(given.Inputs, in.SHA256)
	}
	text, err := json.Marshal(given)
	cli.Must(err)
	var tree any
	cli.Must(json.Unmarshal(text, &tree))
	leaves := map[string]string{}
	addLeaves(leaves, "", tree)
	return leaves
}

// addLeaves flattens a JSON value: its numbers and texts by the names on the way to them.
func addLeaves(leaves map[string]string, path string, v any) {
	switch v := v.(type) {
	case map[string]any:
		for name, of := range v {
			addLeaves(leaves, strings.TrimPrefix(path+"."+name, "."), of)
		}
	case []any:
		for i, of := range v {
			addLeaves(leaves, fmt.Sprintf("%s[%d]", path, i), of)
		}
	case nil:
	default:
		leaves[path] = fmt.Sprint(v)
	}
}

// differingInputs lists the inputs that are not the same in all runs: the options first, by name, and tiles last. The hash of
// an input is left out where its name differs already.
func differingInputs(runs []*loadedRun) []inputRow {
	var all []map[string]string
	names := map[string]bool{}
	for _, r := range runs {
		in := r.manifest.inputs()
		in["source of joules"] = r.summary.EnergyJ.Grounds
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
func figuresOf(runs []*loadedRun) []figure {
	var all []figure
	add := func(name, unit string, show func(float64) string, of func(s *summary) (v float64, has bool)) {
		f, any := figure{Name: name, Unit: unit, show: show}, false
		for _, r := range runs {
			if v, has := of(r.summary); has {
				f.Values, any = append(f.Values, &v), true
			} else {
				f.Values = append(f.Values, nil)
			}
		}
		if any {
			all = append(all, f)
		}
	}
	always := func(of func(s *summary) float64) func(*summary) (float64, bool) {
		return func(s *summary) (float64, bool) { return of(s), true }
	}

	size := func(v float64) string { return cli.ShortBytes(int64(v)) }

	add("step", "s", cli.ShowTime, always(func(s *summary) float64 { return s.StepS }))
	add("images per second", "1/s", cli.WholeNumber, func(s *summary) (float64, bool) { return deref(s.ImagesPerS) })
	add("energy per image", "J", cli.ShortJoules, func(s *summary) (float64, bool) { return s.EnergyJ.PerImage, s.EnergyJ.PerImage > 0 })
	add("steps", "", cli.WholeNumber, always(func(s *summary) float64 { return float64(s.Steps) }))
	add("run", "s", cli.ShowTime, always(func(s *summary) float64 { return s.MakespanS }))
	add("energy of the run, modelled", "J", cli.ShortJoules, func(s *summary) (float64, bool) { return s.EnergyJ.Total, s.EnergyJ.Total > 0 })
	add("tasks", "", cli.WholeNumber, always(func(s *summary) float64 { return float64(s.Tasks) }))
	add("moved", "bytes", size, always(func(s *summary) float64 { return float64(s.BytesMoved) }))
	for _, memory := range memoriesOf(runs) {
		add("live peak "+memory, "bytes", size, func(s *summary) (float64, bool) { b, has := s.LivePeakBytes[memory]; return float64(b), has })
	}
	for cause := range explain.NumIdleCauses {
		add("idle per step: "+cause.String(), "s", cli.ShowTime, func(s *summary) (float64, bool) {
			if s.Waits == nil {
				return 0, false
			}
			v := s.Waits.PerStepS[cause.String()]
			return v, v > 0
		})
	}
	add("training loss", "", cli.ThreeDigits, func(s *summary) (float64, bool) { return deref((*float64)(s.TrainingLoss)) })
	add("test accuracy", "", cli.ShowShare, func(s *summary) (float64, bool) { return deref(s.TestAccuracy) })
	return all
}

func deref(v *float64) (float64, bool) {
	if v == nil {
		return 0, false
	}
	return *v, true
}

func memoriesOf(runs []*loadedRun) []string {
	names := map[string]bool{}
	for _, r := range runs {
		for name := range r.summary.LivePeakBytes {
			names[name] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// maxInputRows bounds the inputs that are printed; --json has all.
const maxInputRows = 16

// print writes a column for each run. Behind a figure stands its ratio to that of the first run.
func (c *runsComparison) print(out io.Writer) error {
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
