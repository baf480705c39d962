package main

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"time"

	"dahl/cmd/cli"
	"dahl/cmd/dahl/flags"
	"dahl/cmd/dahl/record"
	"dahl/cmd/dahl/words"
	"dahl/plan/best"
	"dahl/plan/certificate"
	"dahl/plan/exact"
	"dahl/plan/problem"
	"dahl/rundir"
	"dahl/train"
)

// optimize takes the best plan for the objective. When ctx ends it is the best so far.
func (w *workload) optimize(ctx context.Context) (*best.Result, error) {
	o := w.opts
	s, err := w.space()
	if err := cmp.Or(ctx.Err(), cli.AsInput(err)); err != nil {
		return nil, err
	}
	if small := o.Budget < 10*flags.BestNodes || o.Steps == 1 && w.tasks() <= exact.MaxTasks; o.Announce != nil && (!small || o.BudgetTime > 0) {
		o.Announce()
	}
	of := best.Options{Aim: problem.Aim{Objective: problem.Objective(o.Objective), Steady: o.Steps > 1, Deadline: o.Deadline}, Nodes: cmp.Or(o.Budget, math.MaxInt), Time: o.BudgetTime, Begun: o.Begun}
	if of.Objective == problem.Time {
		of.Known = w.knownWithin(ctx, s, o.BudgetTime/8)
	}
	if o.Bar != nil {
		defer o.Bar.Done()
		of.Progress = func(thousandths int, value float64) {
			o.Bar.Set(thousandths, 1000, words.Amount(value, o.ObjectiveUnit())+"; Ctrl-C takes it")
		}
	}
	overlapping := w.overlapping(ctx, s)
	found, err := best.Find(ctx, &s.Space, of)
	if err != nil {
		return nil, cmp.Or(ctx.Err(), cli.AsInput(err))
	}
	found = withOverlap(found, overlapping)
	next, err := w.workloadAt(s, found.Choice, found.Evaluated)
	if err != nil {
		return nil, err
	}
	w.searchPlatform, w.search, w.Workload = w.Platform, &searched{s, found}, *next
	return found, nil
}

// knownWithin finds the plan that simulate would take by default; nil where it is not found in a time. 0 means as long as it takes.
func (w *workload) knownWithin(ctx context.Context, s *train.Space, limit time.Duration) *best.Result {
	if limit > 0 {
		within, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		ctx = within
	}
	if known, err := w.briefSearch(ctx, s, limit); err == nil {
		return known
	}
	return nil
}

// writeProof writes the certificate of a search, its front, and the machine with all devices.
func (w *workload) writeProof(dir *rundir.Dir, s *record.Summary, found *best.Result) error {
	if err := cmp.Or(dir.Write(record.MachineFile, w.fullPlatform.WriteTOML), w.writeFront(dir, s, found)); err != nil || found.Certificate == nil {
		return err
	}
	return dir.Write(rundir.CertificateFile, found.Certificate.Write)
}

// checkCertificate proves the bound of a search again, whose run is in a directory.
func checkCertificate(ctx context.Context, dir string, m *record.Manifest) error {
	c, err := rundir.ReadCertificate(dir)
	if err != nil {
		return err
	}
	if changed := m.ChangedInput(); changed != nil {
		return rundir.Unchecked(changed.Error())
	}
	o := m.Options
	o.Platform = filepath.Join(dir, record.MachineFile)
	w, err := undecidedWorkload(ctx, &o)
	if err != nil {
		return err
	}
	s, err := w.space()
	if err != nil {
		return err
	}
	if c.Deadline != o.Deadline {
		return fmt.Errorf("its bound is of steps of at most %v, and the run was to keep %v", c.Deadline, o.Deadline)
	}
	if len(c.Leaves) > 0 && !slices.ContainsFunc(c.Leaves, func(l certificate.Leaf) bool { return l.Graph == m.Graphs[0].SHA256 }) {
		return fmt.Errorf("no leaf bounds plans of the run's graph")
	}
	return c.Check(&s.Space)
}

// space is the space of choices within --devices and --lowering.
func (w *workload) space() (*train.Space, error) {
	tiles, err := w.Tiles()
	if err != nil {
		return nil, err
	}
	return w.Space(w.fullPlatform, w.opts.Devices, tiles...)
}

// addObjective says how far a run is from the least.
func addObjective(ctx context.Context, s *record.Summary, o *flags.Options, found *best.Result) error {
	if found == nil {
		return nil
	}
	of := &record.ObjectiveSummary{Objective: o.Objective, LowerBoundOf: words.CoveredText(found)}
	s.ObjectiveSummary = of
	if o.Steps > 1 {
		seconds := found.Makespan.Seconds()
		of.SteadyStepS, of.SteadyStepJ = &seconds, &found.Joules
	}
	of.Gap, of.Proven, of.Nodes = record.Number(found.Gap()), found.Proven, found.Nodes
	of.DeadlineS = o.Deadline.Seconds()
	switch problem.Objective(o.Objective) {
	case problem.Time:
		s.LowerBoundS = found.Bound
	case problem.Energy:
		of.LowerBoundJ = &found.Bound
	default:
		of.LowerBoundJS = &found.Bound
	}
	if found.All > 0 {
		of.LowerBoundAll = &found.All
	}
	if found.Covered.Clocks || found.Covered.Lags {
		return nil
	}
	var err error
	of.Explanation, err = found.Explain(ctx, o.Seed)
	return err
}
