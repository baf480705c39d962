package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"

	"dahl/dag"
	"dahl/nn"
	"dahl/plan"
	"dahl/platform"
	"dahl/simulate"
	"dahl/train"
)

// bestTiles is the --lowering that asks for the fastest tiles in simulation.
const bestTiles = "best"

// bestTilesHelp is the paragraph about it in the help of the commands that have it.
const bestTilesHelp = `With --lowering best the samples per task of all layers are multiplied by powers of
two, a step is simulated with each, and the run has the fastest; the plan and the
manifest record the lowering. Where a layer is whole by default, smaller tiles are tried
with its weight gradient split like them and with it whole. Tiles that the platform file
has not measured are predicted from others, within the error bars that simulate prints:
to choose by measured times, calibrate with --lowering best first. Weights depend on the
lowering, so with best they may differ between machines and numbers of workers.`

// tileSweep is what a search for the best tiles found.
type tileSweep struct {
	Layer   string    `json:"layer"`   // whose tile stands for all
	Default int       `json:"default"` // samples per task that the caches suggest
	Chosen  int       `json:"chosen"`
	Tries   []tileTry `json:"tries"` // by ascending tile, split sums before whole ones
	// WholeSums says that the sums of the chosen try are whole; see tiling.
	WholeSums bool `json:"whole_sums,omitempty"`
}

// tileTry is one tile size. PeriodS is the predicted time of a step, 0 where Error
// says why there is none.
type tileTry struct {
	tiling
	Tasks   int     `json:"tasks,omitempty"`
	PeriodS float64 `json:"period_s,omitempty"`
	Error   string  `json:"error,omitempty"`
}

// tiling is a variation of the default lowering: what the tile of the busiest layer becomes
// when those of all do. WholeSums leaves the weight gradients whole that are so in the
// default, instead of splitting them like their layers: a sum that is split has its
// parts at once, and one that is whole can be taken from the weights by the task that has it.
type tiling struct {
	Samples   int  `json:"samples"`
	WholeSums bool `json:"whole_sums,omitempty"`
}

// triedSteps is how many steps are simulated for each tile size.
const triedSteps = 10

// sweepTiles simulates the training step with every tile size and sets the options so
// that the lowering has the fastest; between equals the default wins. A size that does
// not run on the platform, for lack of memory, is left out; the default has to.
func (w workload) sweepTiles(ctx context.Context, n train.Samples) (*tileSweep, error) {
	o := w.opts
	if w.Model == nil || len(w.Platform.Devices) == 0 {
		return nil, inputErrorf("--lowering %s simulates a network on a machine: name both with --model and --platform", bestTiles)
	}
	if o.Plan != "" {
		return nil, inputErrorf("--lowering %s and --plan exclude each other: a plan has its lowering", bestTiles)
	}
	t, err := o.tilings(w.Model, w.Platform)
	if err != nil {
		return nil, err
	}
	sweep := &tileSweep{Layer: t.layer, Default: t.of}
	for _, tiling := range t.all(o.Batch) {
		try := tileTry{tiling: tiling}
		if err := w.try(ctx, &try, t.adapt(tiling), n); err != nil {
			if ctx.Err() != nil || tiling.Samples == t.of {
				return nil, err
			}
			try.Error = oneLine(err)
		}
		sweep.Tries = append(sweep.Tries, try)
	}
	sweep.choose()
	o.adapt = t.adapt(tiling{sweep.Chosen, sweep.WholeSums})
	return sweep, nil
}

// try predicts the step time with one tile size.
func (w workload) try(ctx context.Context, try *tileTry, adapt func(*dag.Lowering, int), n train.Samples) error {
	o := *w.opts
	o.Lowering, o.adapt = "", adapt
	w.opts = &o
	if err := w.buildProgram(n); err != nil {
		return err
	}
	w.Program.Graphs = w.Program.Graphs[:1]
	w.Program.Order = []dag.Segment{{Graph: 0, Steps: 1}}
	if err := w.decide(); err != nil {
		return err
	}
	s, err := plan.Simulate(ctx, w.Decision, 0, triedSteps, simulate.Options{})
	if err != nil {
		return asInput(err)
	}
	try.Tasks, try.PeriodS = w.Program.Graphs[0].NumTasks(), plan.StepTime(s).Seconds()
	return nil
}

// choose takes the fastest try: of equals the default, else the one with the smallest tile.
func (s *tileSweep) choose() {
	s.Chosen, s.WholeSums = s.Default, false
	best := s.find(tiling{Samples: s.Default}).PeriodS
	for _, try := range s.Tries {
		if try.Error == "" && try.PeriodS < best {
			s.Chosen, s.WholeSums, best = try.Samples, try.WholeSums, try.PeriodS
		}
	}
}

func (s *tileSweep) find(of tiling) *tileTry {
	return &s.Tries[slices.IndexFunc(s.Tries, func(t tileTry) bool { return t.tiling == of })]
}

func (s *tileSweep) print(out io.Writer) {
	chosen := s.find(tiling{s.Chosen, s.WholeSums})
	fmt.Fprintf(out, "tiles     %s of %s, the fastest predicted of %d: step %s", chosen.tiling, s.Layer, len(s.Tries), shortTime(seconds(chosen.PeriodS)))
	if s.Chosen == s.Default {
		fmt.Fprint(out, "; it is the default")
	} else {
		fmt.Fprintf(out, "; %s with the default of %d", shortTime(seconds(s.find(tiling{Samples: s.Default}).PeriodS)), s.Default)
	}
	for _, try := range s.Tries {
		if try.Error != "" {
			fmt.Fprintf(out, "; %s does not run: %s", try.tiling, try.Error)
		}
	}
	fmt.Fprintln(out)
}

func (t tiling) String() string {
	if t.WholeSums {
		return fmt.Sprintf("%d samples per task and whole gradients", t.Samples)
	}
	return fmt.Sprintf("%d samples per task", t.Samples)
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
	t := &tilings{layer: busiestLayer(m), base: train.DefaultLowering(m, p, o.Batch, dtype)}
	if t.layer == "" {
		return nil, inputErrorf("model %s has no layer with weights, whose tiles could be chosen", m.Name)
	}
	t.of = t.base.Layers[t.layer].SampleTile
	t.sizes = tileSizes(t.of, o.Batch)
	return t, nil
}

// all are those of every size, and those that differ from them by their sums.
func (t *tilings) all(batch int) []tiling {
	var all []tiling
	for _, samples := range t.sizes {
		all = append(all, tiling{Samples: samples})
		split, whole := t.base, t.base
		t.adapt(tiling{Samples: samples})(&split, batch)
		t.adapt(tiling{samples, true})(&whole, batch)
		if !maps.Equal(split.Layers, whole.Layers) {
			all = append(all, tiling{samples, true})
		}
	}
	return all
}

// adapt is what turns the default lowering into that of a tiling.
func (t *tilings) adapt(to tiling) func(*dag.Lowering, int) {
	return func(l *dag.Lowering, batch int) {
		scaled := scaleTiles(l, to.Samples, t.of, batch)
		for name, ll := range l.Layers {
			if of := scaled.Layers[name]; to.WholeSums && ll.GradSampleTile >= batch {
				of.GradSampleTile = ll.GradSampleTile
				scaled.Layers[name] = of
			}
		}
		*l = scaled
	}
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
// one sample and at most the batch. Weight gradients that are split otherwise than their
// layer stay as they are.
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
