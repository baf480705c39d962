package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"dahl/cmd/cli"
	"dahl/nn"
	"dahl/plan"
	"dahl/plan/best"
	"dahl/plan/exact"
	"dahl/plan/space"
	"dahl/platform"
	"dahl/rundir"
	"dahl/rundir/durable"
	"dahl/rundir/tables"
	"dahl/schedule"
)

// whatIfFile is the table of a comparison of machines.
const whatIfFile = "what-if.csv"

const whatIfHelp = `With --what-if it plans for several machines, files or names of those that ship with dahl,
and prints a row for each: what it would train on, what a step takes, how far that may be
from the least, and all that relative to the first row, which is --platform where that is
given. For a machine with processors and other devices, which dahl calls gpu in lists, it
looks for the least time and the fewest joules of either kind alone and of both together,
and says whether they are better together. --budget is for each search. Nothing is
written but what-if.csv into --out, where that is given.`

// addWhatIfFlag adds the flag that compares machines.
func addWhatIfFlag(cmd *cobra.Command, o *options) {
	f := cmd.Flags()
	f.StringArrayVar(&o.whatIf, "what-if", nil, "compare a `platform` with those that follow it, and with --platform (default objective: energy)")
	for _, other := range []string{"instances", "plan", "policy"} {
		exclude(cmd, "what-if", other)
	}
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if !f.Changed("what-if") {
			return noArgs(cmd, args)
		}
		o.whatIf = append(o.whatIf, args...)
		if o.Platform != "" {
			o.whatIf = append([]string{o.Platform}, o.whatIf...)
		}
		o.Objective = cmp.Or(o.Objective, string(exact.Energy))
		return nil
	}
}

// whatIfRow is what training on a machine takes. A machine that cannot has an Error instead.
type whatIfRow struct {
	Platform    string       `json:"platform"` // name or file
	Error       string       `json:"error,omitempty"`
	Objective   string       `json:"objective"`
	Devices     string       `json:"devices"` // those chosen; empty: all
	Tiles       string       `json:"tiles,omitempty"`
	StepS       number       `json:"step_s"`
	StepJ       number       `json:"step_j"`
	ImageJ      number       `json:"image_j"` // null where the graph is of no network
	Bound       number       `json:"lower_bound"`
	BoundOf     string       `json:"lower_bound_of,omitempty"` // the plans of which none is below
	Unit        string       `json:"unit"`                     // of the bound
	Gap         number       `json:"gap"`
	Proven      bool         `json:"proven"`
	TimeRatio   number       `json:"time_ratio"` // over that of the first row that can run
	EnergyRatio number       `json:"energy_ratio"`
	Kinds       []whatIfKind `json:"kinds,omitempty"`    // of a machine with processors and other devices
	Together    string       `json:"together,omitempty"` // whether these are better together

	err error
}

// whatIfKind is the best of the plans that use processors alone, other devices alone, or both: by time, and by joules.
type whatIfKind struct {
	Kind    string      `json:"kind"`
	Fastest *whatIfStep `json:"fastest,omitempty"` // missing where no plan was looked at
	Frugal  *whatIfStep `json:"frugal,omitempty"`
}

// whatIfStep is what a step takes on some devices.
type whatIfStep struct {
	Devices string  `json:"devices"`
	Tiles   string  `json:"tiles,omitempty"`
	StepS   float64 `json:"step_s"`
	StepJ   float64 `json:"step_j"`
}

// compareMachines plans for every machine and prints a table. Where a directory is given it is written too. When ctx ends
// the table has the machines until then.
func compareMachines(ctx context.Context, stdout io.Writer, o *options, out *output) error {
	if run, ok := rundir.Within(filepath.Join(out.dir, "any")); ok && out.dir != "" {
		return cli.InputErrorf("--out %s: %s holds a run; name another directory", out.dir, run)
	}
	for _, name := range o.whatIf {
		if _, err := cli.LoadPlatform(name); err != nil {
			return err
		}
	}
	defer cli.Saving(ctx, "the search ends, and the table has the machines so far")()
	var rows []whatIfRow
	for _, name := range o.whatIf {
		r := o.whatIfOn(ctx, name)
		if r.err != nil && ctx.Err() != nil {
			break
		}
		rows = append(rows, r)
	}
	var first *whatIfRow
	for i := range rows {
		if r := &rows[i]; r.err == nil {
			first = cmp.Or(first, r)
			r.TimeRatio, r.EnergyRatio = r.StepS/first.StepS, r.StepJ/first.StepJ
		}
	}
	switch {
	case first == nil && ctx.Err() != nil:
		return ctx.Err()
	case first == nil:
		return rows[0].err
	}
	if err := saveWhatIf(out.dir, rows); err != nil {
		return err
	}
	var err error
	if out.json {
		err = cli.PrintJSON(stdout, rows)
	} else {
		printWhatIf(stdout, rows)
	}
	if err == nil && ctx.Err() != nil {
		err = fmt.Errorf("%d of %d machines were planned for: %w", len(rows), len(o.whatIf), ctx.Err())
	}
	return err
}

// saveWhatIf writes the table into a directory; empty: nowhere.
func saveWhatIf(dir string, rows []whatIfRow) error {
	if dir == "" {
		return nil
	}
	d, err := durable.MakeDir(dir)
	if err != nil {
		return cli.AsInput(err)
	}
	defer d.Close()
	return d.Replace(whatIfFile, func(out io.Writer) error { return writeWhatIf(out, rows) })
}

// whatIfOn plans for one machine.
func (o *options) whatIfOn(ctx context.Context, name string) whatIfRow {
	one := *o
	one.Platform, one.begun = name, time.Now()
	r := whatIfRow{Platform: name, Objective: o.Objective, Unit: o.objectiveUnit()}
	for _, n := range []*number{&r.StepS, &r.StepJ, &r.ImageJ, &r.Bound, &r.Gap, &r.TimeRatio, &r.EnergyRatio} {
		*n = number(math.NaN())
	}
	if r.err = r.plan(ctx, &one); r.err != nil {
		r.Error = cli.OneLine(r.err)
	}
	return r
}

// plan fills the row.
func (r *whatIfRow) plan(ctx context.Context, o *options) error {
	w, found, err := optimized(ctx, o)
	if err != nil {
		return err
	}
	r.Devices, r.Tiles, r.StepS, r.StepJ = found.Devices, found.Tiles, number(found.Makespan.Seconds()), number(found.Joules)
	r.Bound, r.BoundOf, r.Gap, r.Proven = number(found.Bound), coveredText(found.Covered), number(found.Gap()), found.Proven
	if images := nn.BatchOf(w.Program.Graphs[0]); images > 0 {
		r.ImageJ = r.StepJ / number(images)
	}
	p, err := o.selected(w.whole)
	if err != nil || ctx.Err() != nil || kindOf(p, nil) != bothKinds {
		return err
	}
	of := exact.Energy // beside the objective, so that what is said of time and of joules was looked for
	if o.Objective == string(exact.Energy) {
		of = exact.Time
	}
	o.Objective, o.begun = string(of), time.Now()
	_, other, err := optimized(ctx, o)
	if ctx.Err() != nil {
		return nil // what it has found for the objective is the row
	}
	if err != nil {
		return err
	}
	alone, err := o.defaultsOfKinds(ctx, p)
	if err != nil {
		return err
	}
	r.Kinds, err = bestOfKinds(p, slices.Concat(found.Simulated, other.Simulated, alone), o.Deadline)
	r.Together = together(r.Kinds)
	return err
}

// defaultsOfKinds are the plans that simulate would take by default for the processors of a machine alone and for its other devices
// alone: the search for all may have looked little there.
func (o *options) defaultsOfKinds(ctx context.Context, p *platform.Platform) (tried []best.Try, err error) {
	sets := plan.DeviceSets(p, o.Devices)
	for _, set := range sets[:len(sets)-1] {
		one := *o
		one.Objective, one.Devices, one.Budget, one.BudgetTime, one.Deadline = "", set, 0, 0, 0
		w, err := simulatedWorkload(ctx, &one)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err != nil || w.search == nil {
			continue // it has no plan there
		}
		t := w.search.found.Tried[0]
		t.Devices = cmp.Or(t.Devices, set)
		tried = append(tried, t)
	}
	return tried, nil
}

// optimized is the workload of the options, and what the search for its best plan found.
func optimized(ctx context.Context, o *options) (*workload, *best.Result, error) {
	w, err := undecidedWorkload(ctx, o)
	if err != nil {
		return nil, nil, err
	}
	found, err := w.optimize(ctx)
	return w, found, err
}

// The kinds of sets of devices that are compared.
const (
	processorsOnly = platform.CPU
	othersOnly     = "gpu"
	bothKinds      = "cpu + gpu"
)

// kindOf is the kind of the devices of a machine, or of those to which a plan for it gives a task. What has to be there for
// tasks of its own does not count.
func kindOf(p *platform.Platform, plan *schedule.Plan) string {
	processors, others := false, false
	for i, w := range p.Workers {
		d := &p.Devices[w.Device]
		if d.PlacedOnly || plan != nil && (i >= len(plan.Order) || len(plan.Order[i]) == 0) {
			continue
		}
		processors, others = processors || d.IsProcessor(), others || !d.IsProcessor()
	}
	switch {
	case processors && others:
		return bothKinds
	case others:
		return othersOnly
	}
	return processorsOnly
}

// bestOfKinds finds the best of some plans on devices of a machine, those that take too long left out.
func bestOfKinds(p *platform.Platform, tried []best.Try, deadline time.Duration) ([]whatIfKind, error) {
	kinds := []whatIfKind{{Kind: processorsOnly}, {Kind: othersOnly}, {Kind: bothKinds}}
	selected := map[string]*platform.Platform{"": p}
	for _, t := range tried {
		if deadline > 0 && t.Makespan > deadline {
			continue
		}
		on, ok := selected[t.Devices]
		if !ok {
			var err error
			if on, err = p.Select(t.Devices); err != nil {
				return nil, err
			}
			selected[t.Devices] = on
		}
		kind := kindOf(on, t.Plan)
		k := &kinds[slices.IndexFunc(kinds, func(k whatIfKind) bool { return k.Kind == kind })]
		step := &whatIfStep{t.Devices, t.Tiles, t.Makespan.Seconds(), t.Joules}
		if k.Fastest == nil || step.StepS < k.Fastest.StepS {
			k.Fastest = step
		}
		if k.Frugal == nil || step.StepJ < k.Frugal.StepJ {
			k.Frugal = step
		}
	}
	return kinds, nil
}

// together says whether both kinds together are better than the better one alone, in time and in joules.
func together(kinds []whatIfKind) string {
	var parts []string
	for _, of := range []struct {
		what string
		best func(*whatIfKind) *whatIfStep
		size func(*whatIfStep) float64
		show func(float64) string
	}{
		{"time", func(k *whatIfKind) *whatIfStep { return k.Fastest }, func(s *whatIfStep) float64 { return s.StepS }, cli.ShowTime},
		{"joules", func(k *whatIfKind) *whatIfStep { return k.Frugal }, func(s *whatIfStep) float64 { return s.StepJ }, cli.ShortJoules},
	} {
		alone, single, both := "", math.Inf(1), math.NaN()
		for i := range kinds {
			step := of.best(&kinds[i])
			switch {
			case step == nil:
			case kinds[i].Kind == bothKinds:
				both = of.size(step)
			case of.size(step) < single:
				alone, single = kinds[i].Kind, of.size(step)
			}
		}
		if alone == "" || math.IsNaN(both) {
			parts = append(parts, "in "+of.what+" it is not known, since the search has simulated no plan of one of these kinds")
			continue
		}
		verdict := "no"
		if both < single {
			verdict = "yes"
		}
		parts = append(parts, fmt.Sprintf("in %s %s: %s per step, and %s on %s alone (%+.3g %%)", of.what, verdict, of.show(both), of.show(single), alone, 100*(both/single-1)))
	}
	return fmt.Sprintf("is %s better than either alone? %s", bothKinds, strings.Join(parts, "; "))
}

// boundText is a bound of an objective in its unit; none is known yet where the search ended early.
func (r *whatIfRow) boundText() string {
	if r.Bound <= 0 {
		return "-"
	}
	switch exact.Objective(r.Objective) {
	case exact.Time:
		return cli.ShowTime(float64(r.Bound))
	case exact.Energy:
		return cli.ShortJoules(float64(r.Bound))
	}
	return cli.ThreeDigits(float64(r.Bound)*1e6) + " mJ·ms"
}

// printWhatIf prints the table, and below it what is said of machines with two kinds of devices.
func printWhatIf(out io.Writer, rows []whatIfRow) {
	width := len("platform")
	for i := range rows {
		width = max(width, len(rows[i].Platform))
	}
	fmt.Fprintf(out, "%-*s %10s %10s %10s %12s %8s %7s %7s  %s\n", width, "platform", "step", "joules", "per image", "bound", "gap", "time ×", "joules ×", "devices chosen by "+rows[0].Objective)
	for i := range rows {
		r := &rows[i]
		if r.err != nil {
			fmt.Fprintf(out, "%-*s cannot: %s\n", width, r.Platform, r.Error)
			continue
		}
		image := "-"
		if isFinite(float64(r.ImageJ)) {
			image = cli.ShortJoules(float64(r.ImageJ))
		}
		fmt.Fprintf(out, "%-*s %10s %10s %10s %12s %8s %7.3g %8.3g  %s\n", width, r.Platform, cli.ShowTime(float64(r.StepS)), cli.ShortJoules(float64(r.StepJ)), image,
			r.boundText(), gapText(float64(r.Gap)), float64(r.TimeRatio), float64(r.EnergyRatio), space.Choice{Devices: r.Devices, Tiles: r.Tiles})
	}
	for i := range rows {
		r := &rows[i]
		if r.err == nil && r.Bound > 0 {
			fmt.Fprintf(out, "bound of %s: of %s no plan has less\n", r.Platform, r.BoundOf)
		}
	}
	for i := range rows {
		r := &rows[i]
		if r.Together == "" {
			continue
		}
		fmt.Fprintf(out, "\n%s: %s\n", r.Platform, r.Together)
		for _, k := range r.Kinds {
			for _, best := range []struct {
				what string
				step *whatIfStep
			}{{"shortest", k.Fastest}, {"fewest joules", k.Frugal}} {
				if best.step != nil {
					fmt.Fprintf(out, "  %-9s %-13s %10s %10s  %s\n", k.Kind, best.what, cli.ShowTime(best.step.StepS), cli.ShortJoules(best.step.StepJ), space.Choice{Devices: best.step.Devices, Tiles: best.step.Tiles})
				}
			}
		}
	}
}

// writeWhatIf writes the table as CSV.
func writeWhatIf(out io.Writer, rows []whatIfRow) error {
	lines := [][]string{{"platform", "objective", "devices", "tiles", "step_s", "step_j", "image_j", "lower_bound", "unit", "gap", "proven", "time_ratio", "energy_ratio", "error"}}
	for i := range rows {
		r := &rows[i]
		line := []string{r.Platform, r.Objective, r.Devices, r.Tiles}
		for _, n := range []number{r.StepS, r.StepJ, r.ImageJ, r.Bound} {
			line = append(line, n.csv())
		}
		lines = append(lines, append(line, r.Unit, r.Gap.csv(), yesNo(r.Proven), r.TimeRatio.csv(), r.EnergyRatio.csv(), r.Error))
	}
	return tables.WriteCSV(out, lines)
}

// csv is a number in a table; empty where there is none.
func (n number) csv() string {
	if !isFinite(float64(n)) {
		return ""
	}
	return strconv.FormatFloat(float64(n), 'g', -1, 64)
}
