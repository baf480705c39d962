package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"dahl/cmd/cli"
	"dahl/dag"
	"dahl/execute"
	"dahl/plan"
	"dahl/plan/tiling"
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

	// known are platforms with the calls measured so far, by the number of workers, so that
	// rows share them.
	known map[int]*platform.Platform
}

// accuracyLowering is a way to lower every network.
type accuracyLowering struct {
	name, doc string
	adapt     func(l *dag.Lowering, batch int)
}

func (l accuracyLowering) String() string { return l.name }

var accuracyLowerings = []accuracyLowering{
	{"default", "as the caches suggest", nil},
	{"fine", "half the samples per task", func(l *dag.Lowering, batch int) { *l = tiling.Scale(l, 1, 2, batch) }},
	{"coarse", "twice the samples per task", func(l *dag.Lowering, batch int) { *l = tiling.Scale(l, 2, 1, batch) }},
}

func newAccuracy() *cobra.Command {
	a := accuracyOptions{known: map[int]*platform.Platform{}}
	var names []string
	for _, l := range accuracyLowerings {
		names = append(names, l.name+" ("+l.doc+")")
	}
	cmd := measurement(&cobra.Command{
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
	}, a.run)
	f := cmd.Flags()
	f.StringSliceVar(&a.models, "models", []string{"digits-cnn", "dahl-cnn", "dahl32", "lenet5", "mlp", "cifar-cnn"}, "networks")
	f.IntSliceVar(&a.batches, "batches", []int{32, 64, 128}, "batch sizes")
	f.IntSliceVar(&a.workers, "workers", []int{1, 2}, "numbers of CPU cores")
	f.StringSliceVar(&a.lowerings, "lowerings", []string{"default", "coarse"}, "ways to lower the networks")
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
	lowering       accuracyLowering
}

// cases are all combinations.
func (a *accuracyOptions) cases() (cases []accuracyCase, err error) {
	if a.repeats < 1 || a.perRow <= 0 {
		return nil, cli.InputErrorf("--repeats %d --time %v: want at least 1, and a positive time", a.repeats, a.perRow)
	}
	a.elem, err = cli.RealType(a.dtype)
	err = cmp.Or(err, cli.CheckModels(a.models...), cli.CheckNumbers("batches", a.batches...), cli.CheckNumbers("workers", a.workers...))
	if err != nil {
		return nil, err
	}
	lowerings, err := chosen("lowerings", a.lowerings, accuracyLowerings)
	for _, l := range lowerings {
		for _, model := range a.models {
			for _, batch := range a.batches {
				for _, workers := range a.workers {
					cases = append(cases, accuracyCase{model, batch, workers, l})
				}
			}
		}
	}
	return cases, err
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
	head := accuracyHead
	for i, c := range cases {
		bar.Set(i, len(cases), fmt.Sprintf("%s batch %d, %d workers, %s", c.model, c.batch, c.workers, c.lowering))
		row := table.row(&c)
		if row == "" {
			r, err := a.measureRow(ctx, &c)
			if err != nil {
				return fmt.Errorf("%s, batch %d, %d workers, lowering %s: %w", c.model, c.batch, c.workers, c.lowering, err)
			}
			row = r.format()
			if err := table.add(r); err != nil {
				return err
			}
		}
		bar.Done()
		fmt.Fprintln(stdout, head+row)
		head = ""
	}
	fmt.Fprint(stdout, table.summary())
	return nil
}

// pairOfRuns is a calibration run and a measured run beside it.
type pairOfRuns struct {
	times    execute.StepTimes
	measured *schedule.Schedule
	load     execute.Load // of others meanwhile
}

// measureRow calibrates, measures and predicts one case.
func (a *accuracyOptions) measureRow(ctx context.Context, c *accuracyCase) (*accuracyRow, error) {
	w, err := a.plannedWorkload(ctx, c)
	if err != nil {
		return nil, err
	}
	var pairs []*pairOfRuns
	for quiet := 0; len(pairs) < 2*a.repeats && quiet < a.repeats; {
		p, load := &pairOfRuns{}, execute.StartLoad()
		for run := range 2 {
			if run == len(pairs)%2 {
				err = w.Time(ctx, a.perRow/4, func(t *train.Trainer, _, warmup, steps int) error {
					return execute.CalibrateInSitu(ctx, t.Runner, execute.InSituOptions{Warmup: warmup, Steps: steps}, &p.times)
				})
			} else {
				p.measured, err = measured(ctx, w, a.perRow/4)
			}
			if err != nil {
				return nil, err
			}
		}
		if p.load = load.Load(); !p.load.Disturbed(0) {
			quiet++
		}
		pairs = append(pairs, p)
	}
	slices.SortStableFunc(pairs, func(x, y *pairOfRuns) int { return cmp.Compare(x.load.Cores(), y.load.Cores()) })
	pairs = pairs[:a.repeats]
	if err := learn(w, pairs); err != nil {
		return nil, err
	}
	return newAccuracyRow(ctx, c, w, pairs)
}

// plannedWorkload calibrates this machine as dahl calibrate does, and plans with that. Its
// program is the training step alone.
func (a *accuracyOptions) plannedWorkload(ctx context.Context, c *accuracyCase) (*train.Workload, error) {
	m, data, err := network(c.model, 0)
	if err == nil && data.Train.Len() > c.batch { // as many as make no shorter last step
		m, data, err = network(c.model, data.Train.Len()/c.batch*c.batch)
	}
	if err != nil {
		return nil, err
	}
	data.Test = nil
	p := a.known[c.workers]
	if p == nil {
		if p, err = machine("", "", c.workers); err != nil {
			return nil, err
		}
	}
	o := train.Options{Batch: c.batch, Type: a.elem, Seed: 1, Adapt: c.lowering.adapt}
	calibrated, err := train.Calibrate(ctx, m, data, o, train.Calibration{
		CalibrateOptions: execute.CalibrateOptions{Platform: p, MaxTime: a.perRow, Resume: true}, AllUnits: true})
	if err != nil {
		return nil, err
	}
	a.known[c.workers] = calibrated.Platform
	return train.New(m, data, calibrated.Platform, o)
}

// measured is a run of the training step of about some time, compiled and allocated anew.
func measured(ctx context.Context, w *train.Workload, budget time.Duration) (s *schedule.Schedule, err error) {
	err = w.Time(ctx, budget, func(t *train.Trainer, graph, warmup, steps int) (err error) {
		if graph > 0 {
			return nil
		}
		if _, err = t.Runner.Run(ctx, 0, warmup, true); err == nil {
			s, err = t.Runner.Run(ctx, 0, steps, true)
		}
		return err
	})
	return s, err
}

// learn puts the times of steps into the platform and prices the training step anew. Its
// plan stays.
func learn(w *train.Workload, pairs []*pairOfRuns) error {
	p, err := w.Platform.WithCores(len(w.Platform.Workers))
	if err != nil {
		return err
	}
	var times execute.StepTimes
	for _, pair := range pairs {
		times.Merge(&pair.times)
	}
	for _, m := range times.Models() {
		p.Models = execute.PutModel(p.Models, m)
	}
	times.PutInto(&p.Devices[0])
	w.Platform, w.Options.Plan = p, w.Decision.PlanOf(0, nil)
	return w.Choose()
}

// accuracyRow is one line of the table. Errors and the spread are fractions.
type accuracyRow struct {
	accuracyCase
	predicted, measured time.Duration
	spread              float64 // of the measured runs: (slowest − fastest)/median
	busy                float64 // the worst worker's error of its busy time per step
	load                float64 // cores, in the pair with most
	*plan.Comparison            // with the median run
}

// newAccuracyRow compares the prediction with the measured runs, of pairs by ascending load:
// step and busy times with the mean over those in the middle, without the shortest and the
// longest third, as calibration takes them.
func newAccuracyRow(ctx context.Context, c *accuracyCase, w *train.Workload, pairs []*pairOfRuns) (*accuracyRow, error) {
	r := &accuracyRow{accuracyCase: *c, load: pairs[len(pairs)-1].load.Cores()}
	var runs []*schedule.Schedule
	for _, p := range pairs {
		runs = append(runs, p.measured)
	}
	slices.SortFunc(runs, func(x, y *schedule.Schedule) int { return cmp.Compare(plan.StepTime(x), plan.StepTime(y)) })
	measured := runs[len(runs)/2]
	predicted, err := plan.Simulate(ctx, w.Decision, 0, measured.Steps, simulate.Options{Timed: true})
	if err != nil {
		return nil, err
	}
	if r.Comparison, err = plan.Compare(ctx, w.Decision, predicted, measured); err != nil {
		return nil, err
	}
	middle := runs[len(runs)/3 : len(runs)-len(runs)/3]
	r.predicted, r.busy = plan.StepTime(predicted), busyError(predicted, middle, len(w.Platform.Workers))
	for _, s := range middle {
		r.measured += plan.StepTime(s) / time.Duration(len(middle))
	}
	r.spread = float64(plan.StepTime(runs[len(runs)-1])-plan.StepTime(runs[0])) / float64(r.measured)
	return r, nil
}

// busyError is the largest error of a worker's busy time per step.
func busyError(predicted *schedule.Schedule, measured []*schedule.Schedule, workers int) (worst float64) {
	var all schedule.Schedule
	for _, s := range measured {
		all.Steps, all.Spans = all.Steps+s.Steps, append(all.Spans, s.Spans...)
	}
	took := plan.BusyPerStep(&all, workers)
	for w, busy := range plan.BusyPerStep(predicted, workers) {
		if took[w] > 0 {
			worst = max(worst, math.Abs(busy/took[w]-1))
		}
	}
	return worst
}
