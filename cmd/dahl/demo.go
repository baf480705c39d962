package main

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"dahl/cmd/cli"
	"dahl/cmd/dahl/flags"
	"dahl/cmd/dahl/record"
	"dahl/cmd/dahl/runs"
	"dahl/execute/calibrate"
	"dahl/execute/hardware"
	"dahl/naming"
	"dahl/nn"
	"dahl/nn/data"
	"dahl/plan"
	"dahl/rundir"
	"dahl/schedule/audit"
	"dahl/train"
)

// demoRun has the options of the demo: small enough to end in about 10 seconds, real enough to
// learn. Tests shorten it.
var demoRun = struct {
	flags.Options
	calibrate func(context.Context, *flags.Options, *nn.Model, train.Data, calibrate.Options) (*calibrate.Result, error)
}{
	flags.Options{Model: "digits-cnn", Data: "digits", Epochs: 5, Policy: flags.BestPolicy, DType: "float32", Seed: 1, Shuffle: true},
	calibrateModel,
}

const demoCalibrationTime = 3 * time.Second

func newDemo(args []string) *cobra.Command {
	var out string
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "calibrate, plan, predict and measure one training run, offline",
		Long: `demo calibrates this machine, plans the training of a small network on handwritten
digits that are part of the program, predicts the run in the simulator, trains the
network for real, and shows both side by side. It opens no socket.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return demo(cmd.Context(), cmd.OutOrStdout(), args, out) },
	}
	cmd.Flags().StringVar(&out, "out", "dahl-demo", "`directory` for schedule, energy, figures and manifest")
	return cmd
}

func demo(ctx context.Context, stdout io.Writer, args []string, out string) error {
	recoverClocks()
	of := demoRun.Options
	o := &of
	o.Args = args
	dir, err := record.CreateRun(out, &record.Manifest{Command: "demo", Options: *o})
	if err != nil {
		return err
	}
	defer dir.Close()
	m, d, err := flags.TrainingData(o)
	if err != nil {
		return err
	}
	fmt.Fprintln(stdout, "dahl demo: plan a training run, predict it, then measure it (offline, about 10 s)")
	fmt.Fprintf(stdout, "data      optdigits 8x8, built in: %d training, %d test samples\n", d.Train.Len(), d.Test.Len())
	fmt.Fprintf(stdout, "network   %s, %s, %s weights, batch %d, %s = %s\n", m.Name, o.DType, naming.Thousands(m.NumWeights()),
		o.Batch, naming.Count(o.Epochs, "epoch"), naming.Count(o.Epochs*data.BatchCount(d.Train.Len(), o.Batch), "step"))

	w, err := calibratedWorkload(ctx, stdout, o, m, d)
	if err != nil {
		return err
	}
	predicted, err := w.Predict(ctx)
	if err != nil {
		return err
	}
	w.printPlan(stdout, predicted)

	defer cli.Saving(ctx, savingTraining)()
	t, err := newTrainer(w, nil, nil)
	if err != nil {
		return err
	}
	defer t.Close()
	t.Predicted = predicted
	k := &keeper{dir: dir, ctx: ctx}
	if k.manifest, err = t.begins(ctx, "demo"); err != nil {
		return err
	}
	runErr := t.run(ctx)
	if runErr == nil {
		runErr = t.printDemo(ctx, stdout, predicted)
	}
	if runErr == nil {
		runErr = t.writeTrace(dir)
	}
	if err := k.commit(t, runErr); err != nil {
		return err
	}
	fmt.Fprintf(stdout, "pictures  %s/compare.svg  gantt.svg  power.svg  memory.svg; %s opens in Perfetto\n", dir.Path(), filepath.Join(dir.Path(), "trace.json"))
	fmt.Fprintf(stdout, "next      dahl simulate --platform platforms/server.toml --model %s --batch %d\n", o.Model, o.Batch)
	return nil
}

// calibratedWorkload measures this machine for the demo's network, prints the
// machine's line, and plans.
func calibratedWorkload(ctx context.Context, stdout io.Writer, o *flags.Options, m *nn.Model, d train.Data) (*workload, error) {
	p, err := hardware.Detect()
	if err != nil {
		return nil, err
	}
	o.Workers = len(p.Workers) // measured inside steps with all of them only
	begin := time.Now()
	c, err := demoRun.calibrate(ctx, o, m, d, calibrate.Options{Platform: p, MaxTime: demoCalibrationTime})
	if err != nil {
		return nil, err
	}
	w, err := newWorkload(ctx, o, m, c.Platform, d)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, line := range w.variants() {
		_, name, _ := strings.Cut(line, ": ")
		names = append(names, name)
	}
	slices.Sort(names)
	fmt.Fprintf(stdout, "machine   %s, kernels %s; calibrated in %.1f s (repeat spread %.1f %%)\n",
		naming.Count(len(c.Platform.Workers), "CPU worker"), strings.Join(slices.Compact(names), " and "), time.Since(begin).Seconds(), 100*c.RepeatSpread)
	w.chosenDevices.Print(stdout)
	return w, nil
}

// printPlan prints the graph and the prediction.
func (w *workload) printPlan(stdout io.Writer, predicted *plan.Totals) {
	g := w.Program.Graphs[0]
	bound := w.Decision.Priced.LowerBound(0, 1)
	fmt.Fprintf(stdout, "graph     %d tasks and %.2g GFLOP per step; bound %s; policy %s, replayed exactly\n",
		g.NumTasks(), g.TotalFlops()/1e9, cli.ShortTime(bound), w.policyText(predicted.Main.Policy))
	fmt.Fprintf(stdout, "          predicted: step %s   run %s   reserved %s   energy %s (%s)\n",
		cli.ShortTime(predicted.Counted.PerStep()), cli.ShortTime(predicted.Run), cli.ShortBytes(w.hostBytes()), cli.ShortJoules(predicted.Joules), predicted.Report.Grounds())
}

// printDemo prints the measurement and its difference from the prediction. It fails when the run
// did not follow its plan.
func (t *trainer) printDemo(ctx context.Context, stdout io.Writer, predicted *plan.Totals) error {
	if err := audit.Follows(t.Measured.Main, t.w.mainProblem(t.Measured.Main.Steps), t.w.Decision.Graphs[0].Plan); err != nil {
		return err
	}
	c, err := plan.Compare(ctx, t.w.Decision, predicted.Main, t.Measured.Main)
	if err != nil {
		return err
	}
	used, err := t.TouchedBytes()
	if err != nil {
		return err
	}
	last := t.Epochs[len(t.Epochs)-1]
	fmt.Fprintf(stdout, "          measured:  step %s   run %s   used %s of it   energy %s\n",
		cli.ShortTime(t.Measured.Counted.PerStep()), cli.ShortTime(t.Measured.Run), cli.ShortBytes(used), t.energyText())
	off := plan.ErrorPercent(predicted.Counted.StepS(), t.Measured.Counted.StepS())
	fmt.Fprintf(stdout, "error     step %+.1f %%%s; %+.1f %% in %s (of which kernels %+.1f, scheduling %+.1f); reserved memory %d bytes; loss %.2f -> %.2f, test accuracy %.1f %%\n",
		off, runs.CausesText(runs.ErrorCauses(off, t.w.mainProblem(1), t.Measured.Main, t.summarize())), c.Step.ErrorPercent, t.w.shown(t.Measured), c.KernelErrorPercent, c.SchedulingErrorPercent, used-t.w.hostBytes(),
		t.Steps[0].Loss, last.Loss, 100*last.TestAccuracy)
	fmt.Fprintf(stdout, "memory    %s\n", t.w.memoryText(t.Measured))
	return nil
}

// writeTrace writes one trace of the predicted and the measured schedule into the run.
func (t *trainer) writeTrace(dir *rundir.Dir) error {
	problem, summary := t.w.mainProblem(t.Measured.Main.Steps), t.summarize()
	run, err := record.NewPlotRun(problem, t.Measured.Main, summary)
	if err != nil {
		return err
	}
	predicted, err := record.NewPlotRun(problem, t.Predicted.Main, summary)
	if err != nil {
		return err
	}
	f := runs.TraceFormats["chrome"]
	return dir.Write(f.File, func(w io.Writer) error { return f.Write(w, predicted, run) })
}
