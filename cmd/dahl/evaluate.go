package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"dahl/cmd/cli"
	"dahl/cmd/dahl/flags"
	"dahl/cmd/dahl/record"
	"dahl/cmd/dahl/words"
	"dahl/execute"
	"dahl/naming"
	"dahl/nn/weights"
	"dahl/plots"
	"dahl/rundir"
)

// evaluateCommand is the command in its manifests.
const evaluateCommand = "evaluate"

// evaluation are the arguments and flags of the command.
type evaluation struct {
	of      string        // a run directory, or a file of weights or of a network with them
	given   flags.Options // by flags
	workers int
	save    string
	outputs string
	out     flags.Output
}

func newEvaluate(args []string) *cobra.Command {
	var e evaluation
	cmd := &cobra.Command{
		Use:   "evaluate RUN|WEIGHTS|NETWORK.onnx [--data NAME|DIR]",
		Short: "let a trained network predict a test set",
		Long: `evaluate lets a trained network predict the samples of a test set: of the data that it was trained
with, or of --data. Of a run directory it takes the weights, the network, how layers are cut, and the machine. Then loss and accuracy
on the same data are those of the run's last epoch, to the last bit; with another --batch layers are cut for that one. A file of weights (` + naming.OneOf(weights.Endings()) + `) needs --model; it and an
ONNX file predict on this machine or on that of --platform. Data without a test set are predicted as a whole. Steps are those
of dahl simulate --inference. With --plan they follow a plan by dahl plan --inference, and loss and accuracy may differ in their
last bits.

It prints loss, accuracy and the confusion matrix, and samples per second and joules per sample of the
inference, predicted before and measured after, as execute does. The directory has what a run of execute has, and:

  ` + record.PredictionsFile + `  for each sample (or position of it) its label, the predicted class and its probability:
                   the softmax of the outputs
  confusion.svg    how often each class was predicted for each label, of up to ` + fmt.Sprint(record.MostClassesDrawn) + ` classes
  ` + record.MistakesFile + `     the pictures that were predicted wrong, the surest first: their number, label and prediction

` + flags.DataHelp,
		Example: `  dahl evaluate dahl-execute
  dahl evaluate dahl-execute --data mnist/ --out on-mnist --save lenet5.onnx
  dahl evaluate lenet5.npz --model lenet5 --data mnist/ --batch 256
  dahl plan --inference --platform here.toml --model lenet5 --data mnist/ --batch 256 --objective time
  dahl evaluate lenet5.npz --model lenet5 --platform here.toml --data mnist/ --batch 256 --plan dahl-plan/plan.json`,
		Args: cli.WantArgs(1, 1, "the directory of a training, a file of weights, or an .onnx file"),
		RunE: func(cmd *cobra.Command, of []string) error {
			e.of, e.given.Args = of[0], args
			return e.run(cmd.Context(), cmd.OutOrStdout())
		},
	}
	f := cmd.Flags()
	f.StringVar(&e.given.Data, "data", "", "data whose test set is predicted: digits, text, synthetic[:SHAPE[:N[:CLASSES[:POSITIONS]]]], tokens[:T[:N[:V]]], or a `path` (default: the run's)")
	f.StringVar(&e.given.Resize, "resize", "", "scale pictures to `HxW` pixels (default: as the run did)")
	f.StringVar(&e.given.Model, "model", "", "network: a `name` (see dahl graph --list), a TOML model file, or an ONNX file (default: the run's)")
	f.StringVar(&e.given.Platform, "platform", "", "machine: a TOML `file`, or the name of one that ships with dahl (default: the run's; of a file this machine)")
	f.StringVar(&e.given.DType, "dtype", "", "element `type`: "+naming.OneOf(cli.RealTypes())+" (default: the run's; of a file float32)")
	f.StringVar(&e.given.Plan, "plan", "", "replay the decisions of a plan `file`, as dahl plan --inference writes one (default: as the run did; of a file by "+flags.ListPolicy+")")
	f.IntVar(&e.given.Batch, "batch", 0, "`samples` per step (default: the run's; of a file the model's)")
	f.IntVar(&e.workers, "workers", 0, fmt.Sprintf("`cores` of the processor to use, at most %d for each that there is (default: all of the platform's)", execute.MaxWorkersPerCore))
	flags.AddSaveFlag(cmd, &e.save)
	f.StringVar(&e.outputs, "outputs", "", "write the outputs of the network for all samples, before any softmax, to an .npz `file`")
	flags.AddOutputFlags(cmd, &e.out, "dahl-evaluate")
	return cmd
}

// run evaluates, and writes what came out.
func (e *evaluation) run(ctx context.Context, stdout io.Writer) error {
	progress := stdout
	if e.out.JSON {
		progress = io.Discard
	}
	o, err := e.options()
	if err != nil {
		return err
	}
	return e.runWith(ctx, stdout, progress, o)
}

// runWith evaluates with options.
func (e *evaluation) runWith(ctx context.Context, stdout, progress io.Writer, o *flags.Options) error {
	m, d, err := flags.TrainingData(o)
	if err != nil {
		return err
	}
	p, err := flags.ThisMachine(o)
	if err != nil {
		return err
	}
	w, err := newWorkload(ctx, o, m, p, d)
	if err != nil {
		return err
	}
	predicted, err := w.Predict(ctx)
	if err != nil {
		return cli.AsInput(err)
	}
	t, err := newTrainer(w, nil, nil)
	if err != nil {
		return err
	}
	defer t.Close()
	t.Predicted = predicted
	if err := cmp.Or(record.CheckRun(e.out.Dir), w.checkSave(e.save, e.out.Dir), cli.CheckWritable(e.outputs)); err != nil {
		return err
	}
	begun, err := t.begins(ctx, evaluateCommand)
	if err != nil {
		return err
	}
	w.printEvaluation(progress, predicted.Main.Policy)
	if err := t.evaluate(ctx); err != nil {
		return err
	}
	if err := cmp.Or(t.save(e.save), t.saveOutputs(e.outputs)); err != nil {
		return err
	}
	dir, err := record.CreateRun(e.out.Dir, begun)
	if err != nil {
		return err
	}
	defer dir.Close()
	s := t.summarizeEvaluation()
	begun.Complete, begun.GPUs = true, t.gpus
	if err := t.writeEvaluation(ctx, dir, s); err != nil {
		return err
	}
	if _, err := dir.Commit(begun); err != nil {
		return err
	}
	if e.out.JSON {
		return cli.PrintJSON(stdout, s)
	}
	t.printEvaluated(stdout, dir, s)
	return nil
}

// evaluate runs the steps between the meters.
func (t *trainer) evaluate(ctx context.Context) error {
	meters := flags.StartMeters(t.w.Platform)
	runErr := t.run(ctx)
	var err error
	if t.Readings, err = meters.Stop(); err != nil {
		slog.Warn("an energy meter failed; its joules are modelled", "error", err)
	}
	t.gpus, t.MeterStates = meters.States, meters.MeterStates()
	return runErr
}

// options are the options of the run with changes by flags, or of flags alone.
func (e *evaluation) options() (*flags.Options, error) {
	info, err := os.Stat(e.of)
	if err != nil {
		return nil, cli.InputErrorf("%s: no such directory or file; name the directory of a training, a file of weights, or an .onnx file", e.of)
	}
	o := &flags.Options{DType: "float32", Seed: 1, Policy: flags.ListPolicy, Init: e.of}
	if info.IsDir() {
		if o, err = e.ofRun(); err != nil {
			return nil, err
		}
	} else if isONNX(e.of) {
		o.Model, o.Init = e.of, ""
	} else if e.given.Model == "" {
		return nil, cli.InputErrorf("%s has weights without their network; name it with --model", e.of)
	}
	if e.given.Data != "" {
		o.Data, o.Resize = e.given.Data, ""
	}
	o.Model, o.Platform, o.Resize = cmp.Or(e.given.Model, o.Model), cmp.Or(e.given.Platform, o.Platform), cmp.Or(e.given.Resize, o.Resize)
	if e.given.Plan != "" {
		o.Plan, o.Recorded = e.given.Plan, nil
	}
	if b := e.given.Batch; b != 0 && b != o.Batch && o.Recorded != nil && o.Recorded.Stages == nil {
		o.Recorded, o.Lowering = nil, flags.DefaultTiles // tiles for many samples leave cores without work where a step has few
	}
	o.DType, o.Batch, o.Workers = cmp.Or(e.given.DType, o.DType), cmp.Or(e.given.Batch, o.Batch), e.workers
	o.Outputs = e.outputs != ""
	o.Args, o.Epochs, o.Inference, o.ContinueOnNaN, o.Checkpoint = e.given.Args, 1, true, true, flags.NeverCheckpoint
	return o, nil
}

// ofRun are the options of a run as far as they say how it was evaluated.
func (e *evaluation) ofRun() (*flags.Options, error) {
	m, err := record.ReadManifest(e.of)
	if err != nil {
		return nil, err
	}
	if !m.Lists(record.WeightsFile) {
		return nil, cli.InputErrorf("%s has no %s: it is a run of %s, and only trainings keep weights; name the directory of one", e.of, record.WeightsFile, m.Command)
	}
	if err := rundir.Verify(e.of); err != nil {
		return nil, cli.AsInput(err)
	}
	r := &m.Options
	for _, file := range m.Inputs {
		if file.Name != r.Model || e.given.Model != "" {
			continue
		}
		if sum, err := cli.HashFile(file.Name); err != nil || sum != file.SHA256 {
			return nil, cli.AsInput(cmp.Or(err, cli.InputErrorf("%s has changed since the run; name the network with --model", file.Name)))
		}
	}
	o := &flags.Options{
		Tokens: m.Tokens, Vocabulary: r.Vocabulary, Model: r.Model, Data: r.Data, Limit: r.Limit, Offset: r.Offset, Resize: r.Resize, Batch: r.Batch, DType: r.DType, Variant: r.Variant, Precision: r.Precision,
		Loss: r.Loss, LabelSmoothing: r.LabelSmoothing, Seed: r.Seed, Record: r.Record, Stream: r.Stream, Policy: r.Policy,
		Platform: filepath.Join(e.of, rundir.PlatformFile), Init: filepath.Join(e.of, record.WeightsFile), Recorded: m.Lowering,
	}
	if o.Policy == flags.BestPolicy || r.Plan != "" {
		o.Policy = flags.ListPolicy // on the devices that it chose
	}
	if e.given.Plan != "" && m.Lists(record.MachineFile) {
		o.Platform = filepath.Join(e.of, record.MachineFile) // of which the plan names devices
	}
	return o, nil
}

// printEvaluation says what is about to run.
func (w *workload) printEvaluation(out io.Writer, policy string) {
	d := w.Data.Test
	fmt.Fprintf(out, "data      %s: %s %s\n", d.Name, naming.Count(d.Len(), "test sample"), naming.JoinInts(d.Shape, "x"))
	fmt.Fprintf(out, "network   %s, %s, %s, batch %d\nweights   %s\n", w.Model.Name, w.Options.Type, naming.Count(w.Model.NumWeights(), "weight"), w.Options.Batch, w.opts.Init)
	g := w.Program.Graphs[0]
	fmt.Fprintf(out, "graph     %s and %s GFLOP per step; policy %s; on %s, %s\n", naming.Count(g.NumTasks(), "task"), cli.ThreeDigits(g.TotalFlops()/1e9),
		policy, cmp.Or(w.Platform.Name, "a machine without a name"), naming.Count(len(w.Platform.Workers), "worker"))
}

// summarizeEvaluation is the summary of an evaluation.
func (t *trainer) summarizeEvaluation() *record.Summary {
	s := t.w.summarize(t.Measured, t.Readings...)
	s.Load, s.EnergyJ.Metered, s.EnergyJ.Meters = t.load, t.metered(), t.MeterStates
	b := cli.ThisBuild()
	s.Provenance = &b
	last := &t.Epochs[len(t.Epochs)-1]
	loss := record.Number(last.TestLoss)
	s.TestLoss, s.TestAccuracy, s.AccuracyOf = &loss, &last.TestAccuracy, "test"
	s.AddPerplexity(t.w.Model)
	return s
}

// writeEvaluation writes the files of an evaluation.
func (t *trainer) writeEvaluation(ctx context.Context, dir *rundir.Dir, s *record.Summary) error {
	if err := t.PredictLegs(ctx); err != nil {
		return err
	}
	positions := len(t.Predictions) / t.w.Data.Test.Len()
	if err := dir.Write(record.PredictionsFile, func(out io.Writer) error { return record.WritePredictions(out, t.Predictions, positions) }); err != nil {
		return err
	}
	if classes := t.w.Model.Classes(); classes <= record.MostClassesDrawn {
		matrix := s.Confusion(fmt.Sprintf("%s on %s", t.w.Model.Name, t.w.Data.Test.Name), record.Counted(classes, t.Predictions))
		figure, err := plots.FigureByName("confusion")
		if err == nil {
			err = record.Draw(dir, figure, plots.Input{Confusion: matrix}, record.Screen)
		}
		if err != nil {
			return err
		}
	}
	if err := record.WriteMistakes(dir, t.w.Model.Name, t.w.Data.Test, t.Predictions); err != nil {
		return err
	}
	return t.w.writeLeg(ctx, dir, &t.Leg, s)
}

// printEvaluated says what came out.
func (t *trainer) printEvaluated(out io.Writer, dir *rundir.Dir, s *record.Summary) {
	words.PrintConfusion(out, t.w.Model.Classes(), t.Predictions)
	correct, counted := 0, 0
	for _, p := range t.Predictions {
		if p.Label >= 0 {
			counted++
		}
		if p.Label == p.Predicted {
			correct++
		}
	}
	t.printMeasured(out)
	fmt.Fprintf(out, "files     %s\n", dir.Path())
	t.w.headline(t.Measured, s).print(out, t.predictionText(s))
	fmt.Fprintf(out, "loss      %.6g%s\naccuracy  %.2f %% (%s of %s)\n", float64(*s.TestLoss), t.w.perplexityText(float64(*s.TestLoss)), 100**s.TestAccuracy, naming.Thousands(correct), naming.Thousands(counted))
}
