package best

import (
	"cmp"
	"context"
	"math"
	"slices"

	"dahl/energy"
	"dahl/parallel"
	"dahl/plan"
	"dahl/platform"
	"dahl/schedule"
)

// Why says what the joules and the time of a step go into. Joules belong to one step; shares of the critical path add up to 1,
// and shares of units are relative to the time of a step.
type Why struct {
	Basis      energy.Basis `json:"basis"`        // where the joules come from
	Watts      float64      `json:"watts"`        // the mean power
	BaseJ      float64      `json:"base_j"`       // joules of the machine without its devices
	LeftOutJ   float64      `json:"left_out_j"`   // joules of devices and units that were not chosen
	IdleJ      float64      `json:"idle_j"`       // joules of chosen units that wait, and of links
	BusyJ      float64      `json:"busy_j"`       // joules of units that run tasks
	TransferJ  float64      `json:"transfer_j"`   // joules of links that move something, above idle
	StatesJ    float64      `json:"states_j"`     // joules of sleep, and of changes of states
	PathTasks  float64      `json:"path_tasks"`   // share of tasks in the critical path
	PathCopies float64      `json:"path_copies"`  // share of copies in the critical path
	PathStates float64      `json:"path_states"`  // share of changes of states in the critical path
	PathWaits  float64      `json:"path_waits"`   // share of the time between these in the critical path
	Busiest    string       `json:"busiest"`      // the unit that is busy longest
	BusyShare  float64      `json:"busiest_busy"` // share of the step in which the busiest unit is busy
}

// Use describes the work of a device in a plan.
type Use struct {
	Device string  `json:"device"`
	Units  int     `json:"units"`            // units that the plan may use
	Used   int     `json:"used"`             // units that have a task
	Tasks  int     `json:"tasks"`            // tasks in a step
	Busy   float64 `json:"busy"`             // share of the time of all units that the plan may use
	Clocks []Clock `json:"clocks,omitempty"` // none where the device has one clock
	Sleeps []Sleep `json:"sleeps,omitempty"`
	// Variants lists calls by another variant than the fastest.
	Variants []Variant `json:"variants,omitempty"`
	Placed   bool      `json:"placed,omitempty"` // it runs only tasks that the graph places on it
}

// Variant is the variant by which a device runs a call, see [schedule.Variants].
type Variant struct {
	Call    string `json:"call"`
	Op      string `json:"op"`
	Variant string `json:"variant"`
	Fastest string `json:"fastest"` // the fastest variant by itself, at the first clock with all units of the machine
	Tasks   int    `json:"tasks"`   // tasks in a step
}

// Sleep is the time of a device's units in one sleep state.
type Sleep struct {
	State string  `json:"state"`
	Time  float64 `json:"time"`            // share of the time of all units
	Tasks int     `json:"tasks,omitempty"` // tasks in a step after which the plan lets a unit sleep in the state
}

// Clock is the tasks of a step at one clock of a device.
type Clock struct {
	Clock string `json:"clock"`
	Tasks int    `json:"tasks"`
}

// Layer is where the tasks of a layer run.
type Layer struct {
	Layer   string  `json:"layer"`
	Devices []Share `json:"devices"`
}

// Share is the part of a layer that runs on a device.
type Share struct {
	Device string  `json:"device"`
	Tasks  float64 `json:"tasks"`
	Time   float64 `json:"time"` // share of the busy time
}

// describe says what the best plan is.
func (f *finder) describe(ctx context.Context) (*Chosen, error) {
	c := f.best
	why, err := f.why(ctx, c)
	if err != nil {
		return nil, err
	}
	chosen := &Chosen{Devices: c.units().String(), Tiles: c.Tiles, Strategy: c.Strategy, Policy: c.Policy, Figures: f.figures(c), Why: *why}
	e, err := f.Evaluator.Plan(c.priced, c.Plan)
	if err != nil {
		return nil, err
	}
	ran, err := e.Simulate(ctx, 0, f.steps(), false)
	if err != nil {
		return nil, err
	}
	s, p := ran.Schedule, e.Decision.Problem(0, ran.Schedule.Steps, false)
	chosen.Use, chosen.Layers = usesOf(p, s), layersOf(p, s)
	addVariants(chosen.Use, p, c)
	if states := plan.StatesOf(p, s, ran.Report); states != nil {
		addSleeps(chosen.Use, p, s, states.Sleeps)
	}
	return chosen, nil
}

// steps is how many steps a plan is looked at in.
func (f *finder) steps() int {
	switch {
	case !f.Steady:
		return 1
	case f.hurried:
		return shortRun
	}
	return longRun
}

// why finds the parts of a step of the plan of a choice.
func (f *finder) why(ctx context.Context, c *candidate) (*Why, error) {
	e, err := f.Evaluator.Plan(c.priced, c.Plan)
	if err != nil {
		return nil, err
	}
	n := f.steps()
	ran, err := e.Simulate(ctx, 0, n, false)
	if err != nil {
		return nil, err
	}
	report := ran.Report
	parts := report.Causes
	if f.Steady {
		long, err := e.Simulate(ctx, 0, 2*n, false)
		if err != nil {
			return nil, err
		}
		parts = long.Report.Causes
		for _, x := range []struct {
			of     *float64
			before float64
		}{{&parts.Idle, report.Causes.Idle}, {&parts.Busy, report.Causes.Busy},
			{&parts.Transfer, report.Causes.Transfer}, {&parts.Host, report.Causes.Host}, {&parts.Sleep, report.Causes.Sleep}, {&parts.Switching, report.Causes.Switching}} {
			*x.of = (*x.of - x.before) / float64(n)
		}
	}
	w := &Why{Basis: report.Basis, IdleJ: parts.Idle, BusyJ: parts.Busy, TransferJ: parts.Transfer, StatesJ: parts.Sleep + parts.Switching}
	if watts := c.priced.Platform.HostWatts().Value; watts > 0 {
		w.BaseJ = float64(parts.Host * (f.baseWatts() / watts))
		w.LeftOutJ = parts.Host - w.BaseJ
	}
	if c.Makespan > 0 {
		w.Watts = c.Joules / c.Makespan.Seconds()
	}
	w.addTimes(e.Decision.Problem(0, n, false), ran.Schedule)
	return w, nil
}

// baseWatts is the power of the machine with all devices that sets choose among, and without them: it has no idle watts of
// units that were left out of these.
func (f *finder) baseWatts() float64 {
	least := math.Inf(1)
	for _, c := range slices.Concat(f.candidates, f.covered) {
		least = min(least, c.priced.Platform.HostWatts().Value)
	}
	return least
}

// addTimes finds the parts of the critical path, and the busiest unit.
func (w *Why) addTimes(p *schedule.Problem, s *schedule.Schedule) {
	path := plan.WaitsOf(p, s).Path
	if all := path.TasksS + path.CopiesS + path.ChangeS + path.WaitS; all > 0 {
		w.PathTasks, w.PathCopies, w.PathStates, w.PathWaits = path.TasksS/all, path.CopiesS/all, path.ChangeS/all, path.WaitS/all
	}
	busy := plan.BusyPerStep(s, len(p.Platform.Workers))
	most := 0
	for i := range busy {
		if busy[i] > busy[most] {
			most = i
		}
	}
	w.Busiest = p.Platform.Workers[most].Name
	if step := plan.StepTime(s).Seconds(); step > 0 {
		w.BusyShare = busy[most] / step
	}
}

// usesOf counts what a schedule does with each device.
func usesOf(p *schedule.Problem, s *schedule.Schedule) []Use {
	pl := p.Platform
	uses, clocks := make([]Use, len(pl.Devices)), make([][]int, len(pl.Devices))
	for i := range uses {
		d := &pl.Devices[i]
		uses[i] = Use{Device: d.Name, Units: d.Count, Placed: d.PlacedOnly}
		clocks[i] = make([]int, max(1, len(d.Clocks)))
	}
	worked := make([]bool, len(pl.Workers))
	for i := range s.Spans {
		span := &s.Spans[i]
		d := pl.Workers[span.Worker].Device
		if !worked[span.Worker] {
			worked[span.Worker] = true
			uses[d].Used++
		}
		uses[d].Tasks++
		uses[d].Busy += (span.End - span.Start).Seconds()
		clock, _ := p.StatesOf(span.Task, d)
		clocks[d][clock]++
	}
	for i := range uses {
		d := &pl.Devices[i]
		uses[i].Tasks /= s.Steps
		if s.Makespan > 0 {
			uses[i].Busy /= s.Makespan.Seconds() * float64(d.Count)
		}
		for k, n := range clocks[i] {
			if len(d.Clocks) > 1 && n > 0 {
				uses[i].Clocks = append(uses[i].Clocks, Clock{d.ClockAt(platform.ClockID(k)).Name, n / s.Steps})
			}
		}
	}
	return uses
}

// addVariants lists the calls of a plan by other variants than the price's.
func addVariants(uses []Use, p *schedule.Problem, c *candidate) {
	for w, list := range c.Plan.Order {
		id := p.Platform.Workers[w].Device
		u := &uses[id]
		for _, t := range list {
			is, _ := p.Costs.Of(t, id)
			fastest, _ := c.priced.Costs(0).Of(t, id)
			if is.Variant == fastest.Variant {
				continue
			}
			of := Variant{schedule.CallName(&p.Graph.Tasks[t]), p.Graph.Tasks[t].Op, is.Variant, fastest.Variant, 0}
			at := slices.IndexFunc(u.Variants, func(v Variant) bool { v.Tasks = 0; return v == of })
			if at < 0 {
				at = len(u.Variants)
				u.Variants = append(u.Variants, of)
			}
			u.Variants[at].Tasks++
		}
	}
}

// addSleeps says in which states the devices sleep in a schedule.
func addSleeps(uses []Use, p *schedule.Problem, s *schedule.Schedule, sleeps []plan.SleepUse) {
	for i := range uses {
		u, d := &uses[i], &p.Platform.Devices[i]
		for _, slept := range sleeps {
			if slept.Of != d.Name || s.Makespan == 0 {
				continue
			}
			in := Sleep{State: slept.State, Time: slept.AsleepS * float64(s.Steps) / (s.Makespan.Seconds() * float64(d.Count))}
			for k := range s.Spans {
				span := &s.Spans[k]
				_, planned := p.StatesOf(span.Task, platform.DeviceID(i))
				if int(p.Platform.Workers[span.Worker].Device) == i && planned > 0 && d.Sleeps[planned-1].Name == in.State {
					in.Tasks++
				}
			}
			in.Tasks /= s.Steps
			u.Sleeps = append(u.Sleeps, in)
		}
	}
}

// layersOf says which devices run the tasks of each layer; nil where the graph names no layers.
func layersOf(p *schedule.Problem, s *schedule.Schedule) []Layer {
	type sum struct{ tasks, time float64 }
	devices := len(p.Platform.Devices)
	var names []string
	sums := map[string][]sum{}
	for i := range p.Graph.Tasks {
		if name := p.Graph.Tasks[i].Labels.Layer; name != "" && sums[name] == nil {
			names = append(names, name)
			sums[name] = make([]sum, devices+1)
		}
	}
	for i := range s.Spans {
		span := &s.Spans[i]
		of := sums[p.Graph.Tasks[span.Task].Labels.Layer]
		if of == nil {
			continue
		}
		for _, k := range []int{int(p.Platform.Workers[span.Worker].Device), devices} {
			of[k].tasks++
			of[k].time += (span.End - span.Start).Seconds()
		}
	}
	var layers []Layer
	for _, name := range names {
		layer, all := Layer{Layer: name}, sums[name][devices]
		for d := range devices {
			if of := sums[name][d]; of.tasks > 0 {
				layer.Devices = append(layer.Devices, Share{p.Platform.Devices[d].Name, of.tasks / all.tasks, of.time / cmp.Or(all.time, 1)})
			}
		}
		layers = append(layers, layer)
	}
	return layers
}

// Spread is where the objective lies when durations are drawn from the distributions of the platform, for the chosen plan and
// the next best.
type Spread struct {
	Missing string         `json:"missing,omitempty"` // why nothing was drawn
	Draws   int            `json:"draws,omitempty"`
	Seed    uint64         `json:"seed"`
	Chosen  *plan.Interval `json:"chosen,omitempty"`
	Next    *plan.Interval `json:"next,omitempty"`
	// NextWins is the share of the draws in which the next best plan has less.
	NextWins *float64 `json:"next_wins,omitempty"`
}

// draws is how often durations are drawn where there is time for it.
const draws = 100

// spread draws durations for the best plan and the next one, the same for both where they run the same, until ctx ends.
func (f *finder) spread(ctx context.Context, next *candidate, seed uint64) (*Spread, error) {
	plans := []*candidate{f.best}
	if next != nil {
		plans = append(plans, next)
	}
	of, some := make([]*plan.Evaluated, len(plans)), false
	for i, c := range plans {
		var err error
		if of[i], err = f.Evaluator.Plan(c.priced, c.Plan); err != nil {
			return nil, err
		}
		some = some || plan.Draw(of[i].Decision.Problem(0, 1, false), seed, 0) != nil
	}
	if !some {
		return &Spread{Seed: seed, Missing: plan.NoDistributions}, nil
	}
	drawn := make([][]float64, draws) // by draw and plan; nil means there was no time
	err := parallel.Do(ctx, draws, func(k int) error {
		values := make([]float64, len(plans))
		for i, e := range of {
			scale := plan.Draw(e.Decision.Problem(0, 1, false), seed, uint64(k))
			step, err := e.DrawnStep(ctx, f.Steady, shortRun, scale)
			if err != nil {
				return err
			}
			values[i] = f.Objective.Of(step.Time, step.Joules)
		}
		drawn[k] = values
		return nil
	})
	if err != nil && ctx.Err() == nil {
		return nil, err
	}
	drawn = slices.DeleteFunc(drawn, func(values []float64) bool { return values == nil })
	return spreadOf(drawn, seed), nil
}

// spreadOf is where the values of one or two plans lie.
func spreadOf(drawn [][]float64, seed uint64) *Spread {
	s := &Spread{Seed: seed, Draws: len(drawn)}
	if s.Draws == 0 {
		s.Missing = "the search ended before durations were drawn"
		return s
	}
	wins, of := 0, make([][]float64, len(drawn[0]))
	for _, values := range drawn {
		for i, value := range values {
			of[i] = append(of[i], value)
		}
		if len(values) > 1 && values[1] < values[0] {
			wins++
		}
	}
	chosen := plan.NewInterval(of[0])
	s.Chosen = &chosen
	if len(of) > 1 {
		next, share := plan.NewInterval(of[1]), float64(wins)/float64(s.Draws)
		s.Next, s.NextWins = &next, &share
	}
	return s
}
