package rundir

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"dahl/dag"
	"dahl/energy"
	"dahl/plan"
	"dahl/platform"
	"dahl/rundir/durable"
	"dahl/schedule"
	"dahl/schedule/codec"
)

// The files of the results of a run.
const (
	PlatformFile    = "platform.toml"
	GraphFile       = "graph.json"
	PlanFile        = "plan.json"
	ScheduleFile    = "schedule.json"
	PredictedFile   = "predicted.json" // what the simulator said of an executed run
	CertificateFile = "certificate.json"
	EnergyFile      = "energy.json"
)

// Results are the results of a simulated or executed run of the program's main graph.
type Results struct {
	Platform *platform.Platform
	Graph    *dag.Graph
	Plan     *schedule.Plan
	Schedule *schedule.Schedule
	Energy   *energy.Report
}

// WriteResults writes a file for each of the results.
func (d *Dir) WriteResults(r *Results) error {
	for _, file := range []struct {
		name string
		fill func(io.Writer) error
	}{
		{PlatformFile, r.Platform.WriteTOML},
		{GraphFile, r.Graph.WriteJSON},
		{PlanFile, func(w io.Writer) error { return codec.WritePlan(w, r.Plan, r.Graph, r.Platform) }},
		{ScheduleFile, func(w io.Writer) error { return codec.WriteSchedule(w, r.Schedule, r.Graph, r.Platform) }},
		{EnergyFile, func(w io.Writer) error {
			e := json.NewEncoder(w)
			e.SetIndent("", "  ")
			return e.Encode(r.Energy)
		}},
	} {
		if err := d.Write(file.name, file.fill); err != nil {
			return err
		}
	}
	return nil
}

// WritePredicted writes the simulated schedule of what a run measured.
func (d *Dir) WritePredicted(s *schedule.Schedule, g *dag.Graph, p *platform.Platform) error {
	return d.Write(PredictedFile, func(w io.Writer) error { return codec.WriteSchedule(w, s, g, p) })
}

// Loaded are the results of a run, read back.
type Loaded struct {
	dir      string
	Plan     *schedule.Plan
	Decision *schedule.Decision // of the graph alone, by the plan
	Problem  *schedule.Problem  // of the schedule's steps, with the timing of tasks
	Schedule *schedule.Schedule
}

// Load reads the results of a run, and prices its graph for what ran it.
func Load(dir string, target schedule.Target) (*Loaded, error) {
	p, err := platform.Load(filepath.Join(dir, PlatformFile))
	if err != nil {
		return nil, err
	}
	g, err := ReadAs(filepath.Join(dir, GraphFile), dag.ReadJSON)
	if err != nil {
		return nil, err
	}
	l := &Loaded{dir: dir}
	if err := l.decide(g, p, target); err != nil {
		return nil, err
	}
	l.Problem = l.Decision.Problem(0, 1, true)
	if l.Schedule, err = l.readSchedule(ScheduleFile); err != nil {
		return nil, err
	}
	l.Problem.Steps = l.Schedule.Steps
	return l, nil
}

// decide reads the plan and decides by it. The plan of a run-time policy only records its decisions, together with the
// places of buffers, which were fixed before the run.
func (l *Loaded) decide(g *dag.Graph, p *platform.Platform, target schedule.Target) (err error) {
	if l.Plan, err = ReadPlan(filepath.Join(l.dir, PlanFile), g, p); err != nil {
		return err
	}
	prog := &dag.Program{Name: g.Name, Graphs: []*dag.Graph{g}, Order: []dag.Segment{{Steps: 1}}}
	l.Decision, err = plan.Decide(prog, p, target, schedule.Choice{Plans: []*schedule.Plan{l.Plan}})
	return err
}

// Dir is where the run lies.
func (l *Loaded) Dir() string { return l.dir }

// Predicted is the simulated schedule in the directory of a measured one. Nil means that there is
// none.
func (l *Loaded) Predicted() (*schedule.Schedule, error) {
	if _, err := os.Stat(filepath.Join(l.dir, PredictedFile)); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return l.readSchedule(PredictedFile)
}

// Energy is the energy of the schedule, with the readings of meters.
func (l *Loaded) Energy() (*energy.Report, error) {
	return ReadAs(filepath.Join(l.dir, EnergyFile), func(f io.Reader, name string) (*energy.Report, error) {
		r := new(energy.Report)
		if err := json.NewDecoder(f).Decode(r); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		return r, nil
	})
}

func (l *Loaded) readSchedule(name string) (*schedule.Schedule, error) {
	p := l.Decision.Graphs[0].Problem
	return ReadAs(filepath.Join(l.dir, name), func(f io.Reader, name string) (*schedule.Schedule, error) {
		return codec.ReadSchedule(f, name, p.Graph, p.Platform)
	})
}

// ReadPlan reads a plan file for a graph and a platform.
func ReadPlan(path string, g *dag.Graph, p *platform.Platform) (*schedule.Plan, error) {
	return ReadAs(path, func(f io.Reader, name string) (*schedule.Plan, error) { return codec.ReadPlan(f, name, g, p) })
}

// ReadAs reads a file with a parser that takes the name for its errors.
func ReadAs[T any](path string, parse func(io.Reader, string) (T, error)) (T, error) {
	var none T
	f, err := durable.Open(path)
	if err != nil {
		return none, err
	}
	defer f.Close()
	return parse(f, path)
}

// All reads a file to its end, as a parser for [ReadAs].
func All(r io.Reader, _ string) ([]byte, error) { return io.ReadAll(r) }
