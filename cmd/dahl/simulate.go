package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"dahl/cmd/cli"
	"dahl/cmd/dahl/flags"
	"dahl/cmd/dahl/record"
	"dahl/cmd/dahl/words"
	"dahl/dag"
	"dahl/energy/meter"
	"dahl/naming"
	"dahl/plan"
	"dahl/platform"
	"dahl/platforms"
	"dahl/plots"
	"dahl/rundir"
	"dahl/schedule"
	"dahl/schedule/explain"
	"dahl/train"
)

func newSimulate(args []string) *cobra.Command {
	o := flags.Options{Args: args}
	var out flags.Output
	cmd := &cobra.Command{
		Use:   "simulate --platform FILE (--model NAME|FILE | --graph FILE)",
		Short: "predict a training step or an inference on a machine described in TOML",
		Long: `simulate replays the task graph of a training step, or one from a file, in a
deterministic discrete-event simulator of the machine. Equal input gives
byte-identical files. It prints the time and the joules of a step, and the distance of the run from
a lower bound of all schedules; --verbose says more. With --samples it repeats the run with durations drawn
from the distributions of a calibration, and prints the ranges of time and
energy; equal seeds draw the same. With --epochs it predicts a whole training, as execute with the same flags does
before it trains: the time, the joules and the kilowatt hours of all steps, of the short last batch and of the
evaluation after each epoch. Compiling, reading data before the first step and checkpoints are not in it. With --inference a step is one of dahl evaluate: the network
predicts a batch, with the running statistics of batch normalisation and without gradients; what weights alone decide, such as their
other layouts, is done once before all steps. With processors and other devices in --devices,
such as cpu,gpu, it says whether they are better together than each kind alone.

` + flags.BestPolicyHelp + `

` + flags.StrategyHelp,
		Example: `  dahl simulate --platform laptop --model lenet5 --batch 64 --steps 10
  dahl simulate --platform server --model resnet18 --batch 256 --inference
  dahl simulate --platform server --model resnet18 --data synthetic:3x32x32:50000:10 --epochs 90
  dahl simulate --platform node.toml --graph cholesky.json --policy dmda --json
  dahl simulate --platform node.toml --graph vgg16.json --policy pipedream:4 --steps 200`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return runSimulate(cmd.Context(), cmd.OutOrStdout(), &o, &out)
		},
	}
	flags.AddSimulateFlags(cmd, &o, &out, "dahl-simulate")
	flags.AddSamplesFlag(cmd, &o)
	addDumpFlag(cmd, &out)
	return cmd
}

// runSimulate predicts a run, and writes its directory.
func runSimulate(ctx context.Context, stdout io.Writer, o *flags.Options, out *flags.Output) error {
	if out.Dump == "" {
		if err := record.CheckRun(out.Dir); err != nil {
			return err
		}
	}
	w, err := simulatedWorkload(ctx, o)
	if err != nil {
		return err
	}
	r, err := w.predicted(ctx, ctx)
	if err != nil {
		return err
	}
	if out.Dump != "" {
		return w.dump(stdout, out.Dump)
	}
	if o.Samples > 0 {
		if r.summary.Samples, err = plan.Sample(ctx, w.Decision, w.Program.Order[0], o.Samples, o.Seed); err != nil {
			return err
		}
	}
	path, err := r.write(w.newManifest("simulate"), out.Dir, func(*rundir.Dir) error { return nil })
	if err != nil {
		return err
	}
	if out.JSON {
		return cli.PrintJSON(stdout, r.summary)
	}
	r.print(stdout, out)
	r.printEnd(stdout, path)
	return nil
}

// prediction is a run as it is predicted.
type prediction struct {
	w       *workload
	result  *plan.Totals
	summary *record.Summary
	head    *headline
}

// predicted simulates what was decided, and compares the kinds of devices until trials ends. Where one of them is faster than what the
// policy best decided, the run has it.
func (w *workload) predicted(ctx, trials context.Context) (*prediction, error) {
	result, err := w.Predict(ctx)
	if err != nil {
		return nil, cli.AsInput(err)
	}
	sets, alone, err := w.compareSets(trials, result, false)
	if err != nil && (ctx.Err() != nil || trials.Err() == nil) {
		return nil, cmp.Or(ctx.Err(), cli.AsInput(err))
	}
	if w.opts.AsksBest() {
		result = w.takeFaster(sets, alone, result)
	}
	s := w.summarize(result)
	s.Models, s.Devices = explain.ModelErrorOf(&w.Decision.Graphs[0].Problem), sets
	return &prediction{w, result, s, w.headline(result, s)}, nil
}

// print prints the description of a run and its parts.
func (r *prediction) print(stdout io.Writer, out *flags.Output) {
	r.w.printRun(stdout, r.summary)
	r.w.chosenDevices.Print(stdout)
	words.PrintStates(stdout, r.summary.States)
	words.PrintNodes(stdout, r.summary.Nodes)
	if out.Verbose {
		r.w.printDetails(stdout, r.result, r.summary)
	}
	words.PrintCompared(stdout, r.summary)
	if r.w.opts.Epochs > 0 {
		fmt.Fprintf(stdout, "training  %s: %s, %s (%s), %s\n", r.w.epochsText(), cli.ShortTime(r.result.Run), cli.ShortJoules(r.result.Joules), r.result.Report.Grounds(), cli.KilowattHours(r.result.Joules))
	}
}

// write writes the directory of a run, with what more it has. It returns where that is.
func (r *prediction) write(m *record.Manifest, path string, more func(*rundir.Dir) error) (string, error) {
	dir, err := record.CreateRun(path, m)
	if err != nil {
		return "", err
	}
	defer dir.Close()
	if err := r.w.writeOutcome(dir, r.result, r.summary); err != nil {
		return "", err
	}
	if err := more(dir); err != nil {
		return "", err
	}
	m.Complete = true
	_, err = dir.Commit(m)
	return dir.Path(), err
}

// printEnd prints where the files are, and the lines that every run ends with.
func (r *prediction) printEnd(stdout io.Writer, path string) {
	fmt.Fprintf(stdout, "files     %s\n", path)
	r.head.print(stdout, "")
}

// simulatedWorkload is a workload with the decisions of its options.
func simulatedWorkload(ctx context.Context, o *flags.Options) (*workload, error) {
	w, err := undecidedWorkload(ctx, o)
	if err != nil {
		return nil, err
	}
	_, err = w.choosePlan(ctx)
	return w, err
}

// undecidedWorkload loads what simulate and plan work on: some steps of one graph, or a whole training.
func undecidedWorkload(ctx context.Context, o *flags.Options) (*workload, error) {
	if o.Platform == "" {
		return nil, cli.InputErrorf("name the machine with --platform: a TOML file, or one of %s", strings.Join(platforms.Names(), ", "))
	}
	if err := cmp.Or(flags.CheckRounds("steps", o.Steps, 1), flags.CheckRounds("epochs", o.Epochs, 0), flags.CheckRounds("samples", o.Samples, 0)); err != nil {
		return nil, err
	}
	whole, p, err := o.Machine()
	if err != nil {
		return nil, err
	}
	w, err := mainGraph(ctx, o, p, whole)
	if err != nil {
		return nil, err
	}
	w.fullPlatform = whole
	if o.Epochs == 0 {
		w.Program.Order[0].Steps = o.Steps
	}
	return w, nil
}

// mainGraph builds the program of the first graph alone, for one step on some devices of a
// platform, or of a whole training. It refuses costs for devices that the whole platform does not have.
func mainGraph(ctx context.Context, o *flags.Options, p, whole *platform.Platform) (*workload, error) {
	err := o.CheckData()
	if err != nil {
		return nil, err
	}
	w := &workload{opts: o, Workload: train.Workload{Options: train.Options{OtherMachine: true}, Platform: p}}
	if o.Model != "" {
		if w.Model, w.Samples, err = flags.FittedModel(o); err != nil {
			return nil, err
		}
	}
	if err := w.build(); err != nil {
		return nil, err
	}
	if o.Platform != "" {
		if err := schedule.CheckGiven(w.Program.Graphs[0], whole); err != nil {
			return nil, cli.InputErrorf("%s: %w", o.Graph, err)
		}
	}
	if o.Epochs == 0 {
		w.Program.Graphs = w.Program.Graphs[:1]
		w.Program.Order = []dag.Segment{{Graph: 0, Steps: 1}}
	}
	return w, nil
}

// printRun says in a line what was simulated.
func (w *workload) printRun(out io.Writer, s *record.Summary) {
	g := w.Program.Graphs[0]
	name, work := cmp.Or(g.Name, "without a name"), ""
	if w.Model != nil {
		name = fmt.Sprintf("%s, batch %d, %s", w.Model.Name, w.opts.Batch, g.Name)
	}
	if flops := g.TotalFlops(); flops > 0 {
		work = fmt.Sprintf(" and %s GFLOP", cli.ThreeDigits(flops/1e9))
	}
	fmt.Fprintf(out, "graph     %s: %s%s per step; on %s with %s%s; policy %s, steps %d\n",
		name, naming.Count(g.NumTasks(), "task"), work, cmp.Or(w.Platform.Name, "a platform"), naming.Count(len(w.Platform.Workers), "worker"), words.ClocksText(w.Platform), w.policyText(s.Policy), s.Steps)
	if w.rescaled != "" {
		fmt.Fprintf(out, "times     %s\n", w.rescaled)
	}
	words.PrintStages(out, w.Lowering, g)
	words.PrintStrategy(out, s)
}

// printDetails prints what a simulated run consists of.
func (w *workload) printDetails(out io.Writer, o *plan.Totals, s *record.Summary) {
	fmt.Fprintf(out, "time      first step %s", cli.ShortTime(o.Main.FirstStep))
	if s.Steps > 1 {
		fmt.Fprintf(out, ", then %s per step", cli.ShortTime(o.Counted.PerStep()))
	}
	fmt.Fprintln(out)
	words.PrintWaits(out, s.Waits)
	words.PrintSources(out, s.Models)
	fmt.Fprintf(out, "joules    %s in all (%s)\n", cli.ShortJoules(o.Joules), o.Report.Grounds())
	fmt.Fprintf(out, "memory    %s\n", w.memoryText(o))
	fmt.Fprintf(out, "moved     %s, %s%s\n", naming.Count(s.Transfers, "transfer"), cli.ShortBytes(s.BytesMoved), words.ReasonsText(s.TransfersByReason))
	if s.Evictions != nil {
		fmt.Fprintf(out, "room      %s of %s for lack of it\n", naming.Count(s.Evictions.Count, "eviction"), cli.ShortBytes(s.Evictions.Bytes))
	}
}

// newManifest fills what every run knows of itself.
func (w *workload) newManifest(command string) *record.Manifest {
	m := &record.Manifest{
		Build: cli.ThisBuild(), Command: command, Args: record.ArgsWithout(w.opts.Args, "out"), // where a run is kept is not part of what it is
		Host:    cli.ThisHost(),
		Options: *w.opts, Platform: cli.Identity{Name: w.Platform.Name, SHA256: w.Platform.Hash()}, Lowering: w.Lowering,
		Chosen: w.chosenDevices, Variants: w.variants(), Inputs: w.inputs, MachineClocks: w.clocks,
	}
	if w.Model != nil {
		m.Model = w.Model.Name
	}
	if d := w.Data.Train; d != nil {
		m.Tokens = d.Vocabulary
	}
	for _, g := range w.Program.Graphs {
		m.Graphs = append(m.Graphs, cli.Identity{Name: g.Name, SHA256: g.Hash()})
	}
	return m
}

// summarize fills the numbers that simulated and executed runs share, and the readings of meters
// over the run with evaluations and the time between segments. The makespan includes the whole
// program.
func (w *workload) summarize(o *plan.Totals, readings ...meter.Reading) *record.Summary {
	problem := w.mainProblem(o.Main.Steps)
	s := &record.Summary{
		World: o.World, Graph: problem.Graph.Name, Policy: o.Main.Policy, Chosen: w.chosenDevices, Clocks: w.Platform.ClocksInForce(), MachineClocks: w.clocks,
		Steps: o.Steps, MakespanS: o.Run.Seconds(), Counted: record.CountedSummary{Steps: o.Counted.Steps, Samples: o.Counted.Samples, Seconds: o.Counted.Time.Seconds(), Joules: o.Counted.Joules},
		EnergyJ: record.EnergySummary{Total: o.Joules, Basis: o.Basis, Grounds: o.Report.Grounds(), ByDevice: o.ByDevice, ByLink: o.ByLink, Readings: readings},
		Tasks:   o.Tasks, Transfers: o.Transfers, BytesMoved: o.BytesMoved, TransfersByReason: o.Reasons, Recorded: record.Recording(o),
		LivePeakBytes: map[string]int64{}, ReservedBytes: map[string]int64{}, Shown: w.shown(o), Busy: plan.BusyShares(w.Platform, o.Main), Nodes: plan.NodesOf(problem, o.Main, o.Report), Waits: plan.WaitsOf(problem, o.Main),
		States: plan.StatesOf(problem, o.Main, o.Report),
	}
	s.Work = record.NewStepWork(problem, o.Main, s.Waits)
	if w.Model != nil {
		s.Network = w.Model.Name
	}
	if w.Model != nil && !w.opts.Inference {
		s.Method, s.EpochSamples = w.Model.Defaults.String(), w.Samples.Train
	}
	f := w.figures(o, readings...)
	if s.StepS = f.StepS; f.SamplesPerS > 0 {
		s.SamplesPerS, s.EnergyJ.PerSample, s.EnergyJ.PerSampleBasis = &f.SamplesPerS, f.JoulesPerSample, f.Basis
	}
	if o.Evicted.Count > 0 {
		s.Evictions = &o.Evicted
	}
	w.addStrategy(s, o)
	for m, b := range w.Decision.ReservedBytes() {
		name := w.Platform.Memories[m].Name
		s.LivePeakBytes[name], s.ReservedBytes[name] = o.PeakBytes[m], b
	}
	for _, seg := range w.Program.Order {
		s.LowerBoundS += w.Decision.Priced.LowerBound(seg.Graph, seg.Steps).Seconds()
	}
	return s
}

// shown describes the steps in the main schedule of some totals.
func (w *workload) shown(o *plan.Totals) *record.ShownSteps {
	s := &record.ShownSteps{Steps: o.Main.Steps, Of: o.Steps, Epoch: o.Epoch, First: o.First, FirstStepS: o.Main.FirstStep.Seconds(), SteadyStepS: o.Main.Period.Seconds(),
		LowerBoundS: w.Decision.Priced.LowerBound(0, o.Main.Steps).Seconds()}
	if s.Epoch > 0 {
		s.Epochs = w.opts.Epochs
	}
	return s
}

// writeOutcome writes what both worlds have: inputs, decisions, schedule, energy, summary
// and figures of the program's main graph.
func (w *workload) writeOutcome(d *rundir.Dir, o *plan.Totals, s *record.Summary) error {
	p := w.mainProblem(o.Main.Steps)
	recorded := *w.Decision.PlanOf(0, o.Main)
	recorded.GraphHash, recorded.Lowering = p.Graph.Hash(), w.Lowering
	recorded.On = w.Options.Devices
	recorded.Variants = p.Costs.Variants(p.Graph, p.Platform)
	report := w.withReadings(o.Report, s.EnergyJ.Readings, len(s.Losses) > 0)
	report.Epoch, report.FirstStep, report.Meters = o.Epoch, o.First, s.EnergyJ.Meters
	err := d.WriteResults(&rundir.Results{Platform: w.Platform, Graph: p.Graph, Plan: &recorded, Schedule: o.Main, Energy: report})
	if err == nil && w.chosenDevices.Some() {
		err = d.Write(record.MachineFile, w.searchPlatform.WriteTOML)
	}
	if err == nil {
		err = d.Write(record.SummaryFile, func(out io.Writer) error { return cli.PrintJSON(out, s) })
	}
	if err != nil {
		return err
	}
	run, err := record.NewPlotRun(p, o.Main, s)
	if err != nil {
		return err
	}
	for _, f := range plots.Figures() {
		if err := record.Draw(d, f, plots.Input{Run: run}, record.Screen); err != nil && !errors.Is(err, plots.ErrNoData) {
			return err
		}
	}
	return nil
}

// mainProblem is the program's first graph for a number of steps.
func (w *workload) mainProblem(steps int) *schedule.Problem {
	return w.Decision.Problem(0, steps, false)
}
