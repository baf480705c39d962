package runs

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
	"dahl/cmd/dahl/flags"
	"dahl/cmd/dahl/record"
	"dahl/cmd/dahl/words"
	"dahl/naming"
	"dahl/plan"
	"dahl/platform"
	"dahl/plots"
	"dahl/rundir"
	"dahl/rundir/durable"
	"dahl/schedule"
	"dahl/simulate"
)

// NewCompare makes the command dahl compare: it prints predicted and measured times, joules and memory side by side, or the
// differences of two files of weights.
func NewCompare([]string) *cobra.Command {
	var out flags.Output
	var numbers int
	cmd := &cobra.Command{
		Use:   "compare DIR… | WEIGHTS.npz WEIGHTS.npz",
		Short: "lay a predicted run beside a measured one, or any runs beside each other",
		Long: `compare reads run directories. Of an executed run, which holds its own prediction,
and of a simulated and an executed run of one graph it prints time, energy, memory,
and every worker, kernel and copy: predicted, measured, error. An error is what the
prediction is above the measurement, so that + means that it was longer or more. The step of the
run is the mean over all of it; all else, in the text and in compare.svg, is of the same
steps, which the first line names. Their error is split by giving the simulator the
measured durations. What meters counted over the
measured run is laid beside the joules of the platform's powers over the same time.

Any other runs, two or more, it prints in one table: first the inputs in which they differ,
then what each gave, with its ratio to the first run.

Two files of weights (.npz) it compares number by number: how many differ in each array, and where; the
first of them, and the worst by ULP, the number of representable numbers from one to the other.`,
		Example: "  dahl compare dahl-execute --json\n  dahl compare dahl-simulate dahl-execute\n  dahl compare laptop-run server-run other-run --out .\n  dahl compare one/weights.npz other/weights.npz --numbers 20",
		Args:    cli.WantArgs(1, math.MaxInt, "an executed run, a predicted and an executed one, any runs, or two files of weights"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if slices.ContainsFunc(args, isWeights) {
				return compareWeights(cmd.OutOrStdout(), args, numbers, &out)
			}
			return compareDirs(cmd.Context(), cmd.OutOrStdout(), args, &out)
		},
	}
	cmd.Flags().StringVar(&out.Dir, "out", "", "also draw the runs on one time axis into this existing `directory`")
	cmd.Flags().BoolVar(&out.JSON, "json", false, "print one JSON object instead of text")
	cmd.Flags().IntVar(&numbers, "numbers", 10, "of two files of weights list the first and the worst `n` numbers that differ")
	flags.Before(cmd, func() error { return cli.CheckNotNegative("numbers", numbers) })
	return cmd
}

func compareDirs(ctx context.Context, stdout io.Writer, dirs []string, out *flags.Output) error {
	if err := checkPicture(out); err != nil {
		return err
	}
	var runs []*record.LoadedRun
	for _, dir := range dirs {
		r, err := record.LoadRun(dir)
		if err != nil {
			return err
		}
		runs = append(runs, r)
	}
	switch predicted, measured := paired(runs); {
	case len(runs) == 1 && measured == nil:
		return cli.InputErrorf("%s holds a simulated run; name an executed one, or further runs", dirs[0])
	case measured != nil:
		return comparePair(ctx, stdout, predicted, measured, out)
	}
	return compareAny(stdout, dirs, runs, out)
}

// paired returns the measured run and its prediction. A nil prediction means that the measured run holds its
// own. It returns no measured run unless there is only one run, or a simulated and an executed one of the
// same graph on equally many workers.
func paired(runs []*record.LoadedRun) (predicted, measured *record.LoadedRun) {
	executed := func(r *record.LoadedRun) bool { return r.Schedule.World == schedule.Measured }
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

// comparePair compares a measured run with its prediction. A nil other means the prediction in the
// run itself.
func comparePair(ctx context.Context, stdout io.Writer, other, measured *record.LoadedRun, out *flags.Output) error {
	c, problem, err := compared(ctx, measured, other, plan.Compare)
	if err != nil {
		return err
	}
	err = drawPicture(out, func(w io.Writer) error {
		return DrawComparison(w, c, problem, measured.Schedule, measured.Summary)
	})
	if err != nil {
		return err
	}
	if out.JSON {
		return cli.PrintJSON(stdout, c)
	}
	printComparison(stdout, c, measured.Summary)
	return nil
}

// comparing is one of the comparisons of package plan.
type comparing func(ctx context.Context, d *schedule.Decision, predicted, measured *schedule.Schedule) (*plan.Comparison, error)

// compared compares a measured run with its prediction, as comparePair does. The returned problem is the
// problem of the prediction.
func compared(ctx context.Context, r, other *record.LoadedRun, compare comparing) (c *plan.Comparison, problem *schedule.Problem, err error) {
	problem, decision := r.Problem, r.Decision
	var predicted *schedule.Schedule
	whole := r.Summary.Trained // prediction of the run
	if other != nil {
		problem, decision, whole = other.Problem, other.Decision, &record.TrainedSummary{PredictedStepS: other.Summary.StepS}
		if other.Manifest.Options.Epochs > 0 && other.Summary.Steps == r.Summary.Steps {
			whole.PredictedS, whole.PredictedJoules = other.Summary.MakespanS, other.Summary.EnergyJ.Total
		}
		predicted, err = recordedSteps(ctx, other)
	} else {
		if predicted, err = r.Predicted(); err == nil && predicted == nil {
			err = cli.InputErrorf("%s holds no prediction; name a simulated run first", r.Dir())
		}
	}
	if err != nil {
		return nil, nil, err
	}
	if c, err = compare(ctx, decision, predicted, r.Schedule); err != nil {
		return nil, nil, err
	}
	if whole != nil {
		c.RunStep = pairOf(whole.PredictedStepS, r.Summary.StepS)
		c.Run, c.RunJoules = pairOf(whole.PredictedS, r.Summary.MakespanS), pairOf(whole.PredictedJoules, r.Summary.EnergyJ.Total)
	}
	return c, problem, addFromFiles(r, c, problem)
}

// pairOf is a prediction with its error; nil where one of both is unknown.
func pairOf(predicted, measured float64) *plan.Pair {
	if predicted <= 0 || measured <= 0 {
		return nil
	}
	p := plan.NewPair(predicted, measured)
	return &p
}

// addFromFiles adds to a comparison what only the files of a measured run say; the problem belongs to the prediction.
func addFromFiles(r *record.LoadedRun, c *plan.Comparison, problem *schedule.Problem) error {
	kept, err := r.Energy()
	if err != nil {
		return cli.AsInput(err)
	}
	c.Metered, c.Ranks = kept.Metered, r.Summary.Ranks
	c.PredictedClocks, c.MeasuredClocks = problem.Platform.ClocksInForce(), r.Problem.Platform.ClocksInForce()
	if clocks := r.Summary.MachineClocks; clocks != nil {
		c.IgnoredClocks = clocks.Ignored
		c.MeasuredClocks = slices.DeleteFunc(c.MeasuredClocks, func(name string) bool { return slices.Contains(clocks.Ignored, name) })
	}
	off := c.Step
	if c.RunStep != nil {
		off = *c.RunStep
	}
	c.Causes = ErrorCauses(off.ErrorPercent, problem, r.Schedule, r.Summary)
	return nil
}

// picture is where a comparison is drawn, and whether in a finished run; empty means nowhere.
func picture(out *flags.Output) (path string, inRun bool) {
	if out.Dir == "" {
		return "", false
	}
	return filepath.Join(out.Dir, record.CompareFile), rundir.Open(out.Dir, new(record.Manifest)) == nil
}

func checkPicture(out *flags.Output) error {
	if path, inRun := picture(out); !inRun {
		return cli.CheckWritable(path)
	}
	return nil
}

func drawPicture(out *flags.Output, draw func(io.Writer) error) error {
	switch path, inRun := picture(out); {
	case inRun:
		return record.ExtendRun(out.Dir, func(d *rundir.Dir) error { return d.Write(record.CompareFile, draw) })
	case path != "":
		return durable.Write(path, draw)
	}
	return nil
}

// recordedSteps returns the schedule of a run. Where the run was simulated and recording makes
// steps longer, it simulates recorded steps of the same plan.
func recordedSteps(ctx context.Context, r *record.LoadedRun) (*schedule.Schedule, error) {
	timed := slices.ContainsFunc(r.Problem.Platform.Devices, func(d platform.Device) bool { return d.Timing > 0 }) // being timed costs something
	if r.Schedule.World != schedule.Simulated || !timed {
		return r.Schedule, nil
	}
	return plan.Simulate(ctx, r.Decision, 0, r.Schedule.Steps, simulate.Options{Timed: true})
}

// DrawComparison draws both schedules of a comparison on one time axis; the summary belongs to the measured
// run.
func DrawComparison(out io.Writer, c *plan.Comparison, p *schedule.Problem, measured *schedule.Schedule, of *record.Summary) error {
	one, err := record.NewPlotRun(p, c.Predicted, of)
	if err != nil {
		return err
	}
	other, err := record.NewPlotRun(p, measured, of)
	if err != nil {
		return err
	}
	return plots.Compare(out, record.Screen, plots.Input{Run: other, Predicted: one, Compared: pictured(c, of.Shown)})
}

// errorSign says what an error is, wherever one is printed or drawn.
const errorSign = "error: + where the prediction is above what was measured"

// pictured has the lines and numbers in the picture of a comparison, the same as are printed.
func pictured(c *plan.Comparison, shown *record.ShownSteps) *plots.Compared {
	p := &plots.Compared{Text: fmt.Sprintf("%s: predicted %s, measured %s, %+.1f %% (%s)",
		stepsText(c, shown), cli.ShowTime(c.Makespan.Predicted), cli.ShowTime(c.Makespan.Measured), c.Makespan.ErrorPercent, errorSign)}
	at := map[string]int{}
	for i := range c.Kernels {
		k := &c.Kernels[i]
		n, ok := at[k.Op]
		if !ok {
			n = len(p.Operations)
			at[k.Op], p.Operations = n, append(p.Operations, plots.Operation{Name: k.Op})
		}
		p.Operations[n].Add(float64(k.Count), k.Sum.Predicted, k.Sum.Measured)
	}
	p.Kernels.Name = words.AllKernels
	for i := range p.Operations {
		p.Kernels.Add(p.Operations[i].Calls, 0, 0)
	}
	p.Kernels.PredictedS, p.Kernels.MeasuredS = c.Busy.Predicted, c.Busy.Measured
	for _, w := range c.Ways {
		p.Operations = append(p.Operations, plots.Operation{Name: "copy " + w.From + " to " + w.To, Calls: w.Count.Measured, PredictedS: w.Busy.Predicted, MeasuredS: w.Busy.Measured})
	}
	slices.SortStableFunc(p.Operations, func(a, b plots.Operation) int { return cmp.Compare(b.MeasuredS, a.MeasuredS) })
	return p
}

// stepsText names the steps that are compared.
func stepsText(c *plan.Comparison, shown *record.ShownSteps) string {
	if shown != nil && shown.String() != "" {
		return shown.String()
	}
	return naming.Count(c.Steps, "step")
}

// countedText says which steps the step of a run is the mean of.
func countedText(of *record.Summary) string {
	if of.FirstCount() {
		return fmt.Sprintf("the mean of %s, those that warm up too", naming.Count(of.Steps, "step"))
	}
	return fmt.Sprintf("the mean of %d of %s: all but the first of each graph", of.Counted.Steps, naming.Count(of.Steps, "step"))
}

// printClocks prints the clocks of both runs, where some device has several.
func printClocks(w io.Writer, c *plan.Comparison) {
	if c.PredictedClocks == nil && c.MeasuredClocks == nil && c.IgnoredClocks == nil {
		return
	}
	measured := c.MeasuredClocks
	if c.IgnoredClocks != nil {
		measured = append(slices.Clip(measured), "whatever clock the machine had in place of "+strings.Join(c.IgnoredClocks, ", "))
	}
	fmt.Fprintf(w, "clocks: predicted at %s, measured at %s\n", shownClocks(c.PredictedClocks), shownClocks(measured))
}

// printComparison writes a comparison as tables; the summary belongs to the measured run.
func printComparison(w io.Writer, c *plan.Comparison, of *record.Summary) {
	fmt.Fprintf(w, "compared: %s; %s\n", stepsText(c, of.Shown), errorSign)
	printClocks(w, c)
	fmt.Fprintf(w, "%-14s %12s %12s %9s\n", c.Graph, "predicted", "measured", "error")
	row := func(what string, p plan.Pair, show func(float64) string, notes ...any) {
		fmt.Fprintf(w, "%-14s %12s %12s %+8.1f %%%s\n", what, show(p.Predicted), show(p.Measured), p.ErrorPercent, fmt.Sprint(notes...))
	}
	if c.RunStep != nil {
		row("step of run", *c.RunStep, cli.ShowTime, "; "+countedText(of), CausesText(c.Causes))
	}
	if c.Run != nil {
		row("run", *c.Run, cli.ShowTime, "; all of it, with evaluations")
	}
	if c.RunJoules != nil {
		row("J of run", *c.RunJoules, cli.ShortJoules, "  (", of.EnergyJ.Grounds, ")")
	}
	row(naming.Count(c.Steps, "step"), c.Makespan, cli.ShowTime)
	row("  per step", c.Step, cli.ShowTime)
	copies := ""
	if c.CopyErrorPercent != nil {
		copies = fmt.Sprintf("copies %+.1f %%, ", *c.CopyErrorPercent)
	}
	fmt.Fprintf(w, "%-14s kernels %+.1f %%, %sscheduling %+.1f %%, by simulating these steps with the measured durations; %s ran elsewhere than predicted\n", "  of which",
		c.KernelErrorPercent, copies, c.SchedulingErrorPercent, naming.Count(c.MovedTasks, "task"))
	row("J per step", c.StepJoules, cli.ShortJoules, "  (", c.Grounds, ")")
	for _, m := range c.Metered {
		row("J "+m.Of, plan.NewPair(m.ModelJoules, m.MeterJoules), cli.ShortJoules, fmt.Sprintf("  (model and %s over %s of the measured run)", m.Meter, cli.ShortTime(cli.Seconds(m.Seconds))))
	}
	words.PrintRanks(w, c.Ranks)
	row("live peak", c.Peak, func(b float64) string { return cli.ShortBytes(int64(b)) })
	if c.MeasuredNodes == nil {
		for _, b := range c.Workers {
			row("busy "+b.Worker, b.Busy, cli.ShowTime)
		}
	} else {
		for i := range c.MeasuredNodes.Nodes {
			p, m := &c.PredictedNodes.Nodes[i], &c.MeasuredNodes.Nodes[i]
			row("busy "+m.Name, plan.NewPair(p.Busy, m.Busy), cli.ShowShare, "  (", m.Workers, " of ", naming.Count(m.Of, "worker"), ")")
			row("J "+m.Name, plan.NewPair(p.Joules, m.Joules), cli.ShortJoules)
		}
	}
	for _, way := range c.Ways {
		row(way.From+" to "+way.To, way.Busy, cli.ShowTime)
	}
	words.PrintKernels(w, c)
	words.PrintMoved(w, c)
	fmt.Fprintln(w, "\npredicted")
	words.PrintWaits(w, c.PredictedWaits)
	words.PrintStates(w, c.PredictedStates)
	words.PrintNodes(w, c.PredictedNodes)
	fmt.Fprintln(w, "measured")
	words.PrintWaits(w, c.MeasuredWaits)
	words.PrintStates(w, c.MeasuredStates)
	words.PrintNodes(w, c.MeasuredNodes)
}

func shownClocks(clocks []string) string {
	return cmp.Or(strings.Join(clocks, ", "), "the first of each device")
}
