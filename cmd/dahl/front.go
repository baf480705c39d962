package main

import (
	"cmp"
	"io"
	"slices"

	"dahl/cmd/dahl/record"
	"dahl/plan/best"
	"dahl/plots"
	"dahl/rundir"
	"dahl/rundir/tables"
)

// writeFront writes the plans that a search has simulated by time and energy, as a table and as a figure.
func (w *workload) writeFront(dir *rundir.Dir, s *record.Summary, found *best.Result) error {
	front, lines := best.Front(found.Simulated), [][]string{record.FrontColumns}
	var points []plots.FrontPoint
	for _, t := range found.Simulated {
		p := plots.FrontPoint{Seconds: t.Makespan.Seconds(), Joules: t.Joules, Label: cmp.Or(t.Devices, "all devices"), Chosen: t.Plan == found.Plan,
			Front: slices.ContainsFunc(front, func(f best.Attempt) bool { return f.Plan == t.Plan })}
		points = append(points, p)
		lines = append(lines, []string{record.Number(p.Seconds).CSV(), record.Number(p.Joules).CSV(), t.Devices, cmp.Or(t.Strategy, t.Tiles.String()), t.Policy, record.YesNo(p.Front), record.YesNo(p.Chosen)})
	}
	if err := dir.Write(record.FrontFile, func(out io.Writer) error { return tables.WriteCSV(out, lines) }); err != nil {
		return err
	}
	figure, err := plots.FigureByName("front")
	if err != nil {
		return err
	}
	return record.Draw(dir, figure, plots.Input{Front: s.FrontOf(points, w.fullPlatform.Name)}, record.Screen)
}
