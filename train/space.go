package train

import (
	"cmp"
	"fmt"
	"slices"
	"sync"

	"dahl/dag"
	"dahl/nn"
	"dahl/plan"
	"dahl/plan/space"
	"dahl/platform"
	"dahl/schedule"
)

// The names of two lowerings of a space. Others are those of tilings.
const (
	DefaultTiles = "default" // what the devices of a choice suggest
	WholeTiles   = "whole"   // a task for all samples of a layer
)

// Space is what plans of the first graph of a workload may choose from.
type Space struct {
	space.Space
	choices *choices
}

// choices prices a workload on sets of devices with lowerings.
type choices struct {
	Workload
	samples Samples
	whole   *platform.Platform
	fence   string // the devices that sets choose among; "": all

	mutex    sync.Mutex
	programs map[programKey]*lowering // with a model; equal programs are lowered once
}

type programKey struct {
	grain grain
	tiles string
}

// lowering is a lowering and the first graph of its program.
type lowering struct {
	once     sync.Once
	lowering *dag.Lowering
	program  *dag.Program
	err      error
}

// Space makes the space of sets of the devices that a list selects of a machine, and with a network, where
// the workload fixes no lowering, of the tiles named.
func (w *Workload) Space(n Samples, whole *platform.Platform, fence string, tiles ...string) (*Space, error) {
	c := &choices{Workload: *w, samples: n, whole: whole, fence: fence, programs: map[programKey]*lowering{}}
	if w.Model == nil || w.Options.Lowering != nil || len(tiles) == 0 {
		tiles = []string{""}
	}
	p, err := c.on("")
	if err != nil {
		return nil, err
	}
	s := space.Space{Devices: space.Sets(p, w.Program.Graphs[0]), Tiles: tiles, Price: c.price}
	return &Space{s, c}, nil
}

// At is the workload of a choice, before anything is decided.
func (s *Space) At(choice space.Choice) (*Workload, error) { return s.choices.at(choice) }

// Tiles are the names of all lowerings of a network that a space may have, the default first.
func (w *Workload) Tiles() ([]string, error) {
	names := []string{DefaultTiles, WholeTiles}
	if w.Model == nil {
		return names, nil
	}
	t, err := Tilings(w.Model, w.Platform, w.Options.Batch, w.Options.Type)
	if err != nil {
		return nil, err
	}
	for _, tiling := range t.All() {
		if tiling.Samples != t.Batch && tiling != (plan.Tiling{Samples: t.Base.Layers[t.Layer].SampleTile}) {
			names = append(names, tiling.String())
		}
	}
	for _, n := range w.divisions() {
		names = append(names, partsTiles(n))
	}
	return names, nil
}

// divisions are the numbers of parts that a batch may have on a machine: one for each device with a memory of its
// own, and the powers of two below that.
func (w *Workload) divisions() (all []int) {
	most := min(acceleratorsOf(w.Platform), w.Options.Batch)
	for n := 2; n < most; n *= 2 {
		all = append(all, n)
	}
	if most > 1 {
		all = append(all, most)
	}
	return all
}

// acceleratorsOf counts the devices with a memory of their own.
func acceleratorsOf(p *platform.Platform) (n int) {
	for i := range p.Devices {
		if d := &p.Devices[i]; !d.PlacedOnly && !d.IsProcessor() && d.Memory != p.HostMemory() {
			n++
		}
	}
	return n
}

// partsTiles is the name of the lowering with the batch in so many parts.
func partsTiles(n int) string { return fmt.Sprintf("%d parts of the batch", n) }

// partsOf reads such a name; 0: it is another one.
func partsOf(tiles string) (n int) {
	if _, err := fmt.Sscanf(tiles, "%d parts", &n); err != nil || tiles != partsTiles(n) {
		return 0
	}
	return n
}

// on is the machine with the devices of a set.
func (c *choices) on(set string) (*platform.Platform, error) {
	if set = cmp.Or(set, c.fence); set == "" {
		return c.whole, nil
	}
	return c.whole.Select(set)
}

// price is a [space.Space]'s Price.
func (c *choices) price(choice space.Choice) (*schedule.Priced, error) {
	w, err := c.at(choice)
	if err != nil {
		return nil, err
	}
	return schedule.Price(w.Program, w.Platform, w.Target())
}

// at is the workload of a choice, before anything is decided.
func (c *choices) at(choice space.Choice) (*Workload, error) {
	p, err := c.on(choice.Devices)
	if err != nil {
		return nil, err
	}
	if !HasVariant(p, c.Options.Variant) {
		return nil, inputErrorf("variant %q: no kernel has it for these devices", c.Options.Variant)
	}
	w := c.Workload
	w.Platform, w.Decision, w.Options.Devices = p, nil, cmp.Or(choice.Devices, c.fence)
	if w.Model == nil || choice.Tiles == "" {
		return &w, nil
	}
	if n := partsOf(choice.Tiles); n > acceleratorsOf(p) {
		return nil, fmt.Errorf("%d parts of a batch need as many devices with memories of their own", n)
	}
	key := programKey{grainOf(p), choice.Tiles}
	c.mutex.Lock()
	made, ok := c.programs[key]
	if !ok {
		made = &lowering{}
		c.programs[key] = made
	}
	c.mutex.Unlock()
	made.once.Do(func() {
		of := w
		if made.err = of.lowerAs(choice.Tiles, c.samples); made.err == nil {
			of.Program.Graphs, of.Program.Order = of.Program.Graphs[:1], []dag.Segment{{Graph: 0, Steps: 1}}
			made.lowering, made.program = of.Lowering, of.Program
		}
	})
	w.Lowering, w.Program = made.lowering, made.program
	return &w, made.err
}

// lowerAs lowers the model with tiles by their name.
func (w *Workload) lowerAs(tiles string, n Samples) error {
	t, err := Tilings(w.Model, w.Platform, w.Options.Batch, w.Options.Type)
	if err != nil {
		return err
	}
	w.Options.Lowering, w.Options.Adapt = nil, nil
	switch tiles {
	case DefaultTiles:
	case WholeTiles:
		w.Options.Adapt = t.Adapt(plan.Tiling{Samples: t.Batch})
	default:
		if n := partsOf(tiles); n > 1 {
			w.Options.Adapt = func(l *dag.Lowering, batch int) { *l = nn.PartsLowering(w.Model, batch, n, w.Options.Type) }
			break
		}
		all := t.All()
		i := slices.IndexFunc(all, func(to plan.Tiling) bool { return to.String() == tiles })
		if i < 0 {
			return fmt.Errorf("tiles %q: the layers of %s cannot be cut so", tiles, w.Model.Name)
		}
		w.Options.Adapt = t.Adapt(all[i])
	}
	return w.Lower(n)
}
