package plan

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	"dahl/dag"
	"dahl/plan/tiling"
	"dahl/schedule"
	"dahl/simulate"
)

// TileSearch is what a search for the best tiles found.
type TileSearch struct {
	Layer   string        `json:"layer"`   // whose samples per task the names say
	Default int           `json:"default"` // samples per task that the caches suggest
	Chosen  tiling.Tiling `json:"chosen"`
	Tries   []TileTry     `json:"tries"` // first with all layers cut alike, then near the best of these
}

// TileTry is one lowering. StepS is the predicted time of a step in seconds, 0 where Error
// says why there is none.
type TileTry struct {
	Tiles tiling.Tiling `json:"tiles"`
	Tasks int           `json:"tasks,omitempty"`
	StepS float64       `json:"step_s,omitempty"`
	Error string        `json:"error,omitempty"`
}

// triedSteps is how many steps are simulated for each lowering.
const triedSteps = 10

// tileSearch is a search that runs.
type tileSearch struct {
	*tiling.Network
	TileSearch
	lower  func(dag.Lowering) (*dag.Program, error)
	decide func(*dag.Program) (*schedule.Decision, error)

	best   TileTry
	layers []string        // of the best, that with the most operations first
	known  int             // how well its durations are, see [schedule.Costs.LeastKnown]
	graphs map[string]bool // that were simulated, by hash
	tasks  int             // in all that were
}

// SearchTiles simulates the first graph of what lower makes of each tiling of a network, as decide decides it. From the fastest it goes
// on to lowerings that differ in a layer, by neighbourhoods as package best does, until nothing is faster or these had four
// times as many tasks in all as the first ones. There it takes only what is known as well: measured, or else estimated. Of equal ones the first wins, of all the
// default. A lowering that does not run, for lack of memory, is left out; the default has to.
func SearchTiles(ctx context.Context, n *tiling.Network, lower func(dag.Lowering) (*dag.Program, error), decide func(*dag.Program) (*schedule.Decision, error)) (*TileSearch, error) {
	s := &tileSearch{Network: n, TileSearch: TileSearch{Layer: n.Layer, Default: n.Default.Layers[n.Layer].Forward.Samples}, lower: lower, decide: decide, graphs: map[string]bool{}}
	for _, tiles := range n.All() {
		if err := s.try(ctx, tiles, len(schedule.Sources)); err != nil {
			return nil, err
		}
	}
	most := 5 * s.tasks
	through := []tiling.Neighbourhood{(*tiling.Network).Mixed, (*tiling.Network).Near, (*tiling.Network).Further}
	for i := 0; i < len(through); i++ {
		before := s.best.Tiles
		for _, layer := range append(s.layers, "") {
			if err := s.tryNear(ctx, layer, through[i], most); err != nil {
				return nil, err
			}
		}
		if s.best.Tiles != before {
			i = -1
		}
	}
	s.Chosen = s.best.Tiles
	return &s.TileSearch, nil
}

// tryNear tries what differs from the best in a layer, while all had fewer tasks than the most.
func (s *tileSearch) tryNear(ctx context.Context, layer string, near tiling.Neighbourhood, most int) error {
	all, err := near(s.Network, s.best.Tiles, layer)
	if err != nil {
		return err
	}
	known := s.known
	for _, tiles := range all {
		if s.tasks >= most {
			return nil
		}
		if err := s.try(ctx, tiles, known); err != nil {
			return err
		}
	}
	return nil
}

// try predicts a step of a lowering, unless the graph is that of another one or its durations are known less well than that.
func (s *tileSearch) try(ctx context.Context, tiles tiling.Tiling, known int) error {
	l, err := s.Lowering(tiles)
	if err != nil {
		return err
	}
	try := TileTry{Tiles: tiles}
	prog, err := s.lower(l)
	if err == nil {
		graph := prog.Graphs[0]
		if hash := graph.Hash(); s.graphs[hash] {
			return nil
		} else {
			s.graphs[hash] = true
		}
		var costs *schedule.Costs
		if costs, err = try.predict(ctx, prog, s.decide); err == nil {
			s.tasks += graph.NumTasks()
			if costs.LeastKnown() > known {
				return nil
			}
			if len(s.Tries) == 0 || try.StepS < s.best.StepS {
				s.best, s.layers, s.known = try, LayersByWork(graph), costs.LeastKnown()
			}
		}
	}
	if err != nil && (ctx.Err() != nil || len(s.Tries) == 0) {
		return err
	}
	if err != nil {
		try.Error = OneLine(err)
	}
	s.Tries = append(s.Tries, try)
	return nil
}

// OneLine joins the lines of an error, which errors.Join makes several of.
func OneLine(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }

// predict fills in what a step of the first graph takes, and returns what its tasks cost.
func (try *TileTry) predict(ctx context.Context, prog *dag.Program, decide func(*dag.Program) (*schedule.Decision, error)) (*schedule.Costs, error) {
	step := *prog
	step.Graphs, step.Order = prog.Graphs[:1], []dag.Segment{{Graph: 0, Steps: 1}}
	d, err := decide(&step)
	if err != nil {
		return nil, err
	}
	s, err := Simulate(ctx, d, 0, triedSteps, simulate.Options{})
	if err != nil {
		return nil, err
	}
	try.Tasks, try.StepS = step.Graphs[0].NumTasks(), StepTime(s).Seconds()
	return d.Priced.Costs(0), nil
}

// LayersByWork are the layers that have tasks, that with the most operations first.
func LayersByWork(g *dag.Graph) []string {
	work := map[string]float64{}
	for i := range g.Tasks {
		work[g.Tasks[i].Labels.Layer] += g.Tasks[i].Flops
	}
	return slices.SortedFunc(maps.Keys(work), func(a, b string) int {
		return cmp.Or(cmp.Compare(work[b], work[a]), cmp.Compare(a, b))
	})
}

// Of is the try of tiles; nil: there is none.
func (s *TileSearch) Of(tiles tiling.Tiling) *TileTry {
	i := slices.IndexFunc(s.Tries, func(t TileTry) bool { return t.Tiles == tiles })
	if i < 0 {
		return nil
	}
	return &s.Tries[i]
}
