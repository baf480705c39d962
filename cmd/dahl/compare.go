package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"dahl/cmd/cli"
	"dahl/plan"
	"dahl/platform"
	"dahl/plots"
	"dahl/rundir"
	"dahl/rundir/durable"
	"dahl/schedule"
	"dahl/schedule/explain"
	"dahl/simulate"
)

func newCompare([]string) *cobra.Command {
	var out output
	cmd := &cobra.Command{
		Use:   "compare DIR…",
		Short: "lay a predicted run beside a measured one, or any runs beside each other",
		Long: `compare reads run directories. Of an executed run, which holds its own prediction,
and of a simulated and an executed run of one graph it prints time, energy, memory,
and every worker, kernel and copy: predicted, measured, error. The error of the step
is split by giving the simulator the measured durations. What meters counted over the
measured run is laid beside the joules of the platform's powers over the same time.

Any other runs, two or more, it prints in one table: first the inputs in which they differ,
then what each gave, with its ratio to the first run.`,
		Example: "  dahl compare dahl-execute --json\n  dahl compare dahl-simulate dahl-execute\n  dahl compare laptop-run server-run other-run --out .",
		Args:    wantArgs(1, math.MaxInt, "an executed run, a predicted and an executed one, or any runs"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return compareDirs(cmd.Context(), cmd.OutOrStdout(), args, &out)
		},
	}
	cmd.Flags().StringVar(&out.dir, "out", "", "also draw the runs on one time axis into this existing `directory`")
	cmd.Flags().BoolVar(&out.json, "json", false, "print one JSON object instead of text")
	return cmd
}

func compareDirs(ctx context.Context, stdout io.Writer, dirs []string, out *output) error {
	if err := out.checkPicture(); err != nil {
		return err
	}
	var runs []*loadedRun
	for _, dir := range dirs {
		r, err := loadRun(dir)
		if err != nil {
			return err
		}
		runs = append(runs, r)
	}
	switch predicted, measured := paired(runs); {
	case len(runs) == 1 && measured == nil:
		return cli.InputErrorf("%s holds a simulated run; name an executed one, or further runs", dirs[0])
	case measured != nil:
		return comparePair(ctx, stdout, dirs, predicted, measured, out)
	}
	return compareAny(stdout, dirs, runs, out)
}

// paired is the measured run and what predicts it, nil where that is the run itself. There is no measured run
// among others than one, or a simulated and an executed one that do the same on equally many workers.
func paired(runs []*loadedRun) (predicted, measured *loadedRun) {
	executed := func(r *loadedRun) bool { return r.Schedule.World == schedule.Measured }
	switch i := slices.IndexFunc(runs, executed); {
	case len(runs) > 2 || i < 0:
		return nil, nil
	case len(runs) == 1:
		return nil, runs[0]
	default:
		p, m := runs[1-i], runs[i]
		if executed(p) || p.Problem.Graph.Hash() != m.Problem.Graph.Hash() || len(p.Problem.Platform.Workers) != len(m.Problem.Platform.Workers) {
			return nil, nil
		}
		return p, m
	}
}

// comparePair lays a measured run beside its prediction: that of another run, or nil for its own.
func comparePair(ctx context.Context, stdout io.Writer, dirs []string, other, measured *loadedRun, out *output) error {
	unrecordedS := 0.0 // as predicted, where it is not in the measured run
	problem, decision := measured.Problem, measured.Decision
	var predicted *schedule.Schedule
	var err error
	if other == nil {
		if predicted, err = measured.Predicted(); err == nil && predicted == nil {
			err = cli.InputErrorf("%s holds no prediction; name a simulated run first", dirs[0])
		}
	} else {
		problem, decision = other.Problem, other.Decision
		predicted, unrecordedS, err = other.recordedSteps(ctx)
	}
	if err != nil {
		return err
	}
	c, err := plan.Compare(ctx, decision, predicted, measured.Schedule)
	if err != nil {
		return err
	}
	if err := measured.addTo(c, problem, unrecordedS); err != nil {
		return err
	}
	err = out.drawPicture(func(w io.Writer) error {
		return drawComparison(w, problem, predicted, measured.Schedule, measured.summary)
	})
	if err != nil {
		return err
	}
	if out.json {
		return cli.PrintJSON(stdout, c)
	}
	printComparison(stdout, c, measured.summary.Shown)
	return nil
}

// addTo adds to a comparison what only the files of a measured run say; the problem is that of the prediction.
func (r *loadedRun) addTo(c *plan.Comparison, problem *schedule.Problem, unrecordedS float64) error {
	if rec := r.summary.Recorded; rec != nil && rec.Of > rec.Steps {
		c.UnrecordedStepS, c.PredictedUnrecordedStepS = r.summary.PeriodS, cmp.Or(unrecordedS, rec.PredictedS)
	}
	kept, err := r.Energy()
	if err != nil {
		return cli.AsInput(err)
	}
	c.Metered = kept.Metered
	c.PredictedClocks, c.MeasuredClocks = problem.Platform.ClocksInForce(), r.Problem.Platform.ClocksInForce()
	if clocks := r.summary.MachineClocks; clocks != nil {
		c.IgnoredClocks = clocks.Ignored
		c.MeasuredClocks = slices.DeleteFunc(c.MeasuredClocks, func(name string) bool { return slices.Contains(clocks.Ignored, name) })
	}
	c.Causes = errorCauses(c.Step.ErrorPercent, problem, r.Schedule, r.summary.Load)
	return nil
}

// picture is where a comparison is drawn, and whether in a finished run; "": nowhere.
func (out *output) picture() (path string, inRun bool) {
	if out.dir == "" {
		return "", false
	}
	return filepath.Join(out.dir, compareFile), rundir.Open(out.dir, new(manifest)) == nil
}

func (out *output) checkPicture() error {
	if path, inRun := out.picture(); !inRun {
		return cli.CheckWritable(path)
	}
	return nil
}

func (out *output) drawPicture(draw func(io.Writer) error) error {
	switch path, inRun := out.picture(); {
	case inRun:
		return extendRun(out.dir, func(d *rundir.Dir) error { return d.Write(compareFile, draw) })
	case path != "":
		return durable.Write(path, draw)
	}
	return nil
}

// recordedSteps is a run's schedule, or where it is a simulated one of steps that are not
// recorded, and recorded ones take longer, that of recorded steps by the same plan and what
// one that is not recorded takes.
func (r *loadedRun) recordedSteps(ctx context.Context) (s *schedule.Schedule, unrecordedS float64, err error) {
	timed := slices.ContainsFunc(r.Problem.Platform.Devices, func(d platform.Device) bool { return d.Timing > 0 }) // being timed costs something
	if r.Schedule.World != schedule.Simulated || !timed {
		return r.Schedule, 0, nil
	}
	s, err = plan.Simulate(ctx, r.Decision, 0, r.Schedule.Steps, simulate.Options{Timed: true})
	return s, r.summary.PeriodS, err
}

// drawComparison draws both schedules on one time axis; the summary is of the measured run.
func drawComparison(out io.Writer, p *schedule.Problem, predicted, measured *schedule.Schedule, of *summary) error {
	one, err := newPlotRun(p, predicted, of)
	if err != nil {
		return err
	}
	other, err := newPlotRun(p, measured, of)
	if err != nil {
		return err
	}
	return plots.Compare(out, "svg", one, other)
}

// printComparison writes a comparison as tables; shown says which steps of the run are measured.
func printComparison(w io.Writer, c *plan.Comparison, shown *shownSteps) {
	if shown != nil && shown.String() != "" {
		fmt.Fprintf(w, "measured are %s\n", shown)
	}
	if c.PredictedClocks != nil || c.MeasuredClocks != nil || c.IgnoredClocks != nil {
		measured := c.MeasuredClocks
		if c.IgnoredClocks != nil {
			measured = append(slices.Clip(measured), "whatever clock the machine had in place of "+strings.Join(c.IgnoredClocks, ", "))
		}
		fmt.Fprintf(w, "clocks: predicted at %s, measured at %s\n", shownClocks(c.PredictedClocks), shownClocks(measured))
	}
	fmt.Fprintf(w, "%-14s %12s %12s %9s\n", c.Graph, "predicted", "measured", "error")
	row := func(what string, p plan.Pair, show func(float64) string, notes ...any) {
		fmt.Fprintf(w, "%-14s %12s %12s %+8.1f %%%s\n", what, show(p.Predicted), show(p.Measured), p.ErrorPercent, fmt.Sprint(notes...))
	}
	row("step", c.Step, cli.ShowTime, causesText(c.Causes))
	switch {
	case c.PredictedUnrecordedStepS > 0:
		row("  unrecorded", plan.NewPair(c.PredictedUnrecordedStepS, c.UnrecordedStepS), cli.ShowTime)
	case c.UnrecordedStepS > 0:
		fmt.Fprintf(w, "%-14s %12s %12s\n", "  unrecorded", "", cli.ShowTime(c.UnrecordedStepS))
	}
	copies := ""
	if c.CopyErrorPercent != nil {
		copies = fmt.Sprintf("copies %+.1f %%, ", *c.CopyErrorPercent)
	}
	fmt.Fprintf(w, "%-14s kernels %+.1f %%, %sscheduling %+.1f %%; %d tasks ran elsewhere than predicted\n", "  of which", c.KernelErrorPercent, copies, c.SchedulingErrorPercent, c.MovedTasks)
	if c.Makespan != nil {
		row(fmt.Sprintf("%d steps", c.MeasuredSteps), *c.Makespan, cli.ShowTime)
	}
	row("J per step", c.StepJoules, cli.ThreeDigits, "  (", c.Grounds, ")")
	for _, m := range c.Metered {
		row("J "+m.Of, plan.NewPair(m.ModelJoules, m.MeterJoules), cli.ThreeDigits, fmt.Sprintf("  (model and %s over %s of the measured run)", m.Meter, cli.ShortTime(cli.Seconds(m.Seconds))))
	}
	row("live peak", c.Peak, func(b float64) string { return cli.ShortBytes(int64(b)) })
	for _, b := range c.Workers {
		row("busy "+b.Worker, b.Busy, cli.ShowTime)
	}
	for _, way := range c.Ways {
		row(way.From+" to "+way.To, way.Busy, cli.ShowTime)
	}
	printKernels(w, c)
	printMoved(w, c)
	fmt.Fprintln(w, "\npredicted")
	printWaits(w, c.PredictedWaits)
	printStates(w, c.PredictedStates)
	fmt.Fprintln(w, "measured")
	printWaits(w, c.MeasuredWaits)
	printStates(w, c.MeasuredStates)
}

func shownClocks(clocks []string) string {
	return cmp.Or(strings.Join(clocks, ", "), "the first of each device")
}

// printKernels writes a line for each kernel. Times of a step are sums of spans, so that
// they add up to what the workers are busy.
func printKernels(w io.Writer, c *plan.Comparison) {
	fmt.Fprintf(w, "\n%-18s %-44s %-7s %-9s %21s %19s %8s %17s\n", "", "", "", "", "in a step:", "", "", "one call:")
	fmt.Fprintf(w, "%-18s %-44s %-7s %-9s %5s %11s %11s %9s %6s %11s %11s\n", "kernel", "shape", "variant", "model", "calls", "predicted", "measured", "error", "share", "median", "p95")
	for _, k := range c.Kernels {
		fmt.Fprintf(w, "%-18s %-44s %-7s %-9s %5d %11s %11s %+8.1f%% %5.1f%% %11s %11s\n", k.Op, k.Shape, k.Variant, k.Source, k.Count,
			cli.ShowTime(k.Sum.Predicted), cli.ShowTime(k.Sum.Measured), k.Sum.ErrorPercent, 100*k.Share, cli.ShowTime(k.Median.Measured), cli.ShowTime(k.P95S))
	}
}

// maxCopyRows bounds the lines of copies that are printed; --json has all.
const maxCopyRows = 40

// printMoved writes what moves as tables.
func printMoved(w io.Writer, c *plan.Comparison) {
	if len(c.Copies) == 0 {
		return
	}
	fmt.Fprintf(w, "\n%-32s %-16s %-9s %9s %7s %11s %11s %11s %9s %6s\n", "copy of", "from to", "reason", "bytes", "n", "predicted", "median", "p95", "error", "share")
	for i, k := range c.Copies {
		if i == maxCopyRows {
			fmt.Fprintf(w, "and %d more\n", len(c.Copies)-i)
			break
		}
		predicted, off := "-", "-"
		if k.Median.Predicted > 0 {
			predicted, off = cli.ShowTime(k.Median.Predicted), fmt.Sprintf("%+.1f%%", k.Median.ErrorPercent)
		}
		fmt.Fprintf(w, "%-32s %-16s %-9s %9s %7.3g %11s %11s %11s %9s %5.1f%%\n", k.Buffer, k.From+" "+k.To, k.Reason, cli.ShortBytes(k.Bytes), k.Count,
			predicted, cli.ShowTime(k.Median.Measured), cli.ShowTime(k.P95S), off, 100*k.Share)
	}
	for _, way := range c.Ways {
		fmt.Fprintf(w, "%s to %s per step: predicted %.4g copies of %s, measured %.4g of %s\n", way.From, way.To,
			way.Count.Predicted, cli.ShortBytes(int64(way.Bytes.Predicted)), way.Count.Measured, cli.ShortBytes(int64(way.Bytes.Measured)))
	}
}

// maxNamedCopies bounds the copies that are named in one line; --json has all.
const maxNamedCopies = 3

// printWaits writes two lines. Where nothing moves or changes there is little to say.
func printWaits(out io.Writer, w *plan.Waits) {
	of := func(cause explain.IdleCause) string { return cli.ShowTime(w.PerStepS[cause.String()]) }
	changes, asleep, inChanges := "", "", ""
	if w.PerStepS[explain.WaitChange.String()] > 0 {
		changes = fmt.Sprintf(", %s for a change of state", of(explain.WaitChange))
	}
	if w.AsleepS > 0 {
		asleep = fmt.Sprintf("; %s of it asleep", cli.ShowTime(w.AsleepS))
	}
	if w.Path.ChangeS > 0 {
		inChanges = fmt.Sprintf(", %s in changes of state", cli.ShowTime(w.Path.ChangeS))
	}
	fmt.Fprintf(out, "waits     per step of all workers: %s for a predecessor, %s for a transfer%s, %s for dispatch, %s without work%s%s\n",
		of(explain.WaitPredecessor), of(explain.WaitTransfer), changes, of(explain.WaitDispatch), of(explain.NoWork), asleep, namedCopies("; ", "for", w.Transfers))
	fmt.Fprintf(out, "path      per step %s in tasks, %s in copies%s, %s between them%s\n",
		cli.ShowTime(w.Path.TasksS), cli.ShowTime(w.Path.CopiesS), inChanges, cli.ShowTime(w.Path.WaitS), namedCopies("; ", "in", w.Path.Copies))
}

// namedCopies writes the longest: "; 0.4 ms for w@gpu from ram".
func namedCopies(before, what string, all []plan.TransferTime) string {
	var parts []string
	for i, t := range all {
		if i == maxNamedCopies {
			parts = append(parts, "…")
			break
		}
		parts = append(parts, fmt.Sprintf("%s %s %s from %s", cli.ShowTime(t.StepS), what, t.Buffer, t.From))
	}
	if parts == nil {
		return ""
	}
	return before + strings.Join(parts, ", ")
}
