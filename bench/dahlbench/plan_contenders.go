package main

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"dahl/cmd/dahl/flags"
	"dahl/dag"
	"dahl/nn"
	"dahl/parallel"
	"dahl/plan"
	"dahl/plan/problem"
	"dahl/plan/space"
	"dahl/platform"
	"dahl/schedule"
	"dahl/schedule/policy"
	"dahl/train"
)

// contender plans a step of a network on a machine without a search.
type contender struct {
	machine *platform.Platform
	model   *nn.Model
	samples train.Samples
	batch   int
	sets    []string // of devices, from which dahl plan chooses
}

// found is a plan, and what a steady step takes by it.
type found struct {
	devices  string
	lowering dag.Lowering
	tiles    string // how a hand names the lowering
	policy   schedule.Policy
	plan.Step
	value float64 // of an objective
}

func (f *found) String() string {
	text := cmp.Or(f.devices, "all devices")
	if f.tiles != "" {
		text += ", " + f.tiles
	}
	return text + ", " + f.policy.Doc().Name
}

// Steps of the two runs whose difference is a steady step: of looks, and of results.
const (
	shortRun = 6
	longRun  = 50
)

// newContender plans within a list of devices; "" means all.
func newContender(file, devices, network string, batch int) (*contender, error) {
	p, err := machine(file, devices, 0)
	if err != nil {
		return nil, err
	}
	c := &contender{machine: p, batch: batch}
	if c.model, c.samples, err = flags.FittedModel(&flags.Options{Model: network}); err != nil {
		return nil, err
	}
	w, err := c.on("")
	if err == nil {
		c.sets = space.Sets(p, w.Program.Graphs[0])
	}
	return c, err
}

// on is the workload on some of the devices, with default tiles.
func (c *contender) on(devices string) (*train.Workload, error) {
	p := c.machine
	if devices != "" {
		var err error
		if p, err = p.Select(devices); err != nil {
			return nil, err
		}
	}
	w := &train.Workload{Options: train.Options{OtherMachine: true, Batch: c.batch, Devices: devices}, Model: c.model, Samples: c.samples, Platform: p}
	return w, w.Lower()
}

// run finds what a steady step takes. It fails where there is no plan.
func (c *contender) run(ctx context.Context, f *found, steps int) error {
	w, err := c.on(f.devices)
	if err != nil {
		return err
	}
	priced, err := w.PriceAs(f.lowering)
	if err != nil {
		return err
	}
	e, err := new(plan.Evaluator).Policy(ctx, priced, f.policy, true)
	if err != nil {
		return err
	}
	if e == nil {
		return errors.New("the policy has no plan")
	}
	f.Step, err = e.Step(ctx, true, steps)
	return err
}

// byHand makes random choices as a hand does. Those that cannot run are left out.
func (c *contender) byHand(ctx context.Context, choices int, seed uint64) ([]found, error) {
	all := make([]found, choices)
	err := parallel.Do(ctx, choices, func(i int) error {
		r, f := rand.New(rand.NewPCG(seed, uint64(i))), &all[i]
		f.devices, f.policy = c.sets[r.IntN(len(c.sets))], policy.All()[r.IntN(len(policy.All()))]
		w, err := c.on(f.devices)
		if err != nil {
			return err
		}
		t, err := w.Tilings()
		if err != nil {
			return err
		}
		tiles := t.All()[r.IntN(len(t.All()))]
		f.tiles = tiles.String()
		if f.lowering, err = t.Lowering(tiles); err != nil {
			return err
		}
		if c.run(ctx, f, shortRun) != nil {
			f.Time = 0
		}
		return ctx.Err()
	})
	return slices.DeleteFunc(all, func(f found) bool { return f.Time == 0 }), err
}

// least is the best of some plans by an objective, run for as many steps as results are told in.
func (c *contender) least(ctx context.Context, o problem.Objective, all []found) (found, error) {
	least := found{value: math.Inf(1)}
	for _, f := range all {
		if f.value = o.Of(f.Time, f.Joules); f.value < least.value {
			least = f
		}
	}
	if math.IsInf(least.value, 1) {
		return least, nil
	}
	err := c.run(ctx, &least, longRun)
	least.value = o.Of(least.Time, least.Joules)
	return least, err
}

// climb is a random hill climb from default tiles on all devices.
func (c *contender) climb(ctx context.Context, o problem.Objective, evaluations int, seed uint64) (found, error) {
	best := found{value: math.Inf(1), policy: policy.HEFT}
	if evaluations == 0 {
		return best, nil
	}
	w, err := c.on("")
	if err != nil {
		return best, err
	}
	extents, err := c.model.Extents(c.batch, true)
	if err != nil {
		return best, err
	}
	best.lowering = *w.Lowering
	r := rand.New(rand.NewPCG(seed, 568))
	for i := range evaluations {
		next := best
		if i > 0 {
			c.change(&next, extents, r)
		}
		if c.run(ctx, &next, shortRun) == nil {
			if next.value = o.Of(next.Time, next.Joules); next.value <= best.value {
				best = next
			}
		}
		if ctx.Err() != nil {
			return best, ctx.Err()
		}
	}
	return c.least(ctx, o, []found{best})
}

// change changes up to three numbers of single layers, or the units of a device or of all of a kind.
func (c *contender) change(f *found, extents map[string]dag.LayerLowering, r *rand.Rand) {
	if r.IntN(4) == 0 {
		f.devices = c.changeUnits(f.devices, r)
	}
	layers := slices.Sorted(maps.Keys(extents))
	f.lowering.Layers = maps.Clone(f.lowering.Layers)
	for left := 1 + r.IntN(3); left > 0; {
		layer := layers[r.IntN(len(layers))]
		ll, most := f.lowering.Of(layer), extents[layer]
		pass, of := dag.Pass(r.IntN(int(dag.NumPasses))), dag.Dimension(r.IntN(int(dag.NumDimensions)))
		number, extent := ll.Cut(pass).Of(of), *most.Cut(pass).Of(of)
		if extent <= 1 {
			continue
		}
		left--
		if *number == 0 {
			*number = extent
		}
		if *number = (*number + 1) / 2; r.IntN(2) == 0 {
			*number = min(extent, 4**number)
		}
		if pass.Sums(of) { // each part has an accumulator
			ll.Cut(pass).Accumulators = (extent + *number - 1) / *number
		}
		f.lowering.Layers[layer] = ll
	}
}

// changeUnits gives a device, or all of its kind, no units, half or twice as many, or all.
func (c *contender) changeUnits(devices string, r *rand.Rand) string {
	p := c.machine
	if devices != "" {
		p, _ = p.Select(devices) // it could be selected before
	}
	one, together, change := &c.machine.Devices[r.IntN(len(c.machine.Devices))], r.IntN(4) > 0, r.IntN(4)
	var items []string
	for i := range c.machine.Devices {
		d, units := &c.machine.Devices[i], 0
		if at := slices.IndexFunc(p.Usable(), func(of *platform.Device) bool { return of.Name == d.Name }); at >= 0 {
			units = p.Usable()[at].Count
		}
		if d == one || together && d.Kind == one.Kind {
			units = [...]int{0, max(1, units/2), min(d.Count, max(1, 2*units)), d.Count}[change]
		}
		if units > 0 {
			items = append(items, d.Item(units))
		}
	}
	if len(items) == 0 {
		return devices
	}
	return strings.Join(items, ",")
}
