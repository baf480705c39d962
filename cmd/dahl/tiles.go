package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"

	"dahl/dag"
	"dahl/nn"
	"dahl/platform"
)

// bestTiles is the --lowering that asks for the fastest tiles in simulation.
const bestTiles = "best"

// bestTilesHelp is the paragraph about it in the help of the commands that have it.
const bestTilesHelp = `With --lowering best the samples per task of all layers are multiplied by powers of
two, a step is simulated with each, and the run has the fastest; the plan and the
manifest record the lowering. Tiles that the platform file has not measured are
predicted from others, within the error bars that simulate prints: to choose by
measured times, calibrate with --lowering best first. Weights depend on the lowering,
so with best they may differ between machines and numbers of workers.`

// tileSweep is what a search for the best tiles found.
type tileSweep struct {
	Layer   string    `json:"layer"`   // whose tile stands for all
	Default int       `json:"default"` // samples per task that the caches suggest
	Chosen  int       `json:"chosen"`
	Tries   []tileTry `json:"tries"` // by ascending tile
}

// tileTry is one tile size. PeriodS is the predicted time of a step, 0 where Error
// says why there is none.
type tileTry struct {
	Samples int     `json:"samples"`
	Tasks   int     `json:"tasks,omitempty"`
	PeriodS float64 `json:"period_s,omitempty"`
	Error   string  `json:"error,omitempty"`
}

// triedSteps is how many steps are simulated for each tile size.
const triedSteps = 10

// sweepTiles simulates the training step with every tile size and sets the options so
// that the lowering has the fastest; between equals the default wins. A size that does
// not run on the platform, for lack of memory, is left out; the default has to.
func (w workload) sweepTiles(ctx context.Context, n samples) (*tileSweep, error) {
	o := w.opts
	if w.model == nil || len(w.platform.Devices) == 0 {
		return nil, inputErrorf("--lowering %s simulates a network on a machine: name both with --model and --platform", bestTiles)
	}
	if o.Plan != "" {
		return nil, inputErrorf("--lowering %s and --plan exclude each other: a plan has its lowering", bestTiles)
	}
	t, err := o.tilings(w.model, w.platform)
	if err != nil {
		return nil, err
	}
	sweep := &tileSweep{Layer: t.layer, Default: t.of}
	for _, samples := range t.sizes {
		try := tileTry{Samples: samples}
		if err := w.try(ctx, &try, t.adapt(samples), n); err != nil {
			if ctx.Err() != nil || samples == t.of {
				return nil, err
			}
			try.Error = oneLine(err)
		}
		sweep.Tries = append(sweep.Tries, try)
	}
	sweep.choose()
	o.adapt = t.adapt(sweep.Chosen)
	return sweep, nil
}

// try predicts the step time with one tile size.
func (w workload) try(ctx context.Context, try *tileTry, adapt func(*dag.Lowering, int), n samples) error {
	o := *w.opts
	o.Lowering, o.adapt = "", adapt
	w.opts = &o
	if err := w.buildProgram(n); err != nil {
		return err
	}
	w.program.Graphs = w.program.Graphs[:1]
	w.program.Order = []dag.Segment{{Graph: 0, Steps: 1}}
	if err := w.decide(); err != nil {
		return err
	}
	s, err := w.simulateGraph(ctx, 0, triedSteps)
	if err != nil {
		return asInput(err)
	}
	try.Tasks, try.PeriodS = w.program.Graphs[0].NumTasks(), stepTime(s).Seconds()
	return nil
}

// choose takes the fastest try: of equals the default, else the one with the smallest tile.
func (s *tileSweep) choose() {
	s.Chosen = s.Default
	best := s.find(s.Default).PeriodS
	for _, try := range s.Tries {
		if try.Error == "" && try.PeriodS < best {
			s.Chosen, best = try.Samples, try.PeriodS
		}
	}
}

func (s *tileSweep) find(samples int) *tileTry {
	return &s.Tries[slices.IndexFunc(s.Tries, func(t tileTry) bool { return t.Samples == samples })]
}

func (s *tileSweep) print(out io.Writer) {
	chosen := s.find(s.Chosen)
	fmt.Fprintf(out, "tiles     %d samples per task of %s, the fastest predicted of %d sizes: step %s", s.Chosen, s.Layer, len(s.Tries), shortTime(seconds(chosen.PeriodS)))
	if s.Chosen == s.Default {
		fmt.Fprint(out, "; it is the default")
	} else {
		fmt.Fprintf(out, "; %s with the default of %d", shortTime(seconds(s.find(s.Default).PeriodS)), s.Default)
	}
	for _, try := range s.Tries {
		if try.Error != "" {
			fmt.Fprintf(out, "; %d does not run: %s", try.Samples, try.Error)
		}
	}
	fmt.Fprintln(out)
}

// tilings are the default lowering's variations: the samples per task of all layers
// times powers of two.
type tilings struct {
	layer string // the busiest, whose tile stands for all
	of    int    // its tile by default
	sizes []int  // of its tile, ascending
	base  dag.Lowering
}

func (o *options) tilings(m *nn.Model, p *platform.Platform) (*tilings, error) {
	dtype, err := dag.ParseDType(o.DType)
	if err != nil {
		return nil, asInput(err)
	}
	t := &tilings{layer: busiestLayer(m), base: grainOf(p).lowering(m, o.Batch, dtype)}
	if t.layer == "" {
		return nil, inputErrorf("model %s has no layer with weights, whose tiles could be chosen", m.Name)
	}
	t.of = t.base.Layers[t.layer].SampleTile
	t.sizes = tileSizes(t.of, o.Batch)
	return t, nil
}

// adapt is what turns the default lowering into that of a size.
func (t *tilings) adapt(samples int) func(*dag.Lowering, int) {
	return func(l *dag.Lowering, batch int) { *l = scaleTiles(l, samples, t.of, batch) }
}

// busiestLayer is the layer with the most weights times positions, which is the
// most work: the one whose tile the axis shows.
func busiestLayer(m *nn.Model) string {
	name, most := "", 0
	for i := range m.Stages {
		s := &m.Stages[i]
		if len(s.Params) == 0 {
			continue
		}
		work := s.Params[0].Elems()
		for _, extent := range s.Out[1:] {
			work *= extent
		}
		if work > most {
			name, most = s.Name, work
		}
	}
	return name
}

// tileSizes are the powers of two times a tile between one sample and the batch,
// both included.
func tileSizes(tile, batch int) []int {
	sizes := []int{batch}
	for t := tile; t < batch; t *= 2 {
		sizes = append(sizes, t)
	}
	for t := tile / 2; t >= 1; t /= 2 {
		sizes = append(sizes, t)
	}
	slices.Sort(sizes)
	return slices.Compact(sizes)
}

// scaleTiles multiplies the samples per task of every layer by tile/of, to at least
// one sample and at most the batch. Sums over the whole batch stay whole.
func scaleTiles(base *dag.Lowering, tile, of, batch int) dag.Lowering {
	scale := func(samples int) int {
		if samples == 0 {
			return 0
		}
		return min(max(1, samples*tile/of), batch)
	}
	scaled := *base
	scaled.Layers = maps.Clone(base.Layers)
	for name, ll := range scaled.Layers {
		if ll.GradSampleTile == ll.SampleTile {
			ll.GradSampleTile = scale(ll.GradSampleTile)
		}
		ll.SampleTile = scale(ll.SampleTile)
		scaled.Layers[name] = ll
	}
	return scaled
}
