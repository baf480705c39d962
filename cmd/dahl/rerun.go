package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"dahl/cmd/cli"
	"dahl/cmd/dahl/flags"
	"dahl/cmd/dahl/record"
	"dahl/platform"
	"dahl/rundir"
	"dahl/rundir/durable"
)

func newRerun([]string) *cobra.Command {
	var out, python string
	cmd := &cobra.Command{
		Use:   "rerun DIR",
		Short: "repeat a run and compare what must come out equal",
		Long: `rerun repeats the run that a directory's manifest describes, on the platform kept
there, and compares. A simulated run must give the same files; an executed one the
same loss in every step, the same weights, the same plan and the same prediction; an evaluation the same classes with the
same probabilities; one by another program the same losses in the first steps, but for rounding, by the same version.
Times are shown, never compared, so that it sets no clocks. It refuses when an input file has changed, and
exits with 1 when something came out different. File names are taken as they were
given: start it in the directory where the run was started.`,
		Example: "  dahl rerun dahl-execute\n  dahl rerun dahl-simulate --out again",
		Args:    cli.WantArgs(1, 1, "the directory of a run"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return rerun(cmd.Context(), cmd.OutOrStdout(), args[0], out, python)
		},
	}
	cli.AddPythonFlag(cmd, &python, "a run by another program")
	cmd.Flags().StringVar(&out, "out", "", "keep the new run in this `directory` (default: compare and forget it)")
	return cmd
}

func rerun(ctx context.Context, stdout io.Writer, dir, out, python string) error {
	old, err := record.ReadManifest(dir)
	if err != nil {
		return err
	}
	if err := repeatable(ctx, old, dir); err != nil {
		return err
	}
	if err := rundir.Verify(dir); err != nil {
		slog.Warn("the files of the run are not those that its manifest lists; what is compared is what the manifest says of them", "error", err)
	}
	forget := out == ""
	if forget {
		tmp, remove, err := durable.TempDir("dahl-rerun-")
		if err != nil {
			return fmt.Errorf("making room for the new run: %w", err)
		}
		defer remove()
		out = filepath.Join(tmp, "run")
	}
	if err := repeat(ctx, old, dir, out, python); err != nil {
		if forget && ctx.Err() != nil {
			err = ctx.Err() // err names a directory for the finished part, which is removed here
		}
		return fmt.Errorf("repeating %s: %w", dir, err)
	}
	now, err := record.ReadManifest(out)
	if err != nil {
		return err
	}
	if b := cli.ThisBuild(); b != old.Build {
		fmt.Fprintf(stdout, "note: the run was made by version %s, commit %s; this is %s, commit %s\n", old.Build.Version, old.Build.Commit, b.Version, b.Commit)
	}
	rows, err := compareRuns(old, now, dir, out)
	if err != nil {
		return err
	}
	different := 0
	for _, r := range rows {
		verdict := "same"
		if !r.same {
			verdict = "DIFFERENT"
			different++
		}
		if r.note != "" {
			verdict += ": " + r.note
		}
		fmt.Fprintf(stdout, "%-20s %s\n", r.what, verdict)
	}
	printBothTimes(stdout, dir, out)
	if different > 0 {
		return fmt.Errorf("%s did not repeat: %d of %d came out different", dir, different, len(rows))
	}
	return nil
}

// repeatable refuses an incomplete run, and a run with changed inputs.
func repeatable(ctx context.Context, m *record.Manifest, dir string) error {
	if m.Ended() {
		return cli.InputErrorf("%s ended early, since %s; there is nothing complete to compare with", dir, m.Diverged.What())
	}
	if !m.Complete {
		return cli.InputErrorf("%s was interrupted; there is nothing complete to compare with", dir)
	}
	if m.Interrupted {
		return cli.InputErrorf("%s has the best plan of a search until a signal ended it, and need not come out the same again; give a number of nodes with --budget", dir)
	}
	if m.Options.BudgetTime > 0 {
		return cli.InputErrorf("%s was given %s to search, and need not come out the same again; give a number of nodes with --budget", dir, cli.ShortTime(m.Options.BudgetTime))
	}
	switch m.Command {
	case "simulate", "plan", "execute", "demo", evaluateCommand, record.PeerCommand:
	default:
		return cli.InputErrorf("%s: a run of %q cannot be repeated", dir, m.Command)
	}
	path := filepath.Join(dir, rundir.PlatformFile)
	p, err := platform.Load(path)
	if err != nil {
		return cli.AsInput(err)
	}
	if p.Hash() != m.Platform.SHA256 {
		return cli.InputErrorf("%s has changed since the run", path)
	}
	if err := m.ChangedInput(); err != nil {
		return cli.AsInput(err)
	}
	if m.Data == nil {
		return nil
	}
	o := m.Options
	o.Tokens = m.Tokens
	_, d, err := flags.TrainingData(&o)
	if err != nil {
		return err
	}
	now, err := record.HashData(ctx, d.Train, d.Test)
	if err != nil {
		return cli.AsInput(err)
	}
	if now.SHA256 != m.Data.SHA256 {
		return cli.InputErrorf("the data %s have changed since the run", o.Data)
	}
	return nil
}

// repeat runs the manifest's options again on the platform kept in dir. A demo is
// an execution on the platform that it calibrated.
func repeat(ctx context.Context, m *record.Manifest, dir, out, python string) error {
	o := m.Options
	o.Args, o.Platform = m.Args, filepath.Join(dir, rundir.PlatformFile)
	if m.Lists(record.MachineFile) {
		o.Platform = filepath.Join(dir, record.MachineFile)
	}
	if o.Objective == "" {
		o.Clocks = nil // they are in force in the kept file, which lacks devices left out by --devices
	}
	switch m.Command {
	case "simulate":
		return runSimulate(ctx, io.Discard, &o, &flags.Output{Dir: out})
	case "plan":
		return runPlan(ctx, io.Discard, &o, &flags.Output{Dir: out})
	case evaluateCommand:
		o.Recorded, o.Tokens = m.Lowering, m.Tokens
		return (&evaluation{out: flags.Output{Dir: out}}).runWith(ctx, io.Discard, io.Discard, &o)
	case record.PeerCommand:
		o.Python = python
		return runPeer(ctx, io.Discard, io.Discard, &o, &flags.Output{Dir: out})
	}
	return runTraining(ctx, io.Discard, io.Discard, &o, &executeFlags{Execute: flags.Execute{Out: flags.Output{Dir: out}, IgnoreClocks: true}})
}

// repeatRow is one thing that must come out equal.
type repeatRow struct {
	what string
	same bool
	note string
}

// compareRuns compares two runs of one manifest. Of an executed run the measured
// schedule and energy are left out, and the plan too if a policy made it while
// the run went on.
func compareRuns(old, now *record.Manifest, dir, out string) ([]repeatRow, error) {
	if old.Command == record.PeerCommand {
		return comparePeers(old, now, dir, out)
	}
	rows := []repeatRow{
		{what: "graphs", same: slices.Equal(old.Graphs, now.Graphs)},
		{what: "kernel variants", same: slices.Equal(old.Variants, now.Variants)},
	}
	files := []string{rundir.GraphFile, rundir.PlanFile, rundir.ScheduleFile, rundir.EnergyFile, record.SummaryFile}
	if old.Command == evaluateCommand {
		files = []string{rundir.GraphFile, rundir.PlanFile, rundir.PredictedFile, record.PredictionsFile}
	}
	if old.Command == "execute" || old.Command == "demo" {
		rows = append(rows,
			repeatRow{what: "weights", same: old.WeightsHash == now.WeightsHash, note: fmt.Sprintf("%.12s, then %.12s", old.WeightsHash, now.WeightsHash)},
			repeatRow{what: "final loss", same: old.FinalLoss.Same(now.FinalLoss), note: fmt.Sprintf("%v, then %v", old.FinalLoss, now.FinalLoss)})
		files = []string{rundir.GraphFile, record.StepsFile}
		if len(old.Resumed) == 0 && showSteps(dir) == showSteps(out) { // else the prediction covers the last part only, or steps between two checkpoints by the clock
			files = append(files, rundir.PredictedFile)
		}
		if static, err := old.Options.Planned(); err != nil {
			return nil, err
		} else if static {
			files = append(files, rundir.PlanFile)
		}
	}
	for _, name := range []string{rundir.CertificateFile, record.FrontFile} {
		if old.Lists(name) {
			files = append(files, name)
		}
	}
	for _, name := range files {
		row, err := compareFiles(name, dir, out)
		if err != nil {
			return nil, err
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// showSteps is how many steps the schedule of a run shows.
func showSteps(dir string) int {
	s, err := cli.ReadJSON[record.Summary](filepath.Join(dir, record.SummaryFile))
	if err != nil || s.Shown == nil {
		return 0
	}
	return s.Shown.Steps
}

// compareFiles compares one file of both directories byte by byte.
func compareFiles(name, dir, out string) (repeatRow, error) {
	now, err := rundir.ReadAs(filepath.Join(out, name), rundir.All)
	if err != nil {
		return repeatRow{}, err
	}
	old, err := rundir.ReadAs(filepath.Join(dir, name), rundir.All)
	if errors.Is(err, fs.ErrNotExist) {
		return repeatRow{what: name, note: "missing in " + dir}, nil
	}
	if err != nil {
		return repeatRow{}, err
	}
	if bytes.Equal(old, now) {
		return repeatRow{what: name, same: true}, nil
	}
	equal := 0
	for equal < min(len(old), len(now)) && old[equal] == now[equal] {
		equal++
	}
	return repeatRow{what: name, note: fmt.Sprintf("from line %d on", 1+bytes.Count(old[:equal], []byte("\n")))}, nil
}

// printBothTimes reports how long both runs took, where both say so.
func printBothTimes(stdout io.Writer, dir, out string) {
	then, errThen := cli.ReadJSON[record.Summary](filepath.Join(dir, record.SummaryFile))
	now, errNow := cli.ReadJSON[record.Summary](filepath.Join(out, record.SummaryFile))
	if errThen != nil || errNow != nil {
		return
	}
	fmt.Fprintf(stdout, "%-20s %s, then %s per step; %s, then %s in all (not compared)\n", "times",
		cli.ShowTime(then.StepS), cli.ShowTime(now.StepS), cli.ShowTime(then.MakespanS), cli.ShowTime(now.MakespanS))
}
