package main

import (
	"context"
	"fmt"
	"io"

	"dahl/cmd/cli"
	"dahl/cmd/dahl/words"
	"dahl/dag"
	"dahl/plan"
	"dahl/plan/tiling"
	"dahl/schedule"
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

// sweepTiles simulates the training step with every tile size and sets the options so
// that the lowering has the fastest.
func (w workload) sweepTiles(ctx context.Context, n train.Samples) (*plan.TileSearch, error) {
	o := w.opts
	if w.Model == nil || len(w.Platform.Devices) == 0 {
		return nil, cli.InputErrorf("--lowering %s simulates a network on a machine: name both with --model and --platform", bestTiles)
	}
	if o.Plan != "" {
		return nil, cli.InputErrorf("--lowering %s and --plan exclude each other: a plan has its lowering", bestTiles)
	}
	dtype, err := cli.RealType(o.DType)
	if err != nil {
		return nil, err
	}
	t, err := train.Tilings(w.Model, w.Platform, o.Batch, dtype)
	if err != nil {
		return nil, err
	}
	lower := func(l dag.Lowering) (*dag.Program, error) {
		tried := *o
		tried.Lowering, tried.adapt = "", func(of *dag.Lowering, _ int) { *of = l }
		w.opts = &tried
		err := w.buildProgram(n)
		return w.Program, err
	}
	found, err := plan.SearchTiles(ctx, t, lower, func(step *dag.Program) (*schedule.Decision, error) {
		w.Program = step
		err := w.decide()
		return w.Decision, err
	})
	if err != nil {
		return nil, cli.AsInput(err)
	}
	l, err := t.Lowering(found.Chosen)
	o.adapt = func(of *dag.Lowering, _ int) { *of = l }
	return found, err
}

// setTile sets the options so that the tasks of the busiest layer have so many samples as asked for.
func (w *workload) setTile() error {
	o := w.opts
	dtype, err := cli.RealType(o.DType)
	if err != nil {
		return err
	}
	t, err := train.Tilings(w.Model, w.Platform, o.Batch, dtype)
	if err != nil {
		return err
	}
	if o.Tile > o.Batch {
		return cli.InputErrorf("--tile %d: a step has %d images; want at most as many", o.Tile, o.Batch)
	}
	o.adapt = t.Adapt(tiling.Base{Kind: tiling.Samples, Number: o.Tile})
	return nil
}

func printTiles(out io.Writer, s *plan.TileSearch) {
	chosen, standard := s.Of(s.Chosen), s.Of(tiling.Of(tiling.Base{Kind: tiling.Default}))
	clauses := []string{fmt.Sprintf("%s, the fastest predicted of %d: step %s", chosen.Tiles, len(s.Tries), cli.ShowTime(chosen.StepS))}
	if chosen != standard {
		clauses = append(clauses, fmt.Sprintf("%s with the default of %s of %s", cli.ShowTime(standard.StepS), tiling.Base{Kind: tiling.Samples, Number: s.Default}, s.Layer))
	}
	for _, try := range s.Tries {
		if try.Error != "" {
			clauses = append(clauses, fmt.Sprintf("%s does not run: %s", try.Tiles, try.Error))
		}
	}
	words.Say(out, "tiles", clauses...)
}
