package plan

import (
	"context"
	"maps"
	"slices"
	"strings"

	"dahl/dag"
	"dahl/schedule"
	"dahl/simulate"
)

// Tiling is a variation of a default lowering: what the tile of one layer becomes when those
// of all do.
type Tiling struct {
	Samples int `json:"samples"` // per task of the layer
	// WholeSums leaves the weight gradients whole that are so in the default, instead of
	// splitting them like their layers: a sum that is split has its parts at once, and one
	// that is whole can be taken from the weights by the task that has it.
	WholeSums bool `json:"whole_sums,omitempty"`
}

func (t Tiling) String() string {
	name := counted(t.Samples, "sample") + " per task"
	if t.WholeSums {
		name += " and whole gradients"
	}
	return name
}

// Tilings are the variations of a default lowering: the samples per task of all layers times
// powers of two.
type Tilings struct {
	Layer string // the one whose tile stands for all
	Base  dag.Lowering
	Batch int // samples of a step
	// Extents say how far each layer can be cut: by dimension, 0 where it cannot, and how many terms its sums can have.
	Extents map[string]dag.LayerLowering
	// MostParts is how many parts layers may have by names such as "4 parts of the batch", one for each device with a memory
	// of its own. InParts is the lowering with so many of the batch. In one part all layers are whole.
	MostParts int
	InParts   func(parts int) dag.Lowering
}

// of is the tile of the layer by default.
func (t *Tilings) of() int { return t.Base.Layers[t.Layer].Forward.Samples }

// All are those of every size, ascending, and those that differ from them by their sums.
func (t *Tilings) All() []Tiling {
	var all []Tiling
	for _, samples := range tileSizes(t.of(), t.Batch) {
		split, whole := Tiling{Samples: samples}, Tiling{samples, true}
		all = append(all, split)
		if !maps.Equal(t.Lowering(split).Layers, t.Lowering(whole).Layers) {
			all = append(all, whole)
		}
	}
	return all
}

// Lowering is that of a tiling.
func (t *Tilings) Lowering(to Tiling) dag.Lowering {
	l := t.Base
	t.Adapt(to)(&l, t.Batch)
	return l
}

// Adapt is what turns a default lowering, of this machine or of a part of it, into that of a
// tiling.
func (t *Tilings) Adapt(to Tiling) func(l *dag.Lowering, batch int) {
	return func(l *dag.Lowering, batch int) {
		scaled := ScaleTiles(l, to.Samples, t.of(), batch)
		for name, ll := range l.Layers {
			if of := scaled.Layers[name]; to.WholeSums && ll.WeightGradient.Samples >= batch {
				of.WeightGradient.Samples = ll.WeightGradient.Samples
				scaled.Layers[name] = of
			}
		}
		*l = scaled
	}
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

// ScaleTiles multiplies the samples per task of every layer by tile/of, to at least
// one sample and at most the batch. Weight gradients that are split otherwise than their
// layer stay as they are.
func ScaleTiles(base *dag.Lowering, tile, of, batch int) dag.Lowering {
	scale := func(samples int) int {
		if samples == 0 {
			return 0
		}
		return min(max(1, samples*tile/of), batch)
	}
	scaled := *base
	scaled.Layers = maps.Clone(base.Layers)
	for name, ll := range scaled.Layers {
		if ll.WeightGradient.Samples == ll.Forward.Samples {
			ll.WeightGradient.Samples = scale(ll.WeightGradient.Samples)
		}
		ll.Forward.Samples = scale(ll.Forward.Samples)
		scaled.Layers[name] = ll
	}
	return scaled
}

// TileSearch is what a search for the best tiles found.
type TileSearch struct {
	Layer   string    `json:"layer"`   // whose tile stands for all
	Default int       `json:"default"` // samples per task that the caches suggest
	Chosen  int       `json:"chosen"`
	Tries   []TileTry `json:"tries"` // by ascending tile, split sums before whole ones
	// WholeSums says that the sums of the chosen try are whole; see Tiling.
	WholeSums bool `json:"whole_sums,omitempty"`
}

// TileTry is one tiling. PeriodS is the predicted time of a step in seconds, 0 where Error
// says why there is none.
type TileTry struct {
	Tiling
	Tasks   int     `json:"tasks,omitempty"`
	PeriodS float64 `json:"period_s,omitempty"`
	Error   string  `json:"error,omitempty"`
}

// triedSteps is how many steps are simulated for each tiling.
const triedSteps = 10

// Search simulates the first graph of what lower makes of every tiling, as decide decides
// it, and chooses the fastest; between equals the default wins. A tiling that does not run,
// for lack of memory, is left out; the default has to.
func (t *Tilings) Search(ctx context.Context, lower func(dag.Lowering) (*dag.Program, error), decide func(*dag.Program) (*schedule.Decision, error)) (*TileSearch, error) {
	found := &TileSearch{Layer: t.Layer, Default: t.of()}
	for _, tiling := range t.All() {
		try := TileTry{Tiling: tiling}
		prog, err := lower(t.Lowering(tiling))
		if err == nil {
			err = try.predict(ctx, prog, decide)
		}
		if err != nil && (ctx.Err() != nil || tiling.Samples == found.Default) {
			return nil, err
		}
		if err != nil {
			try.Error = OneLine(err)
		}
		found.Tries = append(found.Tries, try)
	}
	found.choose()
	return found, nil
}

// OneLine joins the lines of an error, which errors.Join makes several of.
func OneLine(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }

// predict fills in what a step of the first graph takes.
func (try *TileTry) predict(ctx context.Context, prog *dag.Program, decide func(*dag.Program) (*schedule.Decision, error)) error {
	step := *prog
	step.Graphs, step.Order = prog.Graphs[:1], []dag.Segment{{Graph: 0, Steps: 1}}
	d, err := decide(&step)
	if err != nil {
		return err
	}
	s, err := Simulate(ctx, d, 0, triedSteps, simulate.Options{})
	if err != nil {
		return err
	}
	try.Tasks, try.PeriodS = step.Graphs[0].NumTasks(), StepTime(s).Seconds()
	return nil
}

// choose takes the fastest try: of equals the default, else the one with the smallest tile.
func (s *TileSearch) choose() {
	s.Chosen, s.WholeSums = s.Default, false
	best := s.Of(Tiling{Samples: s.Default}).PeriodS
	for _, try := range s.Tries {
		if try.Error == "" && try.PeriodS < best {
			s.Chosen, s.WholeSums, best = try.Samples, try.WholeSums, try.PeriodS
		}
	}
}

// Best is the tiling that was chosen.
func (s *TileSearch) Best() Tiling { return Tiling{s.Chosen, s.WholeSums} }

// Of is the try of a tiling, which is one of those that were searched.
func (s *TileSearch) Of(tiling Tiling) *TileTry {
	return &s.Tries[slices.IndexFunc(s.Tries, func(t TileTry) bool { return t.Tiling == tiling })]
}
