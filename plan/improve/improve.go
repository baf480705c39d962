package improve

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"dahl/dag"
	"dahl/plan"
	"dahl/plan/problem"
	"dahl/platform"
	"dahl/schedule"
)

// Options say what to look for, and how far.
type Options struct {
	problem.Aim
	Moves  int                  // the changed plans to look at, before clocks of all tasks are chosen at the end, by as many tries
	Clocks [][]platform.ClockID // by device: the clocks that tasks may run at; nil, or a nil entry: all
	Seed   uint64               // of the random numbers
	Brief  bool                 // few steps tell plans apart, and variants and sleep stay as they are
	// Versions is how many copies there are at least of each buffer that a step writes anew, so that a step
	// may begin before the one before has read them; zero means as many as the plan says. Bounds of a machine of one memory hold for plans
	// with the versions of the graph.
	Versions int32
}

// Result is the best plan found, with what a step takes.
type Result struct {
	*plan.Evaluated
	plan.Step
	Value float64 // of the objective
	Moves int     // plans looked at
}

// steadySteps is the length of the shorter of the two runs that a result is the difference of; a look in between takes few.
const (
	steadySteps = 50
	fewSteps    = 6
)

// Search improves a plan of the first graph of a priced program. The result is no worse than the plan
// that it starts from. When ctx ends it is the best so far.
func Search(ctx context.Context, priced *schedule.Priced, from *schedule.Plan, o Options) (*Result, error) {
	s, err := newSearch(ctx, priced, from, o)
	if err != nil {
		return nil, err
	}
	first, err := s.judge(from, o.steps())
	if err != nil {
		return nil, fmt.Errorf("the plan from which to search: %w", err)
	}
	if o.Versions > 1 && len(s.graph.Tasks) > 0 {
		// Where memories have no room for copies, contents leave them and come back, or there is no such plan.
		if with, err := s.look(s.start); err != nil || with.score > first.score*(1+roomTolerance) {
			o.Versions = 0
			if s, err = newSearch(ctx, priced, from, o); err != nil {
				return nil, err
			}
		}
	}
	r, found := &Result{}, first
	if len(s.graph.Tasks) > 0 {
		if climbed, err := s.climb(r); err == nil && climbed.score < first.score {
			found = climbed
		}
		if !o.Brief {
			found = s.sleep(s.vary(found))
		}
	}
	r.Evaluated, r.Step, r.Value = found.Evaluated, found.Step, o.Of(found.Time, found.Joules)
	return r, nil
}

// search is the state of a search.
type search struct {
	*rules
	ctx        context.Context // of simulations: it does not end
	searching  context.Context // of linear programs: it does
	done       <-chan struct{}
	problem    *problem.Problem
	priced     *schedule.Priced
	graph      *dag.Graph
	from       *schedule.Plan
	start      *point
	manyClocks bool    // some device has several that are allowed
	clocksMeet bool    // and its units share one, or a change takes something
	chain      []int32 // scratch
	options    Options
	random     *rand.Rand
	evaluator  *evaluator
	versions   []int32 // by buffer; nil means one of each
	factors    factors
}

func newSearch(ctx context.Context, priced *schedule.Priced, from *schedule.Plan, o Options) (s *search, err error) {
	s = &search{ctx: context.WithoutCancel(ctx), searching: ctx, done: ctx.Done(), priced: priced, graph: priced.Program.Graphs[0], from: from, options: o, random: rand.New(rand.NewPCG(o.Seed, 0))}
	with, err := s.withVersions()
	if err != nil {
		return nil, err
	}
	var data *problem.Data
	if priced.Platform.Spread() {
		if data, err = problem.NewData(priced.Platform, with, true); err != nil {
			return nil, err
		}
	}
	of, err := problem.New(priced, from.Variants, o.Clocks, data)
	if err != nil {
		return nil, err
	}
	s.problem, s.rules = of, newRules(priced, of)
	for id, of := range s.clocks {
		d := &priced.Platform.Devices[id]
		s.manyClocks = s.manyClocks || len(of) > 1
		s.clocksMeet = s.clocksMeet || len(of) > 1 && (sharesClock(d) || d.Switch != platform.Transition{})
	}
	if s.start, err = s.pointOf(priced.Platform, from); err != nil {
		return nil, err
	}
	s.evaluator = newEvaluator(newModel(of, priced, with, &o))
	return s, nil
}

// factors are the simulator's values of a point over the evaluator's.
type factors struct{ span, joules float64 }

// A search simulates its best plan in a number of rounds, or after a number of moves if that is later.
const (
	rounds       = 20
	movesPerLook = 200
)

// climb searches by the evaluator, and simulates its results.
func (s *search) climb(r *Result) (judged, error) {
	x := newPoint(len(s.graph.Tasks))
	x.copy(s.start)
	best, err := s.look(x)
	if err != nil {
		return best, err
	}
	kept := newPoint(len(x.sequence))
	kept.copy(x)
	factors := s.factors
	keep := func() {
		if now, err := s.look(x); err == nil && now.score < best.score {
			best, factors = now, s.factors
			kept.copy(x)
		}
		s.factors = factors
		x.copy(kept)
	}
	for r.Moves < s.options.Moves && !s.over() {
		s.accept(x, min(max(movesPerLook, s.options.Moves/rounds), s.options.Moves-r.Moves), r)
		keep()
	}
	if _, better := s.openClocks(x, s.options.Moves); better {
		keep()
	}
	if s.reclaim(x, r) {
		keep()
	}
	return s.judge(best.Plan(), s.options.steps())
}

// steps is how many steps the shorter of the two runs has that plans are judged by.
func (o *Options) steps() int {
	if o.Brief {
		return fewSteps
	}
	return steadySteps
}

// reclaim gives tasks another clock, one at a time, until none is better for any task, and reports whether
// some was. It does so where clocks of tasks depend on each other in ways that linear programs do not know.
func (s *search) reclaim(x *point, r *Result) (changed bool) {
	least := s.estimate(x)
	for again := s.clocksMeet; again; {
		again = false
		for _, t := range slices.Clone(x.sequence) {
			before := x.clock[t]
			for _, clock := range s.clocks[s.deviceOf(x.worker[t])] {
				if clock == before || s.over() {
					continue
				}
				was := x.clock[t]
				x.clock[t] = clock
				r.Moves++
				if now := s.estimate(x); now < least-float64(least*tolerance) {
					least, again, changed = now, true, true
				} else {
					x.clock[t] = was
				}
			}
		}
	}
	return changed
}

// roomTolerance is the relative error of a few steps against many.
const roomTolerance = 0.01

// tolerance is a relative difference of joules that counts as none.
const tolerance = 1e-9

// look simulates a point, and corrects what the evaluator says by it.
func (s *search) look(x *point) (judged, error) {
	now, err := s.judge(s.separateBuffers(s.planOf(x)), fewSteps)
	if err != nil {
		return now, err
	}
	span, joules := s.evaluator.worth(x)
	s.factors = factors{ratio(float64(now.Time), span), ratio(now.Joules, joules)}
	return now, nil
}

func ratio(is, estimated float64) float64 {
	if is <= 0 || estimated <= 0 {
		return 1
	}
	return is / estimated
}

// estimate is the score of a point by the evaluator.
func (s *search) estimate(x *point) float64 {
	span, joules := s.evaluator.worth(x)
	return s.score(time.Duration(math.Round(span*s.factors.span)), float64(joules*s.factors.joules))
}

// accept makes a number of changes of a point and leaves it at the best one found. It goes on from a changed point if that is
// no worse than one of two others: the point a number of changes before, and the last one (late acceptance hill-climbing: E. K.
// Burke, Y. Bykov, European Journal of Operational Research 258(1), 2017).
func (s *search) accept(x *point, moves int, r *Result) {
	now, next := newPoint(len(x.sequence)), newPoint(len(x.sequence))
	now.copy(x)
	best := s.sorted(now, s.estimate(x))
	is := best
	late := slices.Repeat([]float64{best}, max(1, moves/5))
	for k := range moves {
		if k%64 == 0 && s.over() {
			return
		}
		next.copy(now)
		s.change(next)
		r.Moves++
		value := s.estimate(next)
		if value <= is || value <= late[k%len(late)] {
			now, next = next, now
			is = s.sorted(now, value)
			if is < best {
				best = is
				x.copy(now)
			}
		}
		late[k%len(late)] = min(late[k%len(late)], is)
	}
}

// sorted sorts the sequence of the last estimated point by time, and returns its estimate. Copies may change the estimate: of
// copies ready at one time, the copy with the first reader in the sequence goes first.
func (s *search) sorted(x *point, estimate float64) float64 {
	if s.evaluator.sortByStart(x) && s.evaluator.transfers != nil {
		return s.estimate(x)
	}
	return estimate
}

// over reports whether there is no time left.
func (s *search) over() bool {
	select {
	case <-s.done:
		return true
	default:
		return false
	}
}
