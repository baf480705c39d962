package main

import (
	"cmp"
	"context"

	"dahl/cmd/cli"
	"dahl/cmd/dahl/record"
	"dahl/plan/best"
	"dahl/plan/problem"
)

// plansOfTiles is how many plans a search for tiles makes, of graphs of the default size.
const plansOfTiles = 96

// searchTiles lowers the network with the tiles that are fastest in simulation, on the devices of the run and by its policy.
func (w *workload) searchTiles(ctx context.Context) error {
	t, err := w.Tilings()
	if err != nil {
		return err
	}
	policy, err := w.opts.Scheduler()
	if err != nil {
		return cli.AsInput(err)
	}
	tiles, err := w.Tiles()
	if err != nil {
		return err
	}
	s, err := w.Space(w.Platform, "", tiles...)
	if err != nil {
		return err
	}
	s.Devices = []string{""}
	found, err := best.Find(ctx, &s.Space, best.Options{Aim: problem.Aim{Objective: problem.Time, Steady: true}, Nodes: plansOfTiles * w.tasks(), Policy: policy})
	if err != nil {
		return cmp.Or(ctx.Err(), cli.AsInput(err))
	}
	w.tiles = &record.TileSearch{Layer: t.Layer, Default: t.Default.Layers[t.Layer].Forward.Samples, Chosen: found.Tiles}
	for _, f := range found.Tried {
		w.tiles.Tries = append(w.tiles.Tries, record.TileTry{Tiles: f.Tiles, Tasks: f.Tasks, StepS: f.Makespan.Seconds()})
	}
	for _, r := range found.Refused {
		w.tiles.Tries = append(w.tiles.Tries, record.TileTry{Tiles: r.Tiles, Error: cli.OneLine(r.Err)})
	}
	at, err := s.At(found.Choice)
	if err != nil {
		return err
	}
	w.Options.Lowering = at.Lowering
	return w.Lower()
}
