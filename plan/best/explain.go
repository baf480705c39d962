package best

import (
	"cmp"
	"context"
	"math"
	"slices"
	"time"

	"dahl/plan/tiling"
	"dahl/platform"
)

// Explanation gives the result of a search with its reasons, and the cost of other devices. It compares what was searched alike: local search
// has made at least half as many moves for an alternative as for the chosen plan, or bounds prove the best plan of the alternative, or that none
// of its plans is better. What is in no such case is left out.
type Explanation struct {
	Chosen Chosen  `json:"chosen"`
	Next   *Option `json:"next,omitempty"` // the best plan of another choice, in more than some layers
	// Spare prices devices and units outside the chosen set, and Without the loss of chosen ones: of one device, or of several of
	// one kind, with all others as they were chosen.
	Spare   []Option `json:"spare,omitempty"`
	Without []Option `json:"without,omitempty"`
	Spread  Spread   `json:"spread"`
}

// Chosen is the plan of a search.
type Chosen struct {
	Devices  string        `json:"devices"`
	Tiles    tiling.Tiling `json:"tiles,omitzero"`
	Strategy string        `json:"strategy,omitempty"`
	Policy   string        `json:"policy"`
	Figures  Figures       `json:"figures"`
	Why      Why           `json:"why"`
	Use      []Use         `json:"use"`              // a line for each device of the choice
	Layers   []Layer       `json:"layers,omitempty"` // in the order of the graph
}

// Option is one alternative to the chosen choice, or the best of several.
type Option struct {
	Of       string        `json:"of,omitempty"` // the device or the kind of which there are more units, or fewer
	Devices  string        `json:"devices"`
	Tiles    tiling.Tiling `json:"tiles,omitzero"`
	Strategy string        `json:"strategy,omitempty"`
	Policy   string        `json:"policy,omitempty"`
	// Nil Figures mean that a bound alone says how the option compares. Why belongs to the next best.
	Figures *Figures `json:"figures,omitempty"`
	Why     *Why     `json:"why,omitempty"`
	// AtLeast is how far any plan of these choices is above the chosen one, as far as bounds say.
	AtLeast float64 `json:"at_least"`
}

// Figures describe a step.
type Figures struct {
	Value    float64 `json:"value"`    // the value of the objective
	Relative float64 `json:"relative"` // over the chosen plan's, minus 1
	StepS    float64 `json:"step_s"`
	StepJ    float64 `json:"step_j"`
	Late     bool    `json:"late,omitempty"` // the step ends after the deadline
}

// Explain says what a search chose and why. The seed is for drawn durations. When ctx or the time of the search ends, it draws
// no more. Where there is little time left, it looks at fewer steps.
func (r *Result) Explain(ctx context.Context, seed uint64) (*Explanation, error) {
	f := r.from
	f.hurried = f.Time > 0 && time.Since(f.begun)+reports*f.best.took > f.Time
	within, cancel := until(ctx, f.begun, f.Time-min(f.best.took, f.Time/2), 1)
	defer cancel()
	ctx = context.WithoutCancel(ctx)
	chosen, err := f.describe(ctx)
	if err != nil {
		return nil, err
	}
	e := &Explanation{Chosen: *chosen}
	for _, c := range f.covered {
		c.bound = r.Bound
	}
	for _, g := range f.groups() {
		option, err := f.option(ctx, g)
		if err != nil {
			return nil, err
		}
		switch {
		case option == nil:
		case g.more:
			e.Spare = append(e.Spare, *option)
		default:
			e.Without = append(e.Without, *option)
		}
	}
	next := f.next()
	if next != nil {
		if err := f.refine(ctx, next); err != nil {
			return nil, err
		}
		why, err := f.why(ctx, next)
		if err != nil {
			return nil, err
		}
		e.Next = f.newOption(next)
		e.Next.Why = why
	}
	spread, err := f.spread(within, next, seed)
	if err != nil {
		return nil, err
	}
	e.Spread = *spread
	return e, nil
}

// figures returns the numbers of the plan of a choice.
func (f *finder) figures(c *candidate) Figures {
	joules := c.Joules
	if c.sameStep(f.best) {
		joules = f.best.Joules
	}
	value := f.Objective.Of(c.Makespan, joules)
	return Figures{Value: value, Relative: f.relative(value), StepS: c.Makespan.Seconds(), StepJ: joules, Late: math.IsInf(c.Value, 1)}
}

// relative returns the distance of a value from the chosen plan's, as a share of the latter.
func (f *finder) relative(value float64) float64 {
	if f.best.Value == 0 {
		return 0
	}
	return value/f.best.Value - 1
}

// refine looks at the plan of a choice in as many steps as results are told in.
func (f *finder) refine(ctx context.Context, c *candidate) error {
	if !f.Steady || c.long {
		return nil
	}
	return c.adoptPlan(ctx, f.Options, c.Plan, longRun)
}

// newOption is the plan of a choice; without one, the choice alone.
func (f *finder) newOption(c *candidate) *Option {
	o := &Option{Devices: c.units().String(), Tiles: c.Tiles, Strategy: c.Strategy, AtLeast: f.relative(c.bound)}
	if c.Plan != nil {
		figures := f.figures(c)
		o.Policy, o.Figures = c.Policy, &figures
	}
	return o
}

// comparable reports whether the plan of a choice is proven, or was looked for as far as the chosen one. Else the difference between the two says
// nothing of devices and tiles: local search may have made it.
func (f *finder) comparable(c *candidate) bool {
	return c.Plan != nil && (c.proven || c.moves > 0 && 2*c.moves >= f.best.moves || c.bound >= c.Value*(1-rounding))
}

// root is the choice of the space from which the search went on to this one.
func (c *candidate) root() *candidate {
	for c.origin != nil {
		c = c.origin
	}
	return c
}

// next is a copy of the best but the chosen choice; nil means there is none, or its plan is not comparable. The chosen plan does not count
// under another name, such as on more devices than it uses. Neither do plans from the search's way to the chosen one, or from its neighbourhood.
func (f *finder) next() *candidate {
	var next *candidate
	for _, c := range f.candidates {
		same := c.graph == f.best.graph && c.sameStep(f.best)
		beside := c.outside && c.root() == f.best.root()
		if c.Plan != nil && !beside && !math.IsInf(c.Value, 1) && !same && (next == nil || c.Value < next.Value) {
			next = c
		}
	}
	if next == nil || !f.comparable(next) {
		return nil
	}
	found := *next
	return &found
}

// units are the devices of a set, each with the number of its units in the set.
type units []*platform.Device

// units are the devices of a choice that may run any task.
func (c *candidate) units() units { return c.priced.Platform.Usable() }

// String is the set as a list for [platform.Platform.Select].
func (u units) String() string { return platform.List(u) }

// byKind lists the units of a set by kinds of devices.
func (u units) byKind() map[string]string {
	kinds := map[string]string{}
	for _, d := range u {
		kinds[d.Kind] += d.Item(d.Count) + " "
	}
	return kinds
}

// classes counts the devices: processors and others.
func (u units) classes() (processors, others int) {
	for _, d := range u {
		if d.IsProcessor() {
			processors++
		} else {
			others++
		}
	}
	return processors, others
}

func (u units) count(name string) int {
	if i := slices.IndexFunc(u, func(of *platform.Device) bool { return of.Name == name }); i >= 0 {
		return u[i].Count
	}
	return 0
}

// change says how a set differs from another: in the units of a device, or of several of one kind, all of
// which it has more of, or fewer. False means otherwise, or not at all.
func (u units) change(to units) (of string, more, ok bool) {
	kind := ""
	for _, x := range slices.Concat(u, to) {
		have, now := u.count(x.Name), to.count(x.Name)
		switch {
		case have == now || of == x.Name:
			continue
		case of == "":
			of, kind, more = x.Name, x.Kind, now > have
		case kind != x.Kind || more != (now > have):
			return "", false, false
		default:
			of = kind
		}
	}
	return of, more, of != ""
}

// group is the choices that have more, or less, of one device or of one kind than the chosen one.
type group struct {
	of      string
	more    bool
	members []*candidate
}

// groups lists them by name.
func (f *finder) groups() []*group {
	var groups []*group
	own := f.best.units()
	for _, c := range slices.Concat(f.candidates, f.covered) {
		of, more, ok := own.change(c.units())
		if !ok {
			continue
		}
		i := slices.IndexFunc(groups, func(g *group) bool { return g.of == of && g.more == more })
		if i < 0 {
			i = len(groups)
			groups = append(groups, &group{of: of, more: more})
		}
		groups[i].members = append(groups[i].members, c)
	}
	slices.SortStableFunc(groups, func(a, b *group) int { return cmp.Compare(a.of, b.of) })
	return groups
}

// option is the best of a group; nil means its plan is not comparable, and a plan of the group may be better than the chosen one.
func (f *finder) option(ctx context.Context, g *group) (*Option, error) {
	best, bound := *g.members[0], math.Inf(1)
	for _, c := range g.members {
		bound = min(bound, c.bound)
		if c.Plan != nil && (best.Plan == nil || better(&c.Attempt, &best.Attempt)) {
			best = *c
		}
	}
	switch {
	case f.comparable(&best):
	case bound < f.best.Value*(1-rounding):
		return nil, nil
	default:
		best.Plan = nil
	}
	if best.Plan != nil && best.Value < f.best.Value { // in a few steps
		if err := f.refine(ctx, &best); err != nil {
			return nil, err
		}
	}
	o := f.newOption(&best)
	o.Of, o.AtLeast = g.of, f.relative(bound)
	return o, nil
}
