package main

import (
	"cmp"
	"fmt"
	"io"
	"path/filepath"
	"slices"

	"dahl/cmd/cli"
	"dahl/cmd/dahl/record"
	"dahl/cmd/dahl/words"
	"dahl/naming"
	"dahl/plan/best"
	"dahl/plots"
	"dahl/rundir"
	"dahl/rundir/tables"
)

// checkDeadline verifies that the step of the found plan keeps the deadline.
func (v *verification) checkDeadline() error {
	s, err := cli.ReadJSON[record.Summary](filepath.Join(v.dir, record.SummaryFile))
	if err != nil {
		return err
	}
	step := s.MakespanS
	if s.ObjectiveSummary != nil && s.SteadyStepS != nil {
		step = *s.SteadyStepS
	}
	if cli.Seconds(step) > v.manifest.Options.Deadline {
		return fmt.Errorf("a step takes %s, and the run was to keep %s", cli.ShowTime(step), cli.ShortTime(v.manifest.Options.Deadline))
	}
	return nil
}

// writeFront writes the plans that a search has simulated by time and energy, as a table and as a figure.
func (w *workload) writeFront(dir *rundir.Dir, found *best.Result) error {
	points := frontPoints(found)
	err := dir.Write(record.FrontFile, func(out io.Writer) error {
		lines := [][]string{record.FrontColumns}
		for _, p := range points {
			lines = append(lines, []string{record.Number(p.Makespan.Seconds()).CSV(), record.Number(p.Joules).CSV(), p.Devices, cmp.Or(p.Strategy, p.Tiles.String()), p.Policy, record.YesNo(p.front), record.YesNo(p.chosen)})
		}
		return tables.WriteCSV(out, lines)
	})
	if err != nil {
		return err
	}
	figure := w.frontFigure(found, points)
	return dir.Write(record.FrontFigure, func(out io.Writer) error { return plots.DrawFront(out, "svg", figure) })
}

// frontPoint is a plan that a search has simulated.
type frontPoint struct {
	best.Attempt
	front, chosen bool
}

// frontPoints are the plans with what is said of them.
func frontPoints(found *best.Result) (points []frontPoint) {
	front := best.Front(found.Simulated)
	for _, t := range found.Simulated {
		on := slices.ContainsFunc(front, func(f best.Attempt) bool { return f.Plan == t.Plan })
		points = append(points, frontPoint{Attempt: t, front: on, chosen: t.Plan == found.Plan})
	}
	return points
}

// frontFigure is the figure of a front.
func (w *workload) frontFigure(found *best.Result, points []frontPoint) *plots.Front {
	of := &plots.Front{Title: fmt.Sprintf("%s on %s: time and energy of %s plans", cmp.Or(w.Program.Name, w.Program.Graphs[0].Name), w.fullPlatform.Name, naming.Thousands(len(points))),
		Of: plots.FrontBound(w.opts.Objective), Bound: found.Bound, BoundOf: words.CoveredText(found), Deadline: w.opts.Deadline.Seconds()}
	on := 0
	for i := range points {
		p := &points[i]
		if p.front {
			on++
		}
		label := cmp.Or(p.Devices, "all devices")
		of.Points = append(of.Points, plots.FrontPoint{Seconds: p.Makespan.Seconds(), Joules: p.Joules, Label: label, Front: p.front, Chosen: p.chosen})
	}
	of.Summary = fmt.Sprintf("%d that no other beats in both; chosen by %s: %s, %s, %s J", on, w.opts.Objective, found.Choice,
		cli.ShortTime(found.Makespan), cli.ThreeDigits(found.Joules))
	return of
}
