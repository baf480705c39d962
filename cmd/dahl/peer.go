package main

import (
	"cmp"
	"context"
	"errors"
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
	"dahl/cmd/dahl/words"
	"dahl/energy"
	"dahl/naming"
	"dahl/platform"
	"dahl/rundir"
	"dahl/schedule"
	"dahl/train"
	"dahl/train/metrics"
	"dahl/train/peer"
)

func newPeer(args []string) *cobra.Command {
	o := flags.Options{Args: args}
	var out flags.Output
	var programs []string
	for _, p := range peer.Programs() {
		programs = append(programs, fmt.Sprintf("  %-16s %s", p.Name, p.Doc))
	}
	cmd := &cobra.Command{
		Use:   "peer PROGRAM --model NAME|FILE",
		Short: "train a network by PyTorch or JAX, as execute trains it",
		Long: `peer trains a network by another program, through a Python interpreter that has it: the same
layers, first weights, samples in the same order, batches, optimiser and number of threads as
dahl execute with the same flags, and the same meters around all steps and evaluations.
Imports and compilation are outside. The losses of the first steps are compared with
dahl's; where they differ by more than rounding, it is not the same network, and an error.

The programs are:

` + strings.Join(programs, "\n") + `

--setting best tries every setting of the program with every memory format for a short time, and
trains with the fastest; others are, on a processor:

` + settingsHelp() + `
The run directory has epochs.csv, steps.csv, summary.json and the manifest; dahl rerun and
dahl verify take it. Training samples are not counted as right or wrong, which would add to the
steps: their accuracy is NaN, and in steps.csv -1 are correct.`,
		Example: `  dahl peer pytorch --model lenet5 --epochs 2
  dahl peer jax --python venv/bin/python --model mlp --setting best --json`,
		Args: cli.WantArgs(1, 1, "the program"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Program = args[0]
			progress := cmd.OutOrStdout()
			if out.JSON {
				progress = io.Discard
			}
			return runPeer(cmd.Context(), cmd.OutOrStdout(), progress, &o, &out)
		},
	}
	flags.AddPeerFlags(cmd, &o)
	flags.AddOutputFlags(cmd, &out, "dahl-peer")
	return cmd
}

// settingsHelp lists the settings of all programs.
func settingsHelp() string {
	var b strings.Builder
	for _, p := range peer.Programs() {
		for _, s := range p.Settings(platform.CPU, 2) {
			fmt.Fprintf(&b, "  %-16s %s: %s\n", p.Name, s.Name, s.Doc)
		}
	}
	return b.String()
}

// runPeer runs one training from options to files.
func runPeer(ctx context.Context, stdout, progress io.Writer, o *flags.Options, out *flags.Output) error {
	program, err := peer.ProgramByName(o.Program)
	if err != nil {
		return cli.AsInput(err)
	}
	w, err := trainingWorkload(ctx, o)
	if err != nil {
		return err
	}
	if w.Options.Init, err = flags.NewInitialiser(o, w.Model, w.Options.Type); err != nil {
		return err
	}
	defer cli.Saving(ctx, "the other program is ended")()
	begun := time.Now()
	t, err := peer.Prepare(ctx, peer.Job{Workload: &w.Workload, Program: program, Python: o.Python, Setting: o.Setting, Idle: flags.IdleWindow,
		Meters:  func() peer.Meters { return flags.StartMeters(w.Platform) },
		OnEpoch: func(m metrics.Epoch) { w.printEpoch(progress, m, m.Epoch, time.Since(begun)) }})
	if missing := (*peer.MissingError)(nil); errors.As(err, &missing) {
		return cli.AsInput(err)
	}
	if err != nil {
		return err
	}
	defer t.Close()
	m := w.newManifest(record.PeerCommand)
	m.Program = &t.Result.Versions
	if m.Data, err = record.HashData(ctx, w.Data.Train, w.Data.Test); err != nil {
		return err
	}
	dir, err := record.CreateRun(out.Dir, m)
	if err != nil {
		return err
	}
	defer dir.Close()
	w.printPeer(progress, &t.Result)
	begun = time.Now()
	if err := t.Run(ctx); err != nil {
		return fmt.Errorf("%d of %d epochs have run: %w", len(t.Result.Epochs), w.opts.Epochs, err)
	}
	s := w.summarizePeer(&t.Result)
	if err := w.writePeer(dir, &t.Result, s, m); err != nil {
		return err
	}
	if out.JSON {
		return cli.PrintJSON(stdout, s)
	}
	r := &t.Result
	fmt.Fprintf(progress, "measured  run %s, %s; %.0f %% of %s; peak memory %s\n", cli.ShowTime(r.Seconds), words.PeerEnergyText(&r.Energy), 100*r.CPUShare(), naming.Count(r.Threads, "core"), cli.ShortBytes(r.PeakBytes))
	fmt.Fprintf(progress, "files     %s\n", dir.Path())
	return nil
}

// writePeer writes the files of the run and commits it.
func (w *workload) writePeer(dir *rundir.Dir, r *peer.Result, s *record.Summary, m *record.Manifest) error {
	m.Complete, m.FinalLoss = true, record.Number(r.Steps[len(r.Steps)-1].Loss)
	var steps, epochs keptTable
	err := cmp.Or(
		addRows(dir, record.StepsFile, &steps, r.Steps, metrics.NewStepWriter, (*metrics.Writer).Step),
		addRows(dir, record.EpochsFile, &epochs, r.Epochs, metrics.NewEpochWriter, (*metrics.Writer).Epoch),
		dir.Write(rundir.PlatformFile, w.Platform.WriteTOML),
		dir.Write(record.SummaryFile, func(out io.Writer) error { return cli.PrintJSON(out, s) }))
	if err != nil {
		return err
	}
	_, err = dir.Commit(m)
	return err
}

// summarizePeer makes the summary of a training by another program.
func (w *workload) summarizePeer(r *peer.Result) *record.Summary {
	b, c := cli.ThisBuild(), train.Counted(r.Epochs)
	rate := float64(c.Samples) / c.Time.Seconds()
	s := &record.Summary{
		World: schedule.Measured, Graph: w.Program.Graphs[0].Name, Method: w.Method().String(), Peer: r,
		Steps: len(r.Steps), MakespanS: r.Seconds, StepS: c.StepS(), Counted: record.CountedSummary{Steps: c.Steps, Samples: c.Samples, Seconds: c.Time.Seconds()}, EpochSamples: w.Samples.Train,
		SamplesPerS: &rate, Provenance: &b,
		EnergyJ: record.EnergySummary{Basis: energy.Unavailable, Grounds: r.Energy.Unavailable, Readings: r.Energy.Readings, Meters: r.Energy.Meters},
		Load:    record.NewLoadSummary(r.Load, r.Threads),
		Trained: &record.TrainedSummary{Epochs: len(r.Epochs), Samples: c.Samples, FirstLoss: record.Number(r.Steps[0].Loss), PeakBytes: r.PeakBytes},
	}
	s.Load.OwnCores = cli.Ratio(r.CPUSeconds, r.Seconds) // finer than the system's ticks
	s.AddLast(&r.Epochs[len(r.Epochs)-1])
	if sum := peer.Sum(r.Energy.Readings); sum.Seconds > 0 && r.Energy.Unavailable == "" {
		s.EnergyJ.Basis, s.EnergyJ.Total = energy.Measured, sum.Joules
		s.EnergyJ.PerSample, s.EnergyJ.PerSampleBasis = sum.Joules/sum.Seconds*c.Time.Seconds()/float64(c.Samples), energy.Measured
	}
	return s
}

// printPeer says what is about to run.
func (w *workload) printPeer(out io.Writer, r *peer.Result) {
	words.PrintData(out, &w.Data)
	w.printNetwork(out)
	fmt.Fprintf(out, "program   %s; setting %s, %s; %s with %s\n", strings.Join(slices.DeleteFunc([]string{r.Versions.Program, r.Versions.Library}, func(s string) bool { return s == "" }), " with "),
		r.Setting, r.Format, r.Device, naming.Count(r.Threads, "thread"))
	fmt.Fprintf(out, "trained   by %s; the first losses differ by %.1g from dahl's\n", w.Method(), r.LossError)
}

// comparePeers compares two trainings by another program. Programs that round differently from run to run
// leave each other's curve after some hundred steps, so that the last losses are shown and not compared.
func comparePeers(old, now *record.Manifest, dir, out string) ([]repeatRow, error) {
	then, err := rundir.ReadAs(filepath.Join(dir, record.StepsFile), readSteps)
	if err != nil {
		return nil, err
	}
	again, err := rundir.ReadAs(filepath.Join(out, record.StepsFile), readSteps)
	if err != nil {
		return nil, err
	}
	o := train.Options{Precision: old.Options.Precision}
	if o.Type, err = cli.RealType(old.Options.DType); err != nil {
		return nil, err
	}
	bounds := slices.Repeat([]float64{peer.LossBound(&o)}, peer.LossSteps)
	_, differ := peer.LossError("the new run", firstLosses(then), firstLosses(again), bounds)
	losses := repeatRow{what: "first losses", same: differ == nil, note: fmt.Sprintf("at the end %v, then %v", old.FinalLoss, now.FinalLoss)}
	if differ != nil {
		losses.note = differ.Error()
	}
	return []repeatRow{
		{what: "program", same: *old.Program == *now.Program, note: fmt.Sprintf("%s, then %s", old.Program.Program, now.Program.Program)},
		{what: "steps", same: len(then) == len(again), note: fmt.Sprintf("%d, then %d", len(then), len(again))},
		losses,
	}, nil
}

func readSteps(f io.Reader, name string) ([]metrics.Step, error) {
	steps, err := metrics.ReadSteps(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return steps, nil
}

// firstLosses are those that rounding does not part yet.
func firstLosses(steps []metrics.Step) (losses []float64) {
	for _, s := range steps[:min(len(steps), peer.LossSteps)] {
		losses = append(losses, s.Loss)
	}
	return losses
}
