package train

import (
	"cmp"
	"context"
	"sync"

	"dahl/dag"
	"dahl/nn"
	"dahl/plan"
	"dahl/plan/problem"
	"dahl/plan/shares"
	"dahl/plan/space"
	"dahl/plan/strategy"
	"dahl/plan/tiling"
	"dahl/platform"
	"dahl/schedule"
)

// Space is the set of choices for plans of the first graph of a workload.
type Space struct {
	space.Space
	choices *choices
}

// choices prices a workload on sets of devices with lowerings.
type choices struct {
	Workload
	whole *platform.Platform
	fence string // the devices that sets choose among; empty means all

	extents func() (map[string]dag.LayerLowering, error) // of the model, computed once

	sets sync.Map // by a list of devices: the function that gives the platform with these; all models are checked there

	mutex    sync.Mutex
	programs map[programKey]*lowering // with a model; equal programs are lowered once
	networks map[networkKey]*tiling.Network
}

// networkKey decides how a network may be cut on a machine.
type networkKey struct {
	grain        grain
	accelerators int
}

type programKey struct {
	grain  grain
	tiles  tiling.Tiling
	staged space.Choice // with a strategy; else the zero value
}

// lowering is a lowering and the first graph of its program.
type lowering struct {
	once     sync.Once
	lowering *dag.Lowering
	program  *dag.Program
	err      error
}

// Space makes the space of sets of the devices that a list selects of a machine, and with a network, where
// the workload fixes no lowering, of these tiles.
func (w *Workload) Space(whole *platform.Platform, fence string, tiles ...tiling.Tiling) (*Space, error) {
	c := &choices{Workload: *w, whole: whole, fence: fence, programs: map[programKey]*lowering{}, networks: map[networkKey]*tiling.Network{}}
	c.extents = sync.OnceValues(func() (map[string]dag.LayerLowering, error) {
		return c.Model.Extents(c.Options.Batch, !c.Options.Evaluate)
	})
	if w.Model == nil || w.Options.Lowering != nil || w.Options.Tiles != (tiling.Tiling{}) || len(tiles) == 0 {
		tiles = []tiling.Tiling{{}}
	}
	p, err := c.platformOf("")
	if err != nil {
		return nil, err
	}
	if tiles[0] == tiling.Of(tiling.Base{Kind: tiling.Default}) {
		c.programs[programKey{grain: grainOf(w.Platform), tiles: tiles[0]}] = &lowering{lowering: w.Lowering, program: firstOf(w.Program)}
	}
	s := &Space{space.Space{Devices: space.Sets(p, w.Program.Graphs[0]), Tiles: tiles, Price: c.price, Skips: c.skips}, c}
	model := sync.OnceValues(c.model)
	if w.Model != nil {
		s.Estimate = func(choice space.Choice, aim problem.Aim) (float64, bool) {
			m, err := model()
			if err != nil {
				return 0, false
			}
			return m.estimate(choice, aim)
		}
		s.Ranked = func(ctx context.Context, devices []string, aim problem.Aim, effort float64) ([]space.Ranked, error) {
			m, err := model()
			if err != nil {
				return nil, err
			}
			if len(s.Neighbourhoods) == 0 {
				return m.estimated((&space.Space{Devices: devices, Tiles: s.Tiles, Skips: s.Skips}).Choices(), aim), nil
			}
			return m.ranked(ctx, devices, aim, effort)
		}
	}
	if tiles[0] != (tiling.Tiling{}) {
		s.Layers = plan.LayersByWork(w.Program.Graphs[0])
		if s.Strategies, s.Named = c.strategies(p), c.named; !w.Options.Evaluate { // which has no micro-batches
			s.Layers = append(s.Layers, "")
		}
		for _, near := range []tiling.Neighbourhood{(*tiling.Network).Neighbours, (*tiling.Network).Further, (*tiling.Network).Mixed} {
			s.Neighbourhoods = append(s.Neighbourhoods, c.neighbourhood(near, model))
		}
		if !w.Options.Evaluate {
			s.Smaller = c.smaller
		}
		s.Shares = func(ctx context.Context) (*shares.Step, *platform.Platform, error) {
			made, err := c.shares(ctx)
			return made, p, err
		}
	}
	return s, nil
}

// At is the workload of a choice, before anything is decided.
func (s *Space) At(choice space.Choice) (*Workload, error) { return s.choices.workloadOf(choice) }

// Tiles lists the tilings of a network that a space combines with every set of devices, the default first.
func (w *Workload) Tiles() ([]tiling.Tiling, error) {
	if w.Model == nil {
		return []tiling.Tiling{tiling.Of(tiling.Base{Kind: tiling.Default})}, nil
	}
	t, err := w.Tilings()
	if err != nil {
		return nil, err
	}
	return t.All(), nil
}

// neighbourhood is one of a [space.Space].
func (c *choices) neighbourhood(near tiling.Neighbourhood, model func() (*modelled, error)) space.Neighbourhood {
	return func(choice space.Choice, layer string) (similar []space.Choice, err error) {
		if choice.Strategy != "" {
			m, err := model()
			if err != nil {
				return nil, err
			}
			return m.nearStrategies(choice)
		}
		p, err := c.platformOf(choice.Devices)
		if err != nil {
			return nil, err
		}
		t, err := c.tilings(p)
		if err != nil {
			return nil, err
		}
		all, err := near(t, choice.Tiles, layer)
		for _, tiles := range all {
			similar = append(similar, space.Choice{Devices: choice.Devices, Tiles: tiles})
		}
		return similar, err
	}
}

// smaller is a [space.Space]'s Smaller.
func (c *choices) smaller(choice space.Choice) (all []space.Choice, err error) {
	p, err := c.platformOf(choice.Devices)
	if err != nil {
		return nil, err
	}
	t, err := c.tilings(p)
	if err != nil {
		return nil, err
	}
	for _, tiles := range t.Smaller(choice.Tiles) {
		all = append(all, space.Choice{Devices: choice.Devices, Tiles: tiles})
	}
	return all, nil
}

// platformOf is the machine with the devices of a set.
func (c *choices) platformOf(set string) (*platform.Platform, error) {
	if set = cmp.Or(set, c.fence); set == "" {
		return c.whole, nil
	}
	selected, _ := c.sets.LoadOrStore(set, sync.OnceValues(func() (*platform.Platform, error) { return c.whole.Select(set) }))
	return selected.(func() (*platform.Platform, error))()
}

// price is a [space.Space]'s Price.
func (c *choices) price(choice space.Choice) (*schedule.Priced, error) {
	w, err := c.workloadOf(choice)
	if err != nil {
		return nil, err
	}
	return schedule.Price(w.Program, w.Platform, w.Target())
}

// skips leaves out layers in more parts than a set has devices with memories of their own. A plan may still come from
// such a choice where it leaves some devices without tasks.
func (c *choices) skips(choice space.Choice) bool {
	if choice.Tiles.Kind != tiling.Parts {
		return false
	}
	p, err := c.platformOf(choice.Devices)
	return err == nil && choice.Tiles.Number > Accelerators(p)
}

// workloadOf is the workload of a choice, before anything is decided.
func (c *choices) workloadOf(choice space.Choice) (*Workload, error) {
	p, err := c.platformOf(choice.Devices)
	if err != nil {
		return nil, err
	}
	if !HasVariant(p, c.Options.Variant) {
		return nil, inputErrorf("variant %q: no kernel has it for these devices", c.Options.Variant)
	}
	w := c.Workload
	w.Platform, w.Decision, w.Options.Devices = p, nil, cmp.Or(choice.Devices, c.fence)
	if w.Model == nil || choice.Tiles == (tiling.Tiling{}) && choice.Strategy == "" {
		return &w, w.checkStages()
	}
	key := programKey{grain: grainOf(p), tiles: choice.Tiles}
	if choice.Strategy != "" {
		key.staged = choice
	}
	c.mutex.Lock()
	made, ok := c.programs[key]
	if !ok {
		made = &lowering{}
		c.programs[key] = made
	}
	c.mutex.Unlock()
	made.once.Do(func() {
		if made.program == nil {
			made.err = asInput(c.lower(made, &w, choice))
		}
	})
	w.Lowering, w.Program = made.lowering, made.program
	return &w, made.err
}

// lower lowers the first graph of a workload with the tiles or the strategy of a choice.
func (c *choices) lower(made *lowering, w *Workload, choice space.Choice) error {
	l, err := c.loweringOf(w, choice)
	if err != nil {
		return err
	}
	w.Lowering, made.lowering = &l, &l
	options := w.programOptions()
	options.FirstStep = true
	made.program, err = nn.NewProgram(w.Model, options)
	return err
}

// loweringOf is the lowering of a choice, on the devices of a workload.
func (c *choices) loweringOf(w *Workload, choice space.Choice) (l dag.Lowering, err error) {
	if choice.Strategy != "" {
		by, err := strategy.ByName(choice.Strategy)
		if err != nil {
			return l, err
		}
		return by.Split.Lowering(w.network(DefaultLowering(w.Model, w.Platform, w.Options.Batch, w.Options.Type)))
	}
	t, err := c.tilings(w.Platform)
	if err != nil {
		return l, err
	}
	return t.Lowering(choice.Tiles)
}

// tilings are the tilings of the network on some devices.
func (c *choices) tilings(p *platform.Platform) (*tiling.Network, error) {
	extents, err := c.extents()
	if err != nil {
		return nil, err
	}
	key := networkKey{grainOf(p), Accelerators(p)}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.networks[key] == nil {
		c.networks[key] = tilingsOf(c.Model, p, c.Options.Batch, c.Options.Type, extents)
	}
	return c.networks[key], nil
}

// firstOf is one step of the first graph of a program.
func firstOf(p *dag.Program) *dag.Program {
	first := *p
	first.Graphs, first.Order = p.Graphs[:1], []dag.Segment{{Graph: 0, Steps: 1}}
	return &first
}
