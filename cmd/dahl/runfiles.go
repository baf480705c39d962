package main

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"

	"dahl/cmd/cli"
	"dahl/dag"
	"dahl/energy"
	"dahl/execute"
	"dahl/plan"
	"dahl/platform"
	"dahl/plots"
	"dahl/rundir"
	"dahl/schedule"
)

// The files of a run directory.
const (
	platformFile  = "platform.toml"
	graphFile     = "graph.json"
	planFile      = "plan.json"
	scheduleFile  = "schedule.json"
	predictedFile = "predicted.json" // what the simulator said of an executed run
	energyFile    = "energy.json"
	summaryFile   = "summary.json"
	weightsFile   = "weights.npz"
	stepsFile     = "steps.csv"
	epochsFile    = "epochs.csv"
	compareFile   = "compare.svg"
)

// writeOutcome writes what both worlds have: inputs, decisions, schedule, energy
// and figures of the program's main graph.
func (w *workload) writeOutcome(d *rundir.Dir, o *plan.Totals, s *summary) error {
	p := w.mainProblem(o.Main.Steps)
	recorded := *w.Decision.PlanOf(0, o.Main)
	recorded.GraphHash, recorded.Lowering = p.Graph.Hash(), w.Lowering
	recorded.Variants = p.Costs.Variants(p.Graph, p.Platform)
	for _, file := range []struct {
		name string
		fill func(io.Writer) error
	}{
		{platformFile, w.Platform.WriteTOML},
		{graphFile, p.Graph.WriteJSON},
		{planFile, func(out io.Writer) error { return schedule.WritePlan(out, &recorded, p.Graph, p.Platform) }},
		{scheduleFile, func(out io.Writer) error { return schedule.WriteSchedule(out, o.Main, p.Graph, p.Platform) }},
		{energyFile, func(out io.Writer) error { return cli.PrintJSON(out, o.Report) }},
		{summaryFile, func(out io.Writer) error { return cli.PrintJSON(out, s) }},
	} {
		if err := d.Write(file.name, file.fill); err != nil {
			return err
		}
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
		run.Part, run.FirstStep = shown.String(), shown.First
	}
	return run, nil
}

// loadedRun is a run directory read back.
type loadedRun struct {
	dir      string
	manifest *manifest
	summary  *summary
	problem  *schedule.Problem
	decision *schedule.Decision // of the graph alone, by the plan
	schedule *schedule.Schedule
}

func loadRun(dir string) (*loadedRun, error) {
	r := &loadedRun{dir: dir}
	var err error
	if r.manifest, err = readManifest(dir); err != nil {
		return nil, err
	}
	path := func(name string) string { return filepath.Join(dir, name) }
	if r.summary, err = readJSON[summary](path(summaryFile)); err != nil {
		return nil, err
	}
	p, err := platform.Load(path(platformFile))
	if err != nil {
		return nil, cli.AsInput(err)
	}
	g, err := openAs(path(graphFile), dag.ReadJSON)
	if err != nil {
		return nil, err
	}
	recorded, err := loadPlan(path(planFile), g, p)
	if err != nil {
		return nil, err
	}
	if r.decision, err = decideRecorded(r.manifest, g, p, recorded); err != nil {
		return nil, cli.InputErrorf("%s: %w", path(planFile), err)
	}
	// What lies in a measured run is recorded, and what is laid beside it.
	r.problem = r.decision.Problem(0, 1, true)
	if r.schedule, err = loadSchedule(path(scheduleFile), r.problem); err != nil {
		return nil, err
	}
	r.problem.Steps = r.schedule.Steps
	return r, nil
}

// predicted is the simulated schedule that lies beside a measured one.
func (r *loadedRun) predicted() (*schedule.Schedule, error) {
	path := filepath.Join(r.dir, predictedFile)
	if _, err := os.Stat(path); err != nil {
		return nil, nil
	}
	return loadSchedule(path, r.problem)
}

// decideRecorded makes the decision of a run's graph from its plan.
func decideRecorded(m *manifest, g *dag.Graph, p *platform.Platform, recorded *schedule.Plan) (*schedule.Decision, error) {
	prog := &dag.Program{Name: g.Name, Graphs: []*dag.Graph{g}, Order: []dag.Segment{{Steps: 1}}}
	return plan.Decide(prog, p, execute.Target{Variant: m.Options.Variant}, schedule.Choice{Plans: []*schedule.Plan{recorded}})
}

func loadSchedule(path string, p *schedule.Problem) (*schedule.Schedule, error) {
	return openAs(path, func(f io.Reader, name string) (*schedule.Schedule, error) {
		return schedule.ReadSchedule(f, name, p.Graph, p.Platform)
	})
}

func loadPlan(path string, g *dag.Graph, p *platform.Platform) (*schedule.Plan, error) {
	return openAs(path, func(f io.Reader, name string) (*schedule.Plan, error) {
		return schedule.ReadPlan(f, name, g, p)
	})
}

// openAs reads a file with a parser that takes the name for its errors.
func openAs[T any](path string, parse func(io.Reader, string) (T, error)) (T, error) {
	var v T
	if err := cli.CheckWhole(path); err != nil {
		return v, err
	}
	f, err := os.Open(path)
	if err != nil {
		return v, cli.AsInput(err)
	}
	defer f.Close()
	v, err = parse(f, path)
	return v, cli.AsInput(err)
}

// readJSON reads a file that holds one object.
func readJSON[T any](path string) (*T, error) {
	if err := cli.CheckWhole(path); err != nil {
		return nil, err
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, cli.AsInput(err)
	}
	v := new(T)
	if err := json.Unmarshal(data, v); err != nil {
		return nil, cli.InputErrorf("%s: %w", path, err)
	}
	return v, nil
}
