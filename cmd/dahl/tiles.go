package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math"
	"slices"

	"dahl/cmd/cli"
	"dahl/cmd/dahl/words"
	"dahl/plan/best"
	"dahl/plan/exact"
	"dahl/plan/space"
	"dahl/plan/tiling"
	"dahl/platform"
	"dahl/train"
)

// bestTiles is the --lowering that asks for the fastest tiles in simulation.
const bestTiles = "best"

// bestTilesHelp is the paragraph about it in the help of the commands that have it.
const bestTilesHelp = `With --lowering best the samples per task of all layers are multiplied by powers of
two, a step is simulated with each, and the run has the fastest; the plan and the
manifest record the lowering. Where a layer is whole by default, smaller tiles are tried
with its weight gradient split like them and with it whole. With several GPUs all layers
are also cut in parts along one dimension: samples, outputs, inputs, rows or columns. From
the fastest it goes on to cut single layers otherwise along any dimension, as far as tiles
are measured as well. Those of all layers that the platform file
has not measured are predicted from others, within the error bars that simulate prints:
to choose by measured times, calibrate with --lowering best first. Weights depend on the
lowering, so with best they may differ between machines and numbers of workers.`

// tileSearch is what a search for the best tiles found.
type tileSearch struct {
	Layer   string        `json:"layer"`   // whose samples per task the names say
	Default int           `json:"default"` // samples per task that the caches suggest
	Chosen  tiling.Tiling `json:"chosen"`
	Tries   []tileTry     `json:"tries"` // the fastest first, and then those that do not run
}

// tileTry is one lowering. StepS is the predicted time of a steady step in seconds, 0 where Error
// says why there is none.
type tileTry struct {
	Tiles tiling.Tiling `json:"tiles"`
	Tasks int           `json:"tasks,omitempty"`
	StepS float64       `json:"step_s,omitempty"`
	Error string        `json:"error,omitempty"`
}

// of is the try of a tiling; nil: there is none.
func (s *tileSearch) of(tiles tiling.Tiling) *tileTry {
	i := slices.IndexFunc(s.Tries, func(t tileTry) bool { return t.Tiles == tiles })
	if i < 0 {
		return nil
	}
	return &s.Tries[i]
}

// checkBestTiles refuses a search for tiles of what is no network on a machine, or has tiles.
func (o *options) checkBestTiles(p *platform.Platform) error {
	if o.Model == "" || len(p.Devices) == 0 {
		return cli.InputErrorf("--lowering %s simulates a network on a machine: name both with --model and --platform", bestTiles)
	}
	if o.Plan != "" {
		return cli.InputErrorf("--lowering %s and --plan exclude each other: a plan has its lowering", bestTiles)
	}
	return nil
}

// searchTiles lowers the network with the tiles that are fastest in simulation, on the devices of the run and by its policy.
func (w *workload) searchTiles(ctx context.Context) error {
	t, err := train.Tilings(w.Model, w.Platform, w.Options.Batch, w.Options.Type)
	if err != nil {
		return err
	}
	policy, err := w.opts.policy()
	if err != nil {
		return cli.AsInput(err)
	}
	tiles, err := w.Tiles()
	if err != nil {
		return err
	}
	s, err := w.Space(w.samples, w.Platform, "", tiles...)
	if err != nil {
		return err
	}
	s.Devices, s.Near = []string{""}, append([]space.Neighbourhood{s.Mixed}, s.Near...)
	found, err := best.Find(ctx, &s.Space, best.Options{Options: exact.Options{Objective: exact.Time, Nodes: math.MaxInt}, Quick: true, Steady: true, Policy: policy})
	if err != nil {
		return cmp.Or(ctx.Err(), cli.AsInput(err))
	}
	w.tiles = &tileSearch{Layer: t.Layer, Default: t.Default.Layers[t.Layer].Forward.Samples, Chosen: found.Tiles}
	for _, f := range found.Tried {
		w.tiles.Tries = append(w.tiles.Tries, tileTry{Tiles: f.Tiles, Tasks: f.Tasks, StepS: f.Makespan.Seconds()})
	}
	for _, r := range found.Refused {
		w.tiles.Tries = append(w.tiles.Tries, tileTry{Tiles: r.Tiles, Error: cli.OneLine(r.Err)})
	}
	at, err := s.At(found.Choice)
	if err != nil {
		return err
	}
	w.Options.Lowering = at.Lowering
	return w.Lower(w.samples)
}

func printTiles(out io.Writer, s *tileSearch) {
	chosen, standard := s.of(s.Chosen), s.of(tiling.Of(tiling.Base{Kind: tiling.Default}))
	clauses := []string{fmt.Sprintf("%s, the fastest predicted of %d: step %s", chosen.Tiles, len(s.Tries), cli.ShowTime(chosen.StepS))}
	if standard != nil && chosen != standard {
		clauses = append(clauses, fmt.Sprintf("%s with the default of %s of %s", cli.ShowTime(standard.StepS), tiling.Base{Kind: tiling.Samples, Number: s.Default}, s.Layer))
	}
	for _, try := range s.Tries {
		if try.Error != "" {
			clauses = append(clauses, fmt.Sprintf("%s does not run: %s", try.Tiles, try.Error))
		}
	}
	words.Say(out, "tiles", clauses...)
}
