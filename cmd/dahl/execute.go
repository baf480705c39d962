package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"

	"github.com/spf13/cobra"

	"dahl/cmd/cli"
	"dahl/cmd/dahl/flags"
	"dahl/cmd/dahl/record"
	"dahl/cmd/dahl/runs"
	"dahl/cmd/dahl/watch"
	"dahl/cmd/dahl/words"
	"dahl/energy"
	"dahl/execute"
	"dahl/naming"
	"dahl/plan"
	"dahl/plots"
	"dahl/rundir"
	"dahl/train"
	"dahl/train/budget"
	"dahl/train/setclock"
)

// executeFlags are the flags of execute with the terminal and the interrupted training that they ask for.
type executeFlags struct {
	flags.Execute
	stderr io.Writer
	page   *cli.Page      // on the standard error; nil means that it is no terminal
	from   *interrupted   // the training in f.Resume; nil means that it begins
	ranks  *execute.Ranks // nil means that this process trains alone
}

var recordHelp = fmt.Sprintf(`The tasks of a step are timed where the step is recorded. On processors that is free,
and all steps are. On a GPU it puts two events around every task and keeps steps out of
CUDA graphs, so that only the first %d steps of every graph are recorded in each epoch,
or as many as --record says; the others run at full speed. The schedule, the figures and
the copies are then of the recorded ones. The time of a step, the samples per second and
the joules of a sample are always those of all training steps but the first of each
graph, which warms up; the joules of steps that are not recorded are those of the mean
power of the recorded ones. Predictions are of the same steps: the timing of a device in
the platform file, which dahl calibrate measures, makes recorded ones longer.`, train.RecordedByDefault)

var executeHelp = `execute trains a network on the devices of this machine. It follows a plan to the
letter. Where all tasks run in one memory it may ask a policy at run time instead. It writes the measured schedule
and the simulator's prediction. Without --platform the machine is detected; predictions are worth
something with a file by dahl calibrate.

If --devices names processors and other devices, such as cpu,gpu, the run is compared with
predictions for each kind alone, in time and joules, and with
--compare-devices with measurements, too.

` + flags.BestPolicyHelp + `

How it is trained is the model's, in [train] of a model file, or what flags of the same names
say, as PyTorch defines it: the optimiser, a schedule of its rate, the loss, label smoothing and
clipping of gradients. The rate of a schedule depends on the step alone. So a training that goes on
with more epochs has the rates that it would have had from the start, and a cosine rises again
once the periods of over have passed; cosine_to stays at its min.

` + flags.DataHelp + `

What the run needs of the memory is added up before it is taken; above what the machine,
control groups and ulimit leave, one line says what needs how much and which flag lowers
it. Data that do not fit are read while the run goes on, a few batches ahead, with the
same losses and weights; compressed ones lie in a temporary file beside theirs meanwhile.

A loss that is NaN or infinite ends the run, with the step and the layer in which the
first such number came up; the weights are then the last finite ones. So do such weights, which are
looked at in every epoch, before a checkpoint and at the end. For this a copy of
weights and optimiser state is kept. --continue-on-nan goes on instead.

The training is saved every minute: parameters, optimiser state and how far it is, in
the directory .staging of the run's. One that was killed goes on with --resume DIR, and
comes to the weights that it would have had, on any number of cores. A signal, a lost
terminal or a closed pipe ends a training between two steps, with a checkpoint and exit
code 128 + the signal's number; a SIGINT (Ctrl-C) or SIGTERM after that ends it at once.
A run that is complete goes on with --resume DIR and more --epochs. Of files that are damaged
meanwhile it takes none: it goes on from the checkpoint before, or refuses to.

A clock of --clock, or that the platform file has in force, is obeyed by emulated devices.
With --set-clocks processors (Linux's cpufreq) and GPUs (NVIDIA's management library) are
set to its frequency. Then what was set before is saved first and given back when the run
ends, and after a kill -9 when the same user starts dahl execute again. --ignore-clocks
runs without, and manifest.json, summary.json and dahl compare say so.

The files of a run appear when it ends, all at once, and until then those of an earlier
one stay. A run that does not come to its end takes no complete one's place: it stays in
.staging there, and the next run removes it, unless it went on for a minute and can be
resumed. Weights go to --save as well, whatever becomes of the directory: as an archive of NumPy's
arrays, or with the network as an ONNX file (--save net.onnx), whose input is what the network reads (pixels
from 0 to 1, or the numbers of tokens) and whose output is the logits. Transformers are written, too. A network with a
layer that ONNX files of dahl lack is refused before it trains.

Under mpirun (or Slurm's srun) it starts as a rank for each node of a platform of several. Rank 0 writes the files. A rank
with another program, platform, graph, plan or data is refused before the first step. If a rank dies or stands still, the others
end within 10 s, and --resume goes on from the last checkpoint, with as many nodes or fewer. With --continue-on-loss the ranks that are left do so themselves, where Open MPI 5 started
them by mpirun --with-ft ulfm. There is then a checkpoint before the first step and after every n steps.

A device that is lost or out of memory ends the run with its task named. With
--continue-on-loss the training is planned anew on the other devices and goes on
from the last step whose weights were kept, with the same data in the same order. A
run then keeps them on the host after every step, or every n with =n: until they are
there and copied the next step waits, which costs a short step most. An evaluation
starts again. What came after a loss is a run directory of its own in that of the run.

` + watch.Help + `

` + recordHelp

func newExecute(args []string) *cobra.Command {
	o := flags.Options{Args: args}
	var f executeFlags
	cmd := &cobra.Command{
		Use:   "execute --model NAME|FILE [--data NAME|DIR]",
		Short: "train a network on this machine and measure its tasks",
		Long:  executeHelp,
		Example: `  dahl execute --model digits-cnn --epochs 5
  dahl execute --platform here.toml --model lenet5 --data mnist/ --batch 32 --save lenet5.onnx
  dahl execute --model mlp --policy eager --workers 2 --json
  dahl execute --resume dahl-execute --epochs 20`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd, &o) },
	}
	flags.AddExecuteFlags(cmd, &o, &f.Execute)
	return cmd
}

// run opens an interrupted training where one is to go on, takes the terminal for its page, and trains.
func (f *executeFlags) run(cmd *cobra.Command, o *flags.Options) (err error) {
	if f.ranks, err = joinRanks(); err != nil {
		return err
	}
	if f.ranks != nil {
		defer func() { err = f.ranks.Close(err) }()
		if f.ranks.Rank > 0 {
			cli.LogTo(io.Discard)                             // rank 0 says the same
			defer cli.Saving(cmd.Context(), savingTraining)() // and ends the training at a signal
		}
	}
	progress := cmd.OutOrStdout()
	if f.Out.JSON {
		progress = io.Discard
	}
	if f.Resume != "" {
		if f.ranks == nil || f.ranks.Rank == 0 {
			f.from, err = openInterrupted(cmd, f.Resume, o)
		}
		if err = shareOptions(f.ranks, o, err); err != nil {
			return err
		}
		if f.from != nil {
			defer f.from.dir.Close()
		}
		f.Out.Dir = f.Resume
	}
	if f.stderr, f.page = cmd.ErrOrStderr(), cli.NewPage(cmd.ErrOrStderr()); f.page != nil {
		progress = f.page.Above(progress)
		cli.LogTo(f.page.Above(f.stderr))
		defer cli.LogTo(f.stderr)
	}
	err = runTraining(cmd.Context(), cmd.OutOrStdout(), progress, o, f)
	for f.ranks != nil && o.ContinueOnLoss > 0 && execute.Lost(err) {
		err = f.goOnWithout(cmd, progress, o, err)
	}
	return err
}

// savingTraining is the text with which a training answers a signal.
const savingTraining = "the training ends after this step, and its files are written"

// runTraining runs one training from options to files. On an interruption or a
// failure it writes what was done so far and returns the error.
func runTraining(ctx context.Context, stdout, progress io.Writer, o *flags.Options, f *executeFlags) error {
	recoverClocks()
	w, err := trainingWorkload(ctx, o)
	if err == nil {
		err = w.streamTogether(f.ranks)
	}
	if err != nil {
		return err
	}
	if w.Options.Ranks = f.ranks; f.ranks != nil && f.ranks.Rank > 0 {
		return w.serve(ctx)
	}
	if err := w.checkRanks(); err != nil {
		return err
	}
	predicted, err := w.Predict(ctx)
	if err != nil {
		return cli.AsInput(err)
	}
	defer cli.Saving(ctx, savingTraining)()
	release, err := w.holdClocks(&f.Execute, setclock.Used(w.Platform, w.Decision.ClocksUsed()))
	if err != nil {
		return err
	}
	defer release()
	if w.Platform.HasCaps() {
		slog.Warn("the prediction keeps power_cap; nothing keeps it in the run")
	}
	t, err := newTrainer(w, progress, f.from)
	if err != nil {
		return err
	}
	defer t.Close()
	t.Predicted = predicted
	if err := w.agree(ctx, t.Runner); err != nil {
		return err
	}
	if t.devices, _, err = w.compareSets(ctx, predicted, f.CompareDevices); err != nil {
		return err
	}
	if err := w.checkSave(f.Save, f.Out.Dir); err != nil {
		return err
	}
	k, err := f.keeper(ctx, t)
	if err != nil {
		return err
	}
	defer k.dir.Close()
	t.announce(progress, f.from, k.manifest)
	runErr := t.watched(ctx, f)
	runErr = errors.Join(runErr, t.save(f.Save))
	if err := k.commit(t, runErr); err != nil {
		return err
	}
	if f.Out.JSON {
		return cli.PrintJSON(stdout, t.summarize())
	}
	t.printOutcome(progress, k.dir)
	return nil
}

// watched trains between two readings of the meters and shows the progress. Then it measures the compared sets of devices.
func (t *trainer) watched(ctx context.Context, f *executeFlags) error {
	meters := t.w.startMeters()
	shown := watch.New(t.Trainer, meters, t.w.Decision.ReservedBytes(), f.page, f.Watch, f.stderr)
	shown.Start()
	runErr := t.run(ctx)
	shown.End()
	t.gpus = meters.States
	if t.w.Options.Ranks != nil {
		t.gather(meters, runErr)
		return runErr
	}
	var err error
	if t.Readings, err = meters.Stop(); err != nil {
		slog.Warn("an energy meter failed; its joules are modelled", "error", err)
	}
	t.MeterStates = meters.MeterStates()
	if runErr == nil {
		runErr = t.measureSets(ctx, f.CompareDevices)
	}
	return runErr
}

// printOutcome says what the run came to, and where it is kept.
func (t *trainer) printOutcome(out io.Writer, dir *rundir.Dir) {
	t.printMeasured(out)
	t.printLosses(out, dir)
	if t.devices != nil {
		words.PrintSets(out, t.devices)
	}
	fmt.Fprintf(out, "files     %s; more with: dahl compare %s\n", dir.Path(), dir.Path())
	s := t.summarize()
	t.w.headline(t.Measured, s).print(out, t.predictionText(s))
}

// trainingWorkload opens the data, fits the model to it and makes the decisions
// for this machine.
func trainingWorkload(ctx context.Context, o *flags.Options) (*workload, error) {
	m, d, err := flags.TrainingData(o)
	if err != nil {
		return nil, err
	}
	p, err := flags.ThisMachine(o)
	if err != nil {
		return nil, err
	}
	return newWorkload(ctx, o, m, p, d)
}

// writeLeg writes the outcome of a leg, the simulated schedule of the same segment and the
// figure of both.
func (w *workload) writeLeg(ctx context.Context, d *rundir.Dir, l *train.Leg, s *record.Summary) error {
	if err := w.writeOutcome(d, l.Measured, s); err != nil {
		return err
	}
	c, err := plan.CompareUnsplit(ctx, w.Decision, l.Predicted.Main, l.Measured.Main)
	if err != nil {
		return err
	}
	p := w.mainProblem(c.Steps)
	if err := d.WritePredicted(c.Predicted, p.Graph, p.Platform); err != nil {
		return err
	}
	err = d.Write(record.CompareFile, func(out io.Writer) error { return runs.DrawComparison(out, c, p, l.Measured.Main, s) })
	if errors.Is(err, plots.ErrNoData) {
		return nil
	}
	return err
}

// summarize adds what only a training knows.
func (t *trainer) summarize() *record.Summary {
	s := t.w.summarize(t.Measured, t.Readings...)
	s.Diverged, s.Load = t.Diverged, t.load
	s.Ranks = t.measured
	s.Devices, s.Losses, s.EnergyJ.Metered, s.EnergyJ.Meters = t.devices, t.Losses, t.metered(), t.MeterStates
	b := cli.ThisBuild()
	s.Provenance = &b
	if n := len(t.Epochs); n > 0 {
		s.AddLast(&t.Epochs[n-1])
		s.AddPerplexity(t.w.Model)
	}
	samples := 0
	for _, step := range t.Steps {
		samples += step.Samples
	}
	if n := len(t.Steps); n > 0 {
		s.Steps, s.Shown.Of = n, n // with those before the training went on
		s.Trained = &record.TrainedSummary{Epochs: len(t.Epochs), Samples: samples, FirstLoss: record.Number(t.Steps[0].Loss), WeightsSHA256: t.WeightsHash(), ResumedAfterStep: t.resumedAfter, PeakBytes: budget.PeakBytes()}
		if t.Predicted != nil {
			s.Trained.PredictedStepS, s.Trained.PredictedS, s.Trained.PredictedJoules = t.Predicted.Counted.StepS(), t.Predicted.Run.Seconds(), t.Predicted.Joules
		}
		if c := t.Saving; c.Count > 0 {
			s.Trained.Checkpoints = &record.SavingSummary{Count: c.Count, DrainS: c.Drain.Seconds(), WriteS: c.Write.Seconds()}
		}
	}
	return s
}

// announce prints the training that begins or goes on.
func (t *trainer) announce(progress io.Writer, from *interrupted, manifest *record.Manifest) {
	t.w.printTraining(progress, t.Predicted)
	if from != nil {
		from.print(progress, manifest)
	}
	for _, warning := range t.Runner.Warnings() {
		slog.Warn(warning)
	}
}

// printTraining says what is about to run.
func (w *workload) printTraining(out io.Writer, predicted *plan.Totals) {
	g := w.Program.Graphs[0]
	words.PrintData(out, &w.Data)
	if w.Options.Stream {
		fmt.Fprintf(out, "streamed  %s\n", w.Data.StreamedText(w.opts.Batch))
	}
	w.printNetwork(out)
	fmt.Fprintf(out, "machine   %s, %s%s\n", cmp.Or(w.Platform.Name, "without a name"), naming.Count(len(w.Platform.Workers), "worker"), words.ClocksText(w.Platform)+w.clocks.String()+w.ranksText())
	fmt.Fprintf(out, "trained   by %s\n", w.Model.Defaults)
	w.chosenDevices.Print(out)
	fmt.Fprintf(out, "graph     %s and %s GFLOP per step; policy %s; predicted: step %s, run %s\n",
		naming.Count(g.NumTasks(), "task"), cli.ThreeDigits(g.TotalFlops()/1e9), w.policyText(predicted.Main.Policy), cli.ShortTime(predicted.Counted.PerStep()), cli.ShortTime(predicted.Run))
	words.PrintStages(out, w.Lowering, g)
	if w.Platform.Spread() {
		var each []string
		for m, b := range w.Decision.ReservedBytes() {
			each = append(each, w.Platform.Memories[m].Name+" "+cli.ShortBytes(b))
		}
		fmt.Fprintf(out, "reserved  %s\n", strings.Join(each, ", "))
	}
}

// printNetwork names the network and the size of its training.
func (w *workload) printNetwork(out io.Writer) {
	fmt.Fprintf(out, "network   %s, %s, %s, batch %d, %s\n", w.Model.Name, w.Options.Type, naming.Count(w.Model.NumWeights(), "weight"), w.Options.Batch, naming.Count(w.opts.Epochs, "epoch"))
}

// printMeasured prints the totals of the run and of its prediction.
func (t *trainer) printMeasured(out io.Writer) {
	m, predicted := t.Measured, t.Predicted
	after := ""
	if t.resumedAfter > 0 {
		after = fmt.Sprintf(" after step %d", t.resumedAfter)
	}
	fmt.Fprintf(out, "measured  run %s%s (predicted %s, %+.1f %%), %s", cli.ShortTime(m.Run), after, cli.ShortTime(predicted.Run), plan.ErrorPercent(predicted.Run.Seconds(), m.Run.Seconds()), t.energyText())
	if m.Basis != energy.Unavailable {
		fmt.Fprintf(out, ", %s (predicted %s, %+.1f %%)", cli.KilowattHours(m.Joules), cli.ShortJoules(predicted.Joules), plan.ErrorPercent(predicted.Joules, m.Joules))
	}
	fmt.Fprintln(out)
	words.PrintMeters(out, t.MeterStates, t.Readings)
	words.PrintRanks(out, t.measured)
	fmt.Fprintf(out, "memory    %s\n", t.w.memoryText(m))
	problem := t.w.mainProblem(m.Main.Steps)
	words.PrintStates(out, plan.StatesOf(problem, m.Main, m.Report))
	words.PrintNodes(out, plan.NodesOf(problem, m.Main, m.Report))
	if metered := t.metered(); len(metered) > 0 {
		fmt.Fprintf(out, "metered   %s\n", words.Metered(metered))
	}
	if r := record.Recording(m); r != nil {
		fmt.Fprintf(out, "recorded  %s\n", r)
	}
}

// predictionText returns the predicted step and the causes of its error, for the end of a line. It is empty for a
// resumed training that had only evaluations left.
func (t *trainer) predictionText(s *record.Summary) string {
	p, m := t.Predicted.Counted.PerStep(), t.Measured.Counted.PerStep()
	if p == 0 {
		return ""
	}
	off := plan.ErrorPercent(p.Seconds(), m.Seconds())
	causes := runs.ErrorCauses(off, t.w.mainProblem(1), t.Measured.Main, s)
	return fmt.Sprintf(" (predicted %s, %+.1f %%%s)", cli.ShortTime(p), off, runs.CausesText(causes))
}
