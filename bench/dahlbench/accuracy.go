package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"dahl/cmd/cli"
	"dahl/dag"
	"dahl/execute"
	"dahl/nn"
	"dahl/plan"
	"dahl/platform"
	"dahl/schedule"
	"dahl/simulate"
	"dahl/train"
)

// accuracyOptions say which predictions are put to the test.
type accuracyOptions struct {
	models    []string
	batches   []int
	workers   []int
	lowerings []string
	dtype     string
	elem      dag.DType     // of that name
	perRow    time.Duration // of calibration
	repeats   int
	out       string
	force     bool
}

// accuracyLowering is a way to lower every network.
type accuracyLowering struct {
	name, doc string
	adapt     func(l *dag.Lowering, batch int)
}

var accuracyLowerings = []accuracyLowering{
	{"default", "as the caches suggest", nil},
	{"fine", "half the samples per task", func(l *dag.Lowering, batch int) { *l = plan.ScaleTiles(l, 1, 2, batch) }},
	{"coarse", "twice the samples per task", func(l *dag.Lowering, batch int) { *l = plan.ScaleTiles(l, 2, 1, batch) }},
	{"chain", "every layer by itself, channels first, the loss as a chain", func(l *dag.Lowering, _ int) { l.Layout, l.Fused = dag.NCHW, false }},
}

func newAccuracy() *cobra.Command {
	var a accuracyOptions
	var names []string
	for _, l := range accuracyLowerings {
		names = append(names, l.name+" ("+l.doc+")")
	}
	cmd := &cobra.Command{
		Use:   "accuracy",
		Short: "predicted against measured step time, model by model",
		Long: `accuracy calibrates this machine for each network, batch size, number of workers and
lowering, predicts the step time, and measures it. Calibration runs and measured runs
alternate, each compiled and allocated anew, so that both see the same machine; a pair
during which others used the cores is repeated, at most as often again as there are
pairs, and the quietest are kept. The table shows each error beside the spread of the
measured runs: an error within the spread cannot be told from noise.

The file of --out also has a line for every kernel that matters. It is written after
each row, and rows that it holds already are not measured again: delete the line of a
row to have it measured anew, such as one with much load.

Lowerings: ` + strings.Join(names, ", ") + ".",
		Example: "  dahl-bench accuracy --models lenet5,mlp --batches 64 --out accuracy.md",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f := cmd.Flags()
	f.StringSliceVar(&a.models, "models", []string{"digits-cnn", "dahl-cnn", "dahl32", "lenet5", "mlp", "cifar-cnn"}, "networks")
	f.IntSliceVar(&a.batches, "batches", []int{32, 64, 128}, "batch sizes")
	f.IntSliceVar(&a.workers, "workers", []int{1, 2}, "numbers of CPU cores")
	f.StringSliceVar(&a.lowerings, "lowerings", []string{"default", "coarse", "chain"}, "ways to lower the networks")
	f.StringVar(&a.dtype, "dtype", "float32", "element type: float32 or float64")
	f.DurationVar(&a.perRow, "time", 4*time.Second, "about how long to calibrate for each row")
	f.IntVar(&a.repeats, "repeats", 5, "pairs of a calibration run and a measured run in each row")
	f.StringVar(&a.out, "out", "", "also write the tables as a Markdown `file`, or complete one")
	f.BoolVar(&a.force, "force", false, "measure the rows that the file holds again")
	return cmd
}

// accuracyCase is what one row is about.
type accuracyCase struct {
	model          string
	batch, workers int
	lowering       *accuracyLowering
}

// cases are all combinations.
func (a *accuracyOptions) cases() ([]accuracyCase, error) {
	if a.repeats < 1 || a.perRow <= 0 {
		return nil, cli.InputErrorf("--repeats %d --time %v: want at least 1, and a positive time", a.repeats, a.perRow)
	}
	elem, err := cli.RealType(a.dtype)
	a.elem = elem
	err = cmp.Or(err, cli.CheckModels(a.models...), cli.CheckNumbers("batches", a.batches...), cli.CheckNumbers("workers", a.workers...))
	if err != nil {
		return nil, err
	}
	var cases []accuracyCase
	for _, name := range a.lowerings {
		i := slices.IndexFunc(accuracyLowerings, func(l accuracyLowering) bool { return l.name == name })
		if i < 0 {
			return nil, cli.InputErrorf("--lowerings %q: there is none of this name; see dahl-bench accuracy --help", name)
		}
		for _, model := range a.models {
			for _, batch := range a.batches {
				for _, workers := range a.workers {
					cases = append(cases, accuracyCase{model, batch, workers, &accuracyLowerings[i]})
				}
			}
		}
	}
	return cases, nil
}

func (a *accuracyOptions) run(ctx context.Context, stdout, stderr io.Writer) error {
	cases, err := a.cases()
	if err != nil {
		return err
	}
	if err := cli.CheckWritable(a.out); err != nil {
		return err
	}
	table, err := a.openTable()
	if err != nil {
		return err
	}
	bar := cli.NewProgressBar(stderr, "accuracy")
	defer bar.Done()
	known := knownKernels{}
	headed := false
	for i, c := range cases {
		bar.Set(i, len(cases), fmt.Sprintf("%s batch %d, %d workers, %s", c.model, c.batch, c.workers, c.lowering.name))
		row, ok := table.row(&c)
		if !ok {
			r, err := a.measureRow(ctx, &c, known)
			if err != nil {
				return fmt.Errorf("%s, batch %d, %d workers, lowering %s: %w", c.model, c.batch, c.workers, c.lowering.name, err)
			}
			row = r.format()
			if err := table.add(r); err != nil {
				return err
			}
		}
		bar.Done()
		if !headed {
			fmt.Fprint(stdout, accuracyHead)
			headed = true
		}
		fmt.Fprintln(stdout, row)
	}
	fmt.Fprint(stdout, table.summary())
	return nil
}

// knownKernels are platforms with the calls measured by themselves so far, by the
// number of workers, so that rows share them.
type knownKernels map[int]*platform.Platform

// pairOfRuns is a calibration run and a measured run right after it.
type pairOfRuns struct {
	times    execute.StepTimes
	measured *schedule.Schedule
	load     float64 // cores that others kept busy meanwhile
	quiet    bool
}

// measureRow calibrates, measures and predicts one case.
func (a *accuracyOptions) measureRow(ctx context.Context, c *accuracyCase, known knownKernels) (*accuracyRow, error) {
	w, err := a.plannedWorkload(ctx, c, known)
	if err != nil {
		return nil, err
	}
	var pairs []pairOfRuns
	quiet := 0
	for len(pairs) < 2*a.repeats && quiet < a.repeats {
		p, err := a.runPair(ctx, w, len(pairs)%2 == 1)
		if err != nil {
			return nil, err
		}
		if p.quiet {
			quiet++
		}
		pairs = append(pairs, *p)
	}
	slices.SortStableFunc(pairs, func(x, y pairOfRuns) int { return cmp.Compare(x.load, y.load) })
	pairs = pairs[:a.repeats]
	var times execute.StepTimes
	for i := range pairs {
		times.Merge(&pairs[i].times)
	}
	if err := learn(w, &times); err != nil {
		return nil, err
	}
	return newAccuracyRow(ctx, c, w, pairs)
}

// fullBatches is as much of a data set as fills whole batches, so that there is no
// shorter last step.
func fullBatches(d *nn.Dataset, batch int) train.Data {
	if d.Len() < batch {
		return train.Data{Train: d} // too few, which is said where it is used
	}
	n := d.Len() - d.Len()%batch
	whole := *d
	whole.Images, whole.Labels = d.Images[:n*len(d.Images)/d.Len()], d.Labels[:n]
	return train.Data{Train: &whole}
}

// plannedWorkload measures the kernels by themselves, trains a little with the plan
// that follows from that, and plans again with what the steps showed. Its program is
// the training step alone.
func (a *accuracyOptions) plannedWorkload(ctx context.Context, c *accuracyCase, known knownKernels) (*train.Workload, error) {
	m, data, err := network(c.model, 0)
	if err != nil {
		return nil, err
	}
	data = fullBatches(data.Train, c.batch)
	p := known[c.workers]
	if p == nil {
		if p, err = cores(c.workers); err != nil {
			return nil, err
		}
	}
	w, err := train.New(m, data, p, train.Options{Batch: c.batch, Type: a.elem, Seed: 1, Adapt: c.lowering.adapt})
	if err != nil {
		return nil, err
	}
	alone, err := execute.Calibrate(ctx, w.Program.Graphs, execute.CalibrateOptions{Platform: p, MaxTime: a.perRow / 2, Resume: true})
	if err != nil {
		return nil, err
	}
	known[c.workers] = alone.Platform
	s, err := train.NewStepCalibration(m, data, alone.Platform, w.Options, "cpu", fmt.Sprintf("cpu:%d", c.workers))
	if err != nil {
		return nil, err
	}
	if err := s.Run(ctx, a.perRow/4); err != nil {
		return nil, err
	}
	return train.New(m, data, s.Platform, w.Options)
}

// runPair runs the training step twice, each time compiled and allocated anew: to
// learn from and to measure, or the other way round.
func (a *accuracyOptions) runPair(ctx context.Context, w *train.Workload, measureFirst bool) (*pairOfRuns, error) {
	p := &pairOfRuns{}
	learn := func(t *train.Trainer, steps int) error {
		return execute.CalibrateInSitu(ctx, t.Runner, execute.InSituOptions{Warmup: min(steps, train.WarmupSteps), Steps: steps}, &p.times)
	}
	measure := func(t *train.Trainer, steps int) error {
		_, err := t.Runner.Run(ctx, 0, min(steps, train.WarmupSteps), true)
		if err == nil {
			p.measured, err = t.Runner.Run(ctx, 0, steps, true)
		}
		return err
	}
	runs := []func(*train.Trainer, int) error{learn, measure}
	if measureFirst {
		slices.Reverse(runs)
	}
	load := execute.StartLoad()
	for _, run := range runs {
		if err := timed(ctx, w, a.perRow/4, run); err != nil {
			return nil, err
		}
	}
	seen := load.Load()
	p.load, p.quiet = seen.Cores(), !seen.Disturbed(0)
	return p, nil
}

// timed compiles the workload and runs its training step for about some time.
func timed(ctx context.Context, w *train.Workload, budget time.Duration, run func(t *train.Trainer, steps int) error) error {
	t, err := w.Start()
	if err != nil {
		return err
	}
	defer t.Close()
	steps, err := t.Prepare(ctx, 0, budget)
	if err != nil {
		return err
	}
	runtime.GC() // not while the workers have the cores
	return run(t, steps)
}

// learn puts the times of steps into the platform and prices the main graph anew. Its
// plan stays.
func learn(w *train.Workload, times *execute.StepTimes) error {
	p, err := w.Platform.WithCores(len(w.Platform.Workers))
	if err != nil {
		return err
	}
	for _, m := range times.Models() {
		p.Models = execute.PutModel(p.Models, m)
	}
	times.PutInto(&p.Devices[0])
	choice := schedule.Choice{Policy: w.Decision.Policy}
	if w.Decision.Placed != nil {
		for i := range w.Decision.Graphs {
			choice.Plans = append(choice.Plans, w.Decision.PlanOf(i, nil))
		}
	}
	w.Platform = p
	w.Decision, err = plan.Decide(w.Program, p, w.Target(), choice)
	return err
}

// accuracyRow is one line of the table. Errors and the spread are fractions.
type accuracyRow struct {
	accuracyCase
	predicted, measured time.Duration
	spread              float64 // of the measured runs: (slowest − fastest)/median
	busy                float64 // the worst worker's error of its busy time per step
	kernels, scheduling float64
	load                float64 // cores, in the pair with most
	kernelRows          []plan.KernelComparison
}

// newAccuracyRow compares the prediction with the measured runs: step and busy times
// with the mean over those in the middle, without the shortest and the longest third,
// as calibration takes them; kernels with the median run.
func newAccuracyRow(ctx context.Context, c *accuracyCase, w *train.Workload, pairs []pairOfRuns) (*accuracyRow, error) {
	r := &accuracyRow{accuracyCase: *c}
	var runs []*schedule.Schedule
	for i := range pairs {
		runs = append(runs, pairs[i].measured)
		r.load = max(r.load, pairs[i].load)
	}
	slices.SortFunc(runs, func(x, y *schedule.Schedule) int { return cmp.Compare(plan.StepTime(x), plan.StepTime(y)) })
	measured := runs[len(runs)/2]
	predicted, err := plan.Simulate(ctx, w.Decision, 0, measured.Steps, simulate.Options{Timed: true})
	if err != nil {
		return nil, err
	}
	compared, err := plan.Compare(ctx, w.Decision, predicted, measured)
	if err != nil {
		return nil, err
	}
	middle := runs[len(runs)/3 : len(runs)-len(runs)/3]
	r.predicted, r.busy = plan.StepTime(predicted), busyError(predicted, middle, len(w.Platform.Workers))
	for _, s := range middle {
		r.measured += plan.StepTime(s) / time.Duration(len(middle))
	}
	r.spread = float64(plan.StepTime(runs[len(runs)-1])-plan.StepTime(runs[0])) / float64(r.measured)
	r.kernels, r.scheduling = compared.KernelErrorPercent/100, compared.SchedulingErrorPercent/100
	r.kernelRows = compared.Kernels
	return r, nil
}

// busyError is the largest error of a worker's busy time per step.
func busyError(predicted *schedule.Schedule, measured []*schedule.Schedule, workers int) float64 {
	want := make([]float64, workers)
	for _, s := range measured {
		for w, busy := range plan.BusyPerStep(s, workers) {
			want[w] += busy / float64(len(measured))
		}
	}
	worst := 0.0
	for w, busy := range plan.BusyPerStep(predicted, workers) {
		if want[w] > 0 {
			worst = max(worst, math.Abs(busy/want[w]-1))
		}
	}
	return worst
}
