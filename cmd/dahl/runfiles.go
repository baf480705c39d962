package main

import (
	"errors"
	"io"
	"log/slog"
	"path/filepath"

	"dahl/cmd/cli"
	"dahl/energy"
	"dahl/execute"
	"dahl/plan"
	"dahl/plots"
	"dahl/rundir"
	"dahl/schedule"
)

// The files of a run directory beside its results.
const (
	summaryFile = "summary.json"
	weightsFile = "weights.npz"
	stepsFile   = "steps.csv"
	epochsFile  = "epochs.csv"
	compareFile = "compare.svg"
)

// writeOutcome writes what both worlds have: inputs, decisions, schedule, energy, summary
// and figures of the program's main graph.
func (w *workload) writeOutcome(d *rundir.Dir, o *plan.Totals, s *summary) error {
	p := w.mainProblem(o.Main.Steps)
	recorded := *w.Decision.PlanOf(0, o.Main)
	recorded.GraphHash, recorded.Lowering = p.Graph.Hash(), w.Lowering
	recorded.On = w.Options.Devices
	recorded.Variants = p.Costs.Variants(p.Graph, p.Platform)
	report := w.withReadings(o.Report, s.EnergyJ.Readings, len(s.Losses) > 0)
	report.Epoch, report.FirstStep, report.Meters = o.Epoch, o.First, s.EnergyJ.Meters
	err := d.WriteResults(&rundir.Results{Platform: w.Platform, Graph: p.Graph, Plan: &recorded, Schedule: o.Main, Energy: report})
	if err == nil && w.chosen.some() {
		err = d.Write(machineFile, w.all.WriteTOML)
	}
	if err == nil {
		err = d.Write(summaryFile, func(out io.Writer) error { return cli.PrintJSON(out, s) })
	}
	if err != nil {
		return err
	}
	run, err := newPlotRun(p, o.Main, s)
	if err != nil {
		return err
	}
	for _, f := range plots.Figures() {
		if err := draw(d, f, plots.Input{Run: run}, "svg"); err != nil && !errors.Is(err, plots.ErrNoData) {
			return err
		}
	}
	return nil
}

// mainProblem is the program's first graph for a number of steps.
func (w *workload) mainProblem(steps int) *schedule.Problem {
	return w.Decision.Problem(0, steps, false)
}

// draw writes a figure into a run.
func draw(d *rundir.Dir, f plots.Figure, in plots.Input, format string) error {
	name := f.Name + "." + format
	return d.Write(name, func(w io.Writer) error { return f.Draw(w, format, in) })
}

// newPlotRun prepares a schedule for figures and traces; of is the summary of the run.
func newPlotRun(prob *schedule.Problem, s *schedule.Schedule, of *summary) (*plots.Run, error) {
	p := *prob
	p.Steps = s.Steps
	traces, err := energy.Traces(s, &p)
	if err != nil {
		return nil, err
	}
	report, err := energy.FromSchedule(s, &p)
	if err != nil {
		return nil, err
	}
	run := &plots.Run{Problem: &p, Schedule: s, Power: traces, Grounds: report.Grounds()}
	for m := range p.Platform.Memories {
		run.ReservedBytes = append(run.ReservedBytes, of.ReservedBytes[p.Platform.Memories[m].Name])
	}
	if shown := of.Shown; shown != nil {
		run.Part, run.FirstStep, run.Bound = shown.String(), shown.First, cli.Seconds(shown.LowerBoundS)
	}
	return run, nil
}

// loadedRun is a run directory read back.
type loadedRun struct {
	*rundir.Loaded
	manifest *manifest
	summary  *summary
}

func loadRun(dir string) (*loadedRun, error) {
	m, err := readManifest(dir)
	if err != nil {
		return nil, err
	}
	if m.Command == peerCommand {
		return nil, cli.InputErrorf("%s is a training by %s, which has no tasks to show; its curves are in %s and %s", dir, m.Program.Program, epochsFile, stepsFile)
	}
	changed, err := rundir.Changed(dir, m)
	if err != nil {
		return nil, err
	}
	for _, file := range changed {
		slog.Warn("a file of the run is not as it was written; dahl verify says more", "file", file)
	}
	s, err := cli.ReadJSON[summary](filepath.Join(dir, summaryFile))
	if err != nil {
		return nil, err
	}
	l, err := rundir.Load(dir, execute.Target{Variant: m.Options.Variant})
	return &loadedRun{l, m, s}, cli.AsInput(err)
}

// loadResults is what a run directory says without its manifest and summary.
func loadResults(dir string) (*rundir.Loaded, error) {
	r, err := loadRun(dir)
	if err != nil {
		return nil, err
	}
	return r.Loaded, nil
}
