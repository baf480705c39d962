package best

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"dahl/parallel"
	"dahl/plan"
	"dahl/plan/certificate"
	"dahl/plan/exact"
	"dahl/plan/problem"
	"dahl/plan/shares"
	"dahl/plan/space"
	"dahl/schedule"
)

// Options say what to look for. Nodes bounds what is tried for each choice beyond the plans of policies.
type Options struct {
	problem.Aim
	Nodes int
	// Time bounds the search and its explanation, in addition to the nodes; what they find then depends on the machine. Zero means that it does not.
	Time time.Duration
	// Progress is told how much of the nodes or of the time a search has spent, in thousandths, and the best value so far; nil
	// means nobody is.
	Progress func(thousandths int, value float64)
	// Brief searches compare plans by few steps, improve the last one alone by local search, and prove nothing.
	Brief bool
	// Begun is when the time began, which may be before the search; zero: with it.
	Begun time.Time
	// Known is the result of another search of the same graph on sets of devices of the same machine; nil means there was none. What
	// is found is no worse than its plan.
	Known *Result
	// Evaluator keeps the plans that are evaluated, for searches in one space; nil means the search has one of its own.
	Evaluator *plan.Evaluator
}

// Result is the best plan found. Makespan and Joules belong to one step; a brief search for the least time integrates no joules.
type Result struct {
	exact.Result
	Evaluated    *plan.Evaluated
	space.Choice                          // the choice of the plan
	Covered      Covered                  // the choices of whose plans none is below Bound
	All          float64                  // no plan of any lowering on any set of devices has less; zero means nothing is known
	Certificate  *certificate.Certificate // the proof of Bound; nil means the search has looked at all plans
	Tried        []Attempt                // the best plan of each choice, the best first
	Simulated    []Attempt                // all different plans of the simulations, the shortest first, see [Front]
	Untried      []string                 // strategies by name that the nodes or the time did not suffice for
	Choices      int                      // choices that can run: of the space and of the neighbourhoods
	Moves        int                      // the moves of local search
	from         *finder
}

// Evaluate evaluates a plan that the search has made.
func (r *Result) Evaluate(t *Attempt) (*plan.Evaluated, error) {
	all := slices.Concat(r.from.candidates, r.from.covered)
	at := slices.IndexFunc(all, func(c *candidate) bool { return c.Choice == t.Choice })
	return r.from.Evaluator.Plan(all[at].priced, t.Plan)
}

// Covered is the choices of whose plans none is below a bound.
type Covered struct {
	Sets, Tilings int  // each tiling on each set of devices
	Tiles         bool // the tilings are the tiles of the plan found
	Own           bool // the choice of the plan found is covered, too, and is none of these
	Clocks        bool // only other clocks of the plan found are covered: its tasks stay where they are, in their order
	Lags          bool // all plans on all devices, with any lags of tasks
	Outside       bool // the plan that was found is none of them
}

// Gap is how far the value may be above the least one, relative to the bound; infinite where no bound covers the plan.
func (r *Result) Gap() float64 {
	switch {
	case !r.Covered.Outside:
		return r.Result.Gap()
	case r.All > 0:
		return r.Value/r.All - 1
	}
	return math.Inf(1)
}

// Attempt is the best plan of one choice.
type Attempt struct {
	space.Choice
	Policy   string // the policy that planned it
	Makespan time.Duration
	Joules   float64
	Value    float64 // the value of the objective; infinite where the step takes too long
	Plan     *schedule.Plan
	Tasks    int // the number of tasks in the graph

	long  bool    // the plan was simulated for as many steps as results are told in
	short float64 // the value by a few steps, by which plans are told apart
}

// finder is a search.
type finder struct {
	*Options
	space      *space.Space
	candidates []*candidate
	best       *candidate               // the choice with the best plan; nil means none yet
	whole      *candidate               // all devices by default, or the first choice that can be priced
	begun      time.Time                // when the time of the search began
	left       int                      // the nodes that are not spent
	reserved   int                      // nodes that rounds leave for proofs
	least      int                      // the nodes that the step of a round leaves; all nodes before the first step
	searched   bool                     // the rounds have ended
	spent      int                      // the nodes that steps of rounds have taken
	unit       int                      // the usual size of a plan in nodes
	contenders []*contender             // the most promising first
	strategies []space.Ranked           // choices with strategies to plan for, the most promising first
	named      []space.Ranked           // choices that a user names, to plan for, the most promising first
	sets       map[string]units         // the devices of a set, of the space or of a candidate
	others     sync.Map                 // by a set: the function that gives its otherUnits
	reduced    map[space.Choice]bool    // choices whose smaller ones were planned for, see [space.Space.Smaller]
	refined    map[string]int           // how often the model has ranked the neighbours of a set
	gained     map[string]float64       // by sort of set, see compareWithModel
	alike      map[string]int32         // by device: the number of the group of alike ones
	sorts      map[string]string        // of sets, see sort
	promises   map[space.Choice]float64 // values of proposals by the model; zero means that it does not know
	sure       int                      // how well durations are known on all devices, see [schedule.Costs.LeastKnown]
	tried      map[space.Choice]bool    // choices that were priced
	covered    []*candidate             // choices whose plans are plans of a candidate with a larger set of devices
	graphs     map[[2]string]bool       // the graphs of candidates: devices, and the hash with the order of a pipeline
	refused    []refusal
	models     certificate.Models
	hurried    bool          // the explanation has little time
	all        *shares.Bound // the bound for all lowerings; nil means there is none
}

// candidate is a choice that can run, with the state of its search.
type candidate struct {
	Attempt
	attempts []Attempt // all plans that were simulated
	priced   *schedule.Priced
	graph    string // the hash of its graph
	err      error  // why the choice, or a plan for it, cannot run
	listState
	proofState

	origin  *candidate // the choice from which the search went on to this one; nil means it was proposed
	outside bool       // the space does not list the choice
	dropped bool       // the choice is outside, and others are better: the certificate does without it

	planned  bool          // first, planByAll or search has planned for the choice
	byAll    bool          // all policies have planned for the choice
	nodes    int           // the nodes that branch and bound has looked at
	lookedAt int           // the most nodes of the last branch and bound
	plans    int           // how many simulations of shortRun steps the plans took, also attempts with more evictions
	took     time.Duration // the time of the last simulation of many steps
	moves    int           // the moves of local search

	draws int                       // how often similar choices were drawn
	dry   bool                      // the last draw found no choice that is new
	near  map[nearby][]space.Choice // the neighbours that were looked for
}

// listState is the best plan for a choice by policies or by branch and bound. Local search may begin with it.
type listState struct {
	list     *schedule.Plan // nil means there is none
	listed   float64        // the value of list by a few steps; infinite without a plan
	used     string         // the devices with tasks in list
	narrowed bool           // the choice of the used devices alone has a plan as good
	again    bool           // the last local search began with list
}

// proofState is the bound of all plans of a choice, with its proof.
type proofState struct {
	bound  float64           // no plan has less
	proven bool              // branch and bound has looked at all plans
	leaf   *certificate.Leaf // the proof of the bound by a relaxation; nil means there is none
	by     int               // the strongest way in which the bound was sought: byWork and so on
	parts  int               // into how many parts byParts cut the choice
	stuck  bool              // more parts hardly raise the bound
}

// refusal is a choice that cannot run, and why.
type refusal struct {
	space.Choice
	err error
}

// pass is a part of a search.
type pass struct {
	run  func(context.Context) error
	part float64 // the part of the time after the first plan until which the pass may run; zero means until its end
}

func (f *finder) passes() []pass {
	switch {
	case f.Brief:
		return []pass{{f.begin, 0}, {f.rounds, 1}, {f.tryPromising, 1}, {f.polish, 1}, {f.dropIdle, 0}}
	}
	return []pass{{f.begin, 0}, {f.rounds, forSearch}, {f.excludeNamed, forSearch + 0.02}, {f.simulateFront, forSearch + 0.05}, {f.boundAll, forSearch + 0.2}, {f.boundTogether, 0}, {f.prove, 1}}
}

const (
	// forReport is the part of the time of a command that is kept at least for reports and explanations. They take as long as reports simulations
	// of as many steps as results are told in.
	forReport = 0.1
	reports   = 4
	// forSearch is the part for the search of the time after the first plan, and of the nodes, and forRank for the rank of a model of the
	// time before it.
	forSearch, forRank = 0.6, 0.25
)

// until bounds a context by a part of a time since a moment. Where there is no time, or no part, it does not.
func until(ctx context.Context, since time.Time, all time.Duration, part float64) (context.Context, context.CancelFunc) {
	if all == 0 || part == 0 {
		return ctx, func() {}
	}
	return context.WithDeadline(ctx, since.Add(time.Duration(part*float64(all))))
}

// Find finds a plan of the first graph of the programs of a space. When ctx ends it is the best so far, with what is
// proved by then. Before there is one it fails.
func Find(ctx context.Context, s *space.Space, o Options) (*Result, error) {
	f := newFinder(s, o)
	since, left := f.begun, o.Time
	for _, pass := range f.passes() {
		if f.best != nil && since.Equal(f.begun) { // the other passes share what the first plan leaves
			since, left = time.Now(), f.timeLeft()
		}
		within, cancel := until(ctx, since, left, pass.part)
		err := pass.run(within)
		cancel()
		ended := errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
		if err != nil && (f.best == nil || !ended) {
			return nil, err
		}
		f.progress()
	}
	return f.result()
}

func newFinder(s *space.Space, o Options) *finder {
	f := &finder{Options: &o, space: s, left: o.Nodes, begun: o.Begun, tried: map[space.Choice]bool{}, reduced: map[space.Choice]bool{}, refined: map[string]int{}, alike: map[string]int32{}, sorts: map[string]string{}, promises: map[space.Choice]float64{}, graphs: map[[2]string]bool{}, models: certificate.Models{Steady: o.Steady}}
	if f.begun.IsZero() {
		f.begun = time.Now()
	}
	if f.Evaluator == nil {
		f.Evaluator = &plan.Evaluator{}
	}
	if !f.Brief {
		f.reserved, f.least = f.Nodes-int(forSearch*float64(f.Nodes)), f.Nodes
	}
	return f
}

// progress tells how far the search is.
func (f *finder) progress() {
	if f.Progress == nil || f.best == nil {
		return
	}
	part := 1 - float64(max(f.left, f.least))/float64(f.Nodes)
	if f.searched {
		part = max(part, forSearch)
	}
	if f.Time > 0 {
		part = max(part, float64(time.Since(f.begun))/float64(f.Time))
	}
	f.Progress(int(1000*min(1, part)), f.best.Value)
}

// timeLeft returns the time that remains before the report.
func (f *finder) timeLeft() time.Duration {
	var report time.Duration
	if f.best != nil {
		report = reports * f.best.took
	}
	return timeLeft(f.Time, time.Since(f.begun), report)
}

// timeLeft returns the part of a time that remains before a report: at least a hundredth, which the whole may take longer. Of no time it is 0.
func timeLeft(all, spent, report time.Duration) time.Duration {
	return max(all-max(report, time.Duration(forReport*float64(all)))-spent, all/100, min(all, 1))
}

// price prices all choices of the space.
func (f *finder) price(ctx context.Context) error {
	_, err := f.add(ctx, f.space.Choices(), nil)
	if err == nil && len(f.candidates) == 0 {
		return f.noPlan()
	}
	return err
}

// add prices new choices. It keeps those that can run, but for other names of known ones. Origin is from where the
// search goes on to them; nil means they are proposed.
func (f *finder) add(ctx context.Context, choices []space.Choice, origin *candidate) (added []*candidate, err error) {
	choices = slices.DeleteFunc(slices.Clone(choices), func(c space.Choice) bool { return f.tried[c] })
	all := make([]*candidate, len(choices))
	err = parallel.Do(ctx, len(choices), func(i int) error {
		all[i] = &candidate{Attempt: Attempt{Choice: choices[i], Value: math.Inf(1), short: math.Inf(1)}, listState: listState{listed: math.Inf(1)}, origin: origin, outside: !f.space.Has(choices[i])}
		all[i].priced, all[i].err = f.space.Price(choices[i])
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, c := range all {
		f.tried[c.Choice] = true
		if c.err != nil {
			f.refused = append(f.refused, refusal{c.Choice, c.err})
			continue
		}
		graph := c.priced.Program.Graphs[0]
		c.graph, c.Tasks = graph.Hash(), graph.NumTasks()
		key := [2]string{c.Devices, c.graph}
		if order := orderOf(c.Strategy); order != nil {
			key[1] += order.Doc().Name
		}
		if !f.graphs[key] {
			f.graphs[key] = true
			sure := f.sure
			if origin != nil {
				sure = origin.priced.Costs(0).LeastKnown()
			}
			c.dropped = c.outside && c.priced.Costs(0).LeastKnown() > sure // what is best by estimates is often only estimated too well
			added = append(added, c)
		}
		if f.sets != nil && f.sets[c.Devices] == nil {
			f.sets[c.Devices] = c.units()
		}
	}
	f.candidates = append(f.candidates, added...)
	return added, nil
}

// leaveOut leaves out the choices whose plans branch and bound looks at as plans of all devices: all sets of a machine, if
// costs do not depend on the number of units. An exception are sets whose unused units sleep all the time: in a plan of all
// devices these units sleep only after a wait.
func (f *finder) leaveOut(context.Context) error {
	if f.Steady {
		return nil
	}
	var wholes []*certificate.Model // of all devices, with each of the lowerings
	order := slices.Clone(f.candidates)
	slices.SortStableFunc(order, func(a, b *candidate) int { return cmp.Compare(len(a.Devices), len(b.Devices)) }) // all devices are first
	for _, c := range order {
		small := c.isSmall(f.Options)
		alike := f.Objective == problem.Time || len(c.priced.Platform.LeftAsleep) == 0
		m, err := f.models.Of(c.priced, c.graph, f.Objective)
		if err != nil {
			return err
		}
		switch {
		case small && alike && slices.ContainsFunc(wholes, func(all *certificate.Model) bool { return all.Relaxes(m) }):
			f.covered = append(f.covered, c)
		case small && c.Devices == "":
			wholes = append(wholes, m)
		}
	}
	f.candidates = slices.DeleteFunc(f.candidates, func(c *candidate) bool { return slices.Contains(f.covered, c) })
	return nil
}

// noPlan says why there is no plan.
func (f *finder) noPlan() error {
	var refused error
	for _, r := range f.refused {
		refused = cmp.Or(refused, fmt.Errorf("%s: %w", r.Choice, r.err))
	}
	if len(f.candidates) == 0 {
		return refused
	}
	for _, c := range f.candidates {
		refused = cmp.Or(c.err, refused)
	}
	if front := Front(f.simulations()); len(front) > 0 {
		return fmt.Errorf("no plan that was found takes at most %v for a step; the shortest takes %v, on %s", f.Deadline, front[0].Makespan, front[0].Choice)
	}
	return fmt.Errorf("no policy finds a plan of graph %q: %w", f.candidates[0].priced.Program.Graphs[0].Name, cmp.Or(refused, errors.New("none can run")))
}

// rounding is a relative tolerance, for sums of floating-point joules and for the margins of bounds.
const rounding = 1e-9

// result sums the search up.
func (f *finder) result() (*Result, error) {
	b := f.best
	if math.IsInf(b.Value, 1) {
		return nil, f.noPlan()
	}
	evaluated, err := f.Evaluator.Plan(b.priced, b.Plan)
	if err != nil {
		return nil, err
	}
	r := &Result{from: f, Evaluated: evaluated, Untried: f.untried(), Choice: b.Choice, Choices: len(f.candidates),
		Result: exact.Result{Plan: b.Plan, Makespan: b.Makespan, Joules: b.Joules, Value: b.Value, Bound: math.Inf(1)}}
	certified := &certificate.Certificate{Objective: f.Objective, Steady: f.Steady, Deadline: f.Deadline, Devices: f.space.Devices, Tiles: f.space.Tiles}
	whole, kept := true, map[*certificate.Leaf]bool{}
	for _, c := range f.candidates {
		if c.Plan != nil {
			r.Tried = append(r.Tried, c.Attempt)
		}
		r.Nodes += c.nodes
		r.Moves += c.moves
		if c.dropped {
			continue
		}
		r.Bound = min(r.Bound, c.bound)
		if c.outside {
			certified.Further = append(certified.Further, c.Choice)
		}
		if whole = whole && c.leaf != nil; whole && !kept[c.leaf] {
			kept[c.leaf] = true
			certified.Leaves = append(certified.Leaves, *c.leaf)
		}
	}
	r.Proven = r.Bound >= r.Value*(1-rounding)
	if !whole || certified.Bound() < r.Bound || !(r.Bound > 0 || r.Proven) {
		certified.Leaves = nil
	}
	if f.all != nil {
		if r.All = min(f.all.Bound(), r.Value); r.All > 0 {
			certified.Layers = f.all
			r.Bound = max(r.Bound, r.All)
			r.Proven = r.Bound >= r.Value*(1-rounding)
		}
	}
	if certified.Leaves != nil || certified.Layers != nil {
		r.Certificate = certified
	}
	r.Covered = Covered{Sets: len(f.space.Devices), Tilings: len(f.space.Tiles), Tiles: f.space.Shares != nil && len(f.space.Tiles) == 1, Own: slices.Contains(certified.Further, b.Choice)}
	r.Covered.Outside = !r.Covered.Own && b.outside
	r.Simulated = f.different()
	slices.SortStableFunc(r.Tried, func(a, b Attempt) int { return cmp.Compare(a.Value, b.Value) })
	return r, nil
}
