package schedule

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"dahl/dag"
	"dahl/naming"
	"dahl/platform"
)

// costOptions says how the costs of a graph are found.
type costOptions struct {
	target   Target
	variants Variants // fixed beforehand, by a plan or by the whole machine
	// timed says that the run times its tasks, as the measurements of the models did. If it does
	// not, each call on a device takes its platform.Device.Timing less than measured.
	timed bool
	// clocks are the clocks of a plan's tasks. Costs are at these clocks on every device that has them. Nil means the
	// clock in force.
	clocks []platform.ClockID
}

// clock is the clock of a task.
func (o *costOptions) clock(t int) platform.ClockID {
	if o.clocks == nil {
		return platform.InForce
	}
	return o.clocks[t]
}

// costKey identifies a kind of work. Tasks of one class agree in all of it, and in the device of their placement.
type costKey struct {
	op, shape, given string
	dtype            dag.DType
	flops            float64
	movedBytes       int64
	clock            platform.ClockID
}

// placedWork is a kind of work on the device of a placement, or in the column of an only device.
type placedWork struct {
	work   int32
	device string
	column int32
}

// newCosts finds the costs of the tasks of a graph, see [Price].
func newCosts(g *dag.Graph, p *platform.Platform, opt costOptions) (*Costs, error) {
	c := &Costs{Class: make([]int32, len(g.Tasks))}
	like := newColumns(g, p, opt)
	c.column = like.of
	works, classes, rows := map[costKey]int32{}, map[placedWork]int32{}, map[placedWork][]Cost{}
	is := placedWork{}
	for t := range g.Tasks {
		task := &g.Tasks[t]
		if t == 0 || !sameWork(task, &g.Tasks[t-1]) || opt.clock(t) != opt.clock(t-1) { // neighbours often are tiles of one layer
			key, known := costKey{op: task.Op, shape: task.Shape, dtype: task.Type, flops: task.Flops, movedBytes: task.MovedBytes, given: givenKey(task.Costs), clock: opt.clock(t)}, false
			if is.work, known = works[key]; !known {
				is.work = int32(len(works))
				works[key] = is.work
			}
		} else if task.Placement == g.Tasks[t-1].Placement {
			c.Class[t] = c.Class[t-1]
			continue
		}
		is.device = ""
		if task.Placement != nil {
			is.device = task.Placement.Device
		}
		class, ok := classes[is]
		if !ok {
			class = int32(len(c.ByClass))
			classes[is] = class
			devices, only, of := like.firsts, like.only(task.Placement), is
			if only >= 0 {
				devices, of.device, of.column = []platform.DeviceID{only}, "", 1+like.of[only]
			}
			row, known := rows[of]
			if !known {
				var err error
				if row, err = costRow(g, dag.TaskID(t), p.AtClocks(opt.clock(t)), opt, devices, like); err != nil {
					return nil, fmt.Errorf("task %q (%s) of graph %q: %w", task.Name, task.Op, g.Name, err)
				}
				rows[of] = row
			}
			c.ByClass, c.only = append(c.ByClass, row), append(c.only, only)
		}
		c.Class[t] = class
	}
	return c, nil
}

// PriceTasks is the cost of the tasks of a graph on the devices of a platform. Nothing else of the graph has to be whole.
func PriceTasks(g *dag.Graph, p *platform.Platform, target Target) (*Costs, error) {
	return newCosts(g, p, costOptions{target: target})
}

// sameWork reports whether two tasks surely have one kind of work.
func sameWork(a, b *dag.Task) bool {
	return a.Op == b.Op && a.Shape == b.Shape && a.Type == b.Type && a.Flops == b.Flops && a.MovedBytes == b.MovedBytes &&
		len(a.Costs) == len(b.Costs) && (len(a.Costs) == 0 || &a.Costs[0] == &b.Costs[0])
}

// givenKey writes the costs given for a task as a string that equals another
// task's only if they are the same.
func givenKey(costs []dag.Cost) string {
	var b []byte
	for _, c := range costs {
		b = strconv.AppendQuote(b, c.Key)
		b = strconv.AppendInt(append(b, ' '), c.Ns, 10)
		b = strconv.AppendFloat(append(b, ' '), c.Joules, 'g', -1, 64)
	}
	return string(b)
}

// costRow is the cost of one task on some devices, each the first of its column.
func costRow(g *dag.Graph, t dag.TaskID, p *platform.Platform, opt costOptions, devices []platform.DeviceID, like *columns) ([]Cost, error) {
	task := &g.Tasks[t]
	row := slices.Repeat([]Cost{{Duration: -1}}, len(like.firsts))
	offers := map[string][]Offer{} // by kind
	runs := false
	for _, d := range devices {
		if !mayRunOn(task.Placement, p, d) {
			continue
		}
		kind := p.Devices[d].Kind
		if _, known := offers[kind]; !known {
			offers[kind] = opt.target.Offers(g, t, kind)
		}
		if of := offers[kind]; len(of) > 0 && of[0].Host && !byCaller(p, d) && like.only(task.Placement) != d {
			continue
		}
		if cost, ok := costOn(task, p, d, offers[kind], opt.variants.nameOf(p.Devices[d].Name, task), opt.timed); ok {
			row[like.of[d]], runs = cost, true
		}
	}
	if runs {
		return row, nil
	}
	if task.Placement != nil && task.Placement.Device != "" {
		return nil, fmt.Errorf("it is placed on %q, and platform %q has no such device, worker or kind that can run it", task.Placement.Device, p.Name)
	}
	if len(task.Costs) > 0 {
		return nil, fmt.Errorf("platform %q has no device for which the task gives a cost (%s); name a device or a kind of the platform", p.Name, costKeys(task.Costs))
	}
	kinds := slices.Sorted(maps.Keys(offers))
	if len(kinds) > 0 && !slices.ContainsFunc(kinds, func(kind string) bool { return len(offers[kind]) > 0 }) {
		return nil, fmt.Errorf("there is no kernel of it for devices of kind %s; let a device of another kind take part", strings.Join(kinds, " or "))
	}
	return nil, fmt.Errorf("no device of platform %q has a model for it or a speed for %s", p.Name, task.Type)
}

func costKeys(costs []dag.Cost) string {
	keys := make([]string, len(costs))
	for i, c := range costs {
		keys[i] = c.Key
	}
	return strings.Join(keys, ", ")
}

// costOn is the cost of a task on one device. offers are those for its kind. Without an offer the
// task runs only where the graph or a model gives its time. A variant that is fixed beforehand
// counts where the target leaves a choice.
func costOn(task *dag.Task, p *platform.Platform, d platform.DeviceID, offers []Offer, pinned string, timed bool) (cost Cost, ok bool) {
	if len(offers) == 1 {
		pinned = cmp.Or(offers[0].Variant, pinned)
	}
	switch {
	case len(task.Costs) > 0:
		cost, ok = givenCost(task, p, d, pinned)
	case task.Op == "" && task.Flops == 0 && task.MovedBytes == 0:
		return Cost{Source: FromGraph}, true // a point in the order of others, no work
	default:
		cost, ok = modelledCost(task, p, d, pinned)
		if pinned == "" && cost.Source == FromFit {
			cost = cost.offered(task, p, d, offers)
		}
		ok = ok && (len(offers) > 0 || cost.Source != FromRoofline)
		if !timed && cost.Source != FromRoofline {
			cost.withoutTiming(p.Devices[d].Timing)
		}
	}
	if cost.Variant == "" && len(offers) > 0 {
		cost.Variant = offers[0].Variant
	}
	for _, offer := range offers {
		if offer.Variant == cost.Variant {
			cost.WorkspaceBytes = offer.WorkspaceBytes
		}
	}
	return cost, ok
}

// offered is the cost of the fastest offered variant where the variant of a cost by other shapes is not offered: one may not fit the shape. Without
// a prediction for any of them the cost stays.
func (c Cost) offered(task *dag.Task, p *platform.Platform, d platform.DeviceID, offers []Offer) Cost {
	if slices.ContainsFunc(offers, func(o Offer) bool { return o.Variant == c.Variant }) {
		return c
	}
	best := c
	for _, o := range offers {
		if o.Variant == "" {
			continue
		}
		if e, ok := p.Estimate(queryOf(task, d, o.Variant)); ok && CostSource(e.Source) == FromFit && (best.Variant == c.Variant || e.Duration < best.Duration) {
			best = costOf(e, o.Variant)
		}
	}
	return best
}

// modelledCost asks the platform's models for the cost of a task on a device. An empty pinned
// variant means the fastest one they know. A pinned variant unknown to the models takes the time
// of the fastest.
func modelledCost(task *dag.Task, p *platform.Platform, d platform.DeviceID, pinned string) (Cost, bool) {
	e, ok := p.Estimate(queryOf(task, d, pinned))
	if !ok && pinned != "" {
		e, ok = p.Estimate(queryOf(task, d, ""))
	}
	return costOf(e, cmp.Or(pinned, e.Variant)), ok
}

func queryOf(task *dag.Task, d platform.DeviceID, variant string) platform.Query {
	return platform.Query{Op: task.Op, Variant: variant, Type: task.Type.String(), Device: d, Shape: task.Shape, Flops: task.Flops, MovedBytes: task.MovedBytes}
}

func costOf(e platform.Estimate, variant string) Cost {
	return Cost{Duration: e.Duration, Joules: e.Joules, Variant: variant, Source: CostSource(e.Source), RelError: e.RelError,
		First: e.First, InSteps: e.InSteps, Busy: e.Busy, Alone: e.Alone, Spread: e.Spread}
}

// withoutTiming subtracts the time that being timed adds from a measured or fitted cost. Timing
// is a mean and may exceed the shortest calls: one nanosecond stays, after the dispatch that precedes every call.
func (c *Cost) withoutTiming(timing time.Duration) {
	for _, t := range []*time.Duration{&c.Duration, &c.First,
		&c.Busy.Warm, &c.Busy.Near, &c.Busy.Far, &c.Alone.Warm, &c.Alone.Near, &c.Alone.Far} {
		if *t > 0 { // else it is not known
			*t = max(1, *t-timing)
		}
	}
}

// givenCost finds the cost that the graph gives for a device: a key that names
// the device wins over its kind, the kind over any device, a pinned variant over
// others, and then the fastest wins. A cost of the device's first clock answers at another
// one, stretched, where the graph gives none for that; its joules do not.
func givenCost(task *dag.Task, p *platform.Platform, d platform.DeviceID, pinned string) (best Cost, found bool) {
	bestOrder, device := 0, &p.Devices[d]
	for _, c := range task.Costs {
		name, variant, clock := dag.SplitCostKey(c.Key)
		order := 0
		switch name {
		case device.Name:
			order = 6
		case device.Kind:
			order = 4
		case dag.AnyDevice:
			order = 2
		default:
			continue
		}
		cost := Cost{Duration: time.Duration(c.Ns), Joules: c.Joules, Variant: variant, Source: FromGraph}
		if at, ok := device.ClockByName(clock); at != device.AtClock {
			if !ok || at != 0 || givenAtClock(task.Costs, device, name, variant) {
				continue
			}
			cost.Duration, cost.Joules = p.TimeAtClock(cost.Duration, platform.Query{Type: task.Type.String(), Device: d, Flops: task.Flops, MovedBytes: task.MovedBytes}), 0
		}
		if pinned != "" && variant == pinned {
			order++
		}
		if order > bestOrder || order == bestOrder && cost.Duration < best.Duration {
			best, bestOrder = cost, order
		}
	}
	return best, bestOrder > 0
}

// givenAtClock reports whether some cost names the clock in force.
func givenAtClock(costs []dag.Cost, device *platform.Device, name, variant string) bool {
	return slices.ContainsFunc(costs, func(c dag.Cost) bool {
		n, v, clock := dag.SplitCostKey(c.Key)
		at, _ := device.ClockByName(clock)
		return n == name && v == variant && at == device.AtClock
	})
}

// mayRunOn reports whether a task may run on some worker of a device by its placement.
func mayRunOn(pl *dag.Placement, p *platform.Platform, d platform.DeviceID) bool {
	if pl == nil || pl.Device == "" {
		return !p.Devices[d].PlacedOnly
	}
	return placedOnDevice(pl.Device, p, d)
}

// placedOnDevice reports whether a placement allows some worker of a device. Names of workers begin with the name of their device.
func placedOnDevice(name string, p *platform.Platform, d platform.DeviceID) bool {
	return name == p.Devices[d].Name || name == p.Devices[d].Kind || strings.HasPrefix(name, p.Devices[d].Name) &&
		slices.ContainsFunc(p.Workers, func(w platform.Worker) bool { return w.Device == d && w.Name == name })
}

// byCaller reports whether a device is on the node of a cluster where the caller is. The caller does its tasks there, but for those that are
// placed on a processor of another node.
func byCaller(p *platform.Platform, d platform.DeviceID) bool {
	return p.NodeOf(p.Devices[d].Memory) == p.NodeOf(p.HostMemory())
}

// CheckGiven refuses costs in a graph for a device that the platform does not have. They would
// change nothing, and most are misspelt names. A kind without a device is allowed, since one
// graph may have costs for several machines.
func CheckGiven(g *dag.Graph, p *platform.Platform) error {
	known := []string{dag.AnyDevice}
	for _, k := range platform.Kinds() {
		known = append(known, k.Name)
	}
	for i := range p.Devices {
		known = append(known, p.Devices[i].Name)
	}
	for t := range g.Tasks {
		for _, c := range g.Tasks[t].Costs {
			if name, _, _ := dag.SplitCostKey(c.Key); !slices.Contains(known, name) {
				slices.Sort(known)
				return fmt.Errorf("task %q has a cost for %q, which is neither a device of platform %q nor a kind of devices; there are %s%s",
					g.Tasks[t].Name, name, p.Name, strings.Join(slices.Compact(known), ", "), naming.DidYouMean(name, known))
			}
		}
	}
	return nil
}
