package best

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strings"
	"time"

	"dahl/plan/tiling"
	"dahl/platform"
)

// Explanation gives the result of a search with its reasons, and the cost or saving of other devices.
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
	Devices string        `json:"devices"`
	Tiles   tiling.Tiling `json:"tiles,omitzero"`
	Policy  string        `json:"policy"`
	Figures Figures       `json:"figures"`
	Why     Why           `json:"why"`
	Use     []Use         `json:"use"`              // of each device of the choice
	Layers  []Layer       `json:"layers,omitempty"` // in the order of the graph
}

// Option is one alternative to the chosen choice, or the best of several.
type Option struct {
	Of      string        `json:"of,omitempty"` // the device or the kind of which there are more units, or fewer
	Devices string        `json:"devices"`
	Tiles   tiling.Tiling `json:"tiles,omitzero"`
	Policy  string        `json:"policy,omitempty"`
	// Searched says that the plan was looked for as far as the chosen one. Otherwise the difference between the two says
	// nothing of the devices and tiles: local search may have made it.
	Searched bool `json:"searched"`
	// Nil Figures mean that no plan was made. Why belongs to the next best.
	Figures *Figures `json:"figures,omitempty"`
	Why     *Why     `json:"why,omitempty"`
	// AtLeast is how far any plan of these choices is above the chosen one, as far as bounds say.
	AtLeast float64 `json:"at_least"`
}

// Figures describe a step.
type Figures struct {
	Value    float64 `json:"value"`    // of the objective
	Relative float64 `json:"relative"` // over the chosen plan's, minus 1
	StepS    float64 `json:"step_s"`
	StepJ    float64 `json:"step_j"`
	Late     bool    `json:"late,omitempty"` // after the deadline
}

// Explain says what a search chose and why. Where the search made no plan of the devices next to the chosen ones,
// since none can be better, Explain makes one. The seed is for drawn durations. When ctx or the time of the search ends,
// it plans and draws no more.
func (r *Result) Explain(ctx context.Context, seed uint64) (*Explanation, error) {
	f := r.from
	trials, cancel := until(ctx, f.begun, f.Time, 1)
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
	others := slices.Clone(f.candidates)
	for _, g := range f.groups() {
		option, shown, err := f.option(ctx, trials, g)
		if err != nil {
			return nil, err
		}
		others = append(others, shown)
		if g.more {
			e.Spare = append(e.Spare, *option)
		} else {
			e.Without = append(e.Without, *option)
		}
	}
	next := f.next(others)
	if next == nil { // no plan was made of any other choice
		rest := slices.DeleteFunc(slices.Concat(f.candidates, f.covered), func(c *candidate) bool { return c.Plan != nil })
		if len(rest) > 0 {
			_, shown, err := f.option(ctx, trials, &group{members: rest})
			if err != nil {
				return nil, err
			}
			next = f.next(append(others, shown))
		}
	}
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
	spread, err := f.spread(trials, next, seed)
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
	o := &Option{Devices: c.units().String(), Tiles: c.Tiles, AtLeast: f.relative(c.bound)}
	if c.Plan != nil {
		figures := f.figures(c)
		o.Policy, o.Figures, o.Searched = c.Policy, &figures, c.searched() || !f.best.searched()
	}
	return o
}

// searched reports whether more than policies looked for the plan.
func (c *candidate) searched() bool { return c.moves > 0 || c.nodes > 0 || c.proven }

// root is the choice of the space from which the search went on to this one.
func (c *candidate) root() *candidate {
	for c.origin != nil {
		c = c.origin
	}
	return c
}

// next is a copy of the best but the chosen plan; nil means there is none. The chosen plan does not count under another name, such
// as on more devices than it uses. Neither do plans from the search's way to the chosen one, or from its neighbourhood.
func (f *finder) next(others []*candidate) *candidate {
	var next *candidate
	for _, c := range others {
		same := c.graph == f.best.graph && c.sameStep(f.best)
		beside := c.outside && c.root() == f.best.root()
		if c.Plan != nil && !beside && !math.IsInf(c.Value, 1) && !same && (next == nil || c.Value < next.Value) {
			next = c
		}
	}
	if next == nil {
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

// names are the devices of a set without numbers of units.
func (u units) names() string {
	var names []string
	for _, d := range u {
		names = append(names, d.Name)
	}
	return strings.Join(names, ",")
}

// byKind lists the units of a set by kinds of devices.
func (u units) byKind() map[string]string {
	kinds := map[string]string{}
	for _, d := range u {
		kinds[d.Kind] += d.Item(d.Count) + " "
	}
	return kinds
}

func (u units) count(name string) int {
	if i := slices.IndexFunc(u, func(of *platform.Device) bool { return of.Name == name }); i >= 0 {
		return u[i].Count
	}
	return 0
}

func (u units) total() (n int) {
	for _, of := range u {
		n += of.Count
	}
	return n
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

// option is the best of a group, and the choice that it is. It plans until trials ends.
func (f *finder) option(ctx, trials context.Context, g *group) (*Option, *candidate, error) {
	best, bound := *g.members[0], math.Inf(1)
	keep := func(c *candidate) {
		if c.Plan != nil && (best.Plan == nil || better(&c.Attempt, &best.Attempt)) {
			best = *c
		}
	}
	for _, c := range g.members {
		keep(c)
	}
	tried := map[*candidate]float64{}
	for _, c := range f.open(g) {
		if trials.Err() != nil {
			break
		}
		if best.Plan != nil && c.bound >= best.Value || c.bound < f.best.Value && !slices.Contains(f.covered, c) {
			continue // it is no better than what there is, or the search had no nodes left for it
		}
		trial, err := f.trial(trials, c)
		if err != nil {
			return nil, nil, err
		}
		tried[c] = trial.bound
		keep(trial)
	}
	for _, c := range g.members {
		bound = min(bound, max(c.bound, tried[c]))
	}
	if best.Plan != nil && best.Value < f.best.Value { // in a few steps
		if err := f.refine(ctx, &best); err != nil {
			return nil, nil, err
		}
	}
	o := f.newOption(&best)
	o.Of, o.AtLeast = g.of, f.relative(bound)
	return o, &best, nil
}

// open are the choices of a group without a plan that promise most by their bounds: three with the chosen tiles, but for
// single layers, and one of the others. Among equals those with the number of units nearest to the chosen one go first.
func (f *finder) open(g *group) []*candidate {
	own := f.best.units().total()
	far := func(c *candidate) int { return max(c.units().total()-own, own-c.units().total()) }
	var same, others []*candidate
	for _, c := range g.members {
		switch {
		case c.Plan != nil || c.err != nil:
		case c.Tiles == f.best.root().Tiles:
			same = append(same, c)
		default:
			others = append(others, c)
		}
	}
	for _, list := range [][]*candidate{same, others} {
		slices.SortStableFunc(list, func(a, b *candidate) int { return cmp.Or(cmp.Compare(a.bound, b.bound), cmp.Compare(far(a), far(b))) })
	}
	return slices.Concat(same[:min(3, len(same))], others[:min(1, len(others))])
}

// trial plans for a choice with a tenth of the nodes and of the time of the search.
func (f *finder) trial(ctx context.Context, c *candidate) (*candidate, error) {
	trial, o := *c, *f.Options
	o.Nodes /= 10
	within, cancel := until(ctx, time.Now(), f.Time, 0.1)
	defer cancel()
	if err := trial.planAll(within, &finder{Options: &o, candidates: f.candidates}); err != nil && within.Err() == nil {
		return nil, err
	}
	return &trial, nil
}
