package best

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strings"

	"dahl/dag"
	"dahl/parallel"
	"dahl/plan/improve"
	"dahl/platform"
	"dahl/schedule"
)

// Before its moves, local search costs as much as fixedCost plans of a choice. As many moves as movesOfPlan cost as much as a plan, which is priced, decided and
// simulated.
const fixedCost, movesOfPlan = 8, 192

// improve looks for better plans near the best ones of a contender. Half of the effort is for the best of all, unless that would not suffice for moves. Half of the
// others are those with the best plans of policies, one of each set of devices that have tasks. The other half have not been improved before: local search gains
// more on some than on others. With four times the effort there are twice as many, and each has twice the moves.
func (of *contender) improve(f *finder) func(context.Context, int) error {
	return func(ctx context.Context, least int) error {
		best := of.best(f)
		if f.over() || best == nil {
			return nil
		}
		effort, fixed := f.left-least, fixedCost*best.nodesOfPlan()
		var jobs []improving
		if !best.proven && inOnePeriod(best.Plan) && (best.moves == 0 || effort >= 4*fixed) {
			jobs = append(jobs, improving{candidate: best, from: best.Plan})
			if best.list != nil && inOnePeriod(best.list) && effort >= 16*fixed {
				jobs = append(jobs, improving{candidate: best, from: best.list, copies: 1})
			}
		}
		first := len(jobs)
		if first == 0 || effort >= 2*fixed {
			jobs = append(jobs, of.others(ctx, f, best, int(math.Sqrt(float64(effort)/float64(fixed))))...)
		}
		for i := range jobs {
			part := effort
			if first > 0 && first < len(jobs) {
				part /= 2
			}
			if i < first {
				part /= first
			} else {
				part /= len(jobs) - first
			}
			if jobs[i].moves = max((part-fixed)*movesOfPlan/jobs[i].nodesOfPlan(), 1); f.Steady && jobs[i].copies == 0 {
				jobs[i].copies = 2 // steady steps overlap with two copies of what a step writes anew
			}
		}
		return f.improveEach(ctx, jobs, fixed)
	}
}

// others are choices of a contender besides its best one, from which local search may begin.
func (of *contender) others(ctx context.Context, f *finder, best *candidate, most int) (jobs []improving) {
	others := slices.DeleteFunc(of.byList(f), func(c *candidate) bool { return c == best || c.proven || c.bound >= f.best.Value })
	fresh := slices.DeleteFunc(slices.Clone(others), func(c *candidate) bool { return c.moves > 0 })
	chosen := slices.Concat(oneOfEach(others, (most+1)/2, func(c *candidate) string { return c.used }),
		oneOfEach(fresh, most, func(c *candidate) string { return c.used + " " + c.graph }), others)
	for _, c := range oneOfEach(chosen, most, func(c *candidate) string { return c.Devices + " " + c.graph }) {
		from := cmp.Or(c.list, c.Plan)
		if c.again = !c.again; !c.again {
			from = f.inherited(ctx, c)
		}
		if inOnePeriod(from) {
			jobs = append(jobs, improving{candidate: c, from: from})
		}
	}
	return jobs
}

// inOnePeriod reports whether a plan runs all tasks of a step in one period, as local search does. The order 1f1b may let tasks run steps behind others.
func inOnePeriod(plan *schedule.Plan) bool { return plan.Lags == nil }

// improving is local search from the plan of a choice, with some number of moves and of versions of buffers.
type improving struct {
	*candidate
	from   *schedule.Plan
	moves  int
	copies int32
	found  *improve.Result
}

// improveEach improves the plans of different choices, or of one in different ways.
func (f *finder) improveEach(ctx context.Context, jobs []improving, fixed int) error {
	err := parallel.Do(ctx, len(jobs), func(i int) (err error) {
		c := jobs[i].candidate
		jobs[i].found, err = improve.Search(ctx, c.priced, jobs[i].from, improve.Options{Aim: f.Aim, Moves: jobs[i].moves,
			Clocks: f.freeClocks(c.priced.Platform), Versions: jobs[i].copies, Seed: uint64(jobs[i].moves), Brief: f.Brief})
		return err
	})
	steps := longRun
	if f.Brief {
		steps = shortRun
	}
	for i := range jobs {
		c, found := jobs[i].candidate, jobs[i].found
		if found == nil {
			continue
		}
		c.moves += found.Moves
		f.left -= found.Moves*c.nodesOfPlan()/movesOfPlan + fixed
		policy := strings.TrimSuffix(c.Policy, byMoves) + byMoves
		if err := c.offer(context.WithoutCancel(ctx), f.Options, found.Evaluated, policy, steps); err != nil {
			return err
		}
		if err := f.crown(ctx, c); err != nil {
			return err
		}
	}
	return err
}

const (
	// briefMoves is the effort of local search in a brief search, in moves times tasks: about half a second. Graphs that have no leastMoves of it are left as they are.
	briefMoves, leastMoves = 400_000, 800
	// leastPolish is the part by which it has to make a step shorter: for less no task goes to a further device.
	leastPolish = 0.01
)

// polish improves the plan of a brief search of a network, and the best one with default tiles, with which it is compared.
func (f *finder) polish(ctx context.Context) error {
	if !f.Steady || f.space.Shares == nil {
		return nil
	}
	var jobs []improving
	add := func(c *candidate) {
		moves := briefMoves / c.nodesOfPlan()
		if moves >= leastMoves && c.Strategy == "" && inOnePeriod(c.Plan) {
			jobs = append(jobs, improving{candidate: c, from: c.Plan, moves: moves, copies: 2})
		}
	}
	add(f.best)
	byValue := f.byValue()
	if at := slices.IndexFunc(byValue, func(c *candidate) bool { return c.Tiles == f.whole.Tiles && c.Strategy == "" }); at >= 0 && byValue[at] != f.best {
		add(byValue[at])
	}
	best, before := f.best, make([]Attempt, len(jobs))
	for i := range jobs {
		before[i] = jobs[i].Attempt
	}
	err := f.improveEach(ctx, jobs, 0)
	f.best = best
	for i, job := range jobs {
		if job.short > float64(before[i].short*(1-leastPolish)) {
			job.Attempt = before[i]
		}
		f.offer(job.candidate)
	}
	return err
}

// inherited is the plan of a choice, or the plan of a better one on a part of its devices: policies use all devices that they have.
func (f *finder) inherited(ctx context.Context, c *candidate) *schedule.Plan {
	for _, other := range f.byValue() {
		if !better(&other.Attempt, &c.Attempt) {
			break
		}
		if plan := other.planOn(c); plan != nil {
			if e, err := f.Evaluator.Plan(c.priced, plan); err == nil {
				if _, err := e.Step(ctx, f.Steady, shortRun); err == nil {
					return plan
				}
			}
		}
	}
	return c.Plan
}

// planOn is the plan of a choice on the devices of another one; nil means it has no such workers, or another graph.
func (c *candidate) planOn(other *candidate) *schedule.Plan {
	if c.graph != other.graph {
		return nil
	}
	plan := *c.Plan
	plan.Order = make([][]dag.TaskID, len(other.priced.Platform.Workers))
	for w, tasks := range c.Plan.Order {
		if len(tasks) == 0 {
			continue
		}
		at := other.worker(c.priced.Platform.Workers[w].Name)
		if at < 0 {
			return nil
		}
		plan.Order[at] = tasks
	}
	return &plan
}

// worker is the number of a worker by its name; -1 means there is none.
func (c *candidate) worker(name string) int {
	return slices.IndexFunc(c.priced.Platform.Workers, func(w platform.Worker) bool { return w.Name == name })
}

// oneOfEach are the first choices of a list with different keys.
func oneOfEach(list []*candidate, most int, key func(*candidate) string) (some []*candidate) {
	known := map[string]bool{}
	for _, c := range list {
		if k := key(c); len(some) < most && !known[k] {
			known[k] = true
			some = append(some, c)
		}
	}
	return some
}

// byMoves ends the name of a policy whose plan local search has changed.
const byMoves = " and local search"

// byValue lists the choices with a plan in time, the best first.
func (f *finder) byValue() []*candidate {
	planned := slices.DeleteFunc(slices.Clone(f.candidates), func(c *candidate) bool { return c.Plan == nil || math.IsInf(c.Value, 1) })
	slices.SortStableFunc(planned, func(a, b *candidate) int { return cmp.Compare(a.Value, b.Value) })
	return planned
}
