package schedule

import (
	"cmp"
	"math"
	"slices"
	"sync"
	"time"

	"dahl/dag"
)

// LowerBound is a time that no schedule of some steps of a graph goes below on these costs. The
// schedule may be of any policy, plan, variants and layout, on any part of the devices and
// units, at any of their clocks, timed or not. LowerBound is 0 where there is no schedule.
//
// The bound of a part of the machine ([Priced.On]) is of what that part offers. It is no less than
// that of the whole machine.
//
// Theory. Two bounds hold, and the larger counts. For both a task takes the least that it takes
// in any [setting], and nothing takes time to move.
//
// Path: a task starts when the tasks have ended that wrote what it reads, in its step or in the
// one before, and those that it names (After). No other order binds every schedule. What a task
// overwrites can stay for its readers in another memory or in other bytes, so that neither the
// graph's orders of such tasks nor those of a layout count. The longest path through the steps
// along these orders is a bound.
//
// Area: the devices have to do the work of all tasks ([stepWork.areaNs]), and one worker that of
// tasks that no other can run, or that have to share one.
func (c *Priced) LowerBound(graph, steps int) time.Duration {
	b := c.bounds[graph]()
	if len(b.least) == 0 || steps < 1 || float64(b.serialNs*float64(steps)) > float64(LongestRun) {
		return 0
	}
	bound := max(b.path(steps), b.oneWorker*time.Duration(steps), surely(float64(b.areaNs*float64(steps))))
	if c.whole != nil { // rounded otherwise, its area may be larger
		bound = max(bound, c.whole.LowerBound(graph, steps))
	}
	return bound
}

// surely is the time that a bound in floating point stands for. It is rounded up, since times are
// whole nanoseconds. What was lost to rounding before is far below the slack.
func surely(ns float64) time.Duration {
	const slack = 1e-9
	return time.Duration(math.Ceil(float64(ns * (1 - slack))))
}

// bound is what the bounds of one graph have in common for all numbers of steps.
type bound struct {
	settings            [][][]setting   // by class of costs and device of the whole machine
	inStep, acrossSteps dag.Rows        // by task: what it follows in its step, and in the one before
	least               []time.Duration // by task; nil: there is no schedule
	serialNs            float64         // the sum of least
	oneWorker           time.Duration   // of a step: what some worker has to run
	areaNs              float64         // of a step
}

// newBounds are the bounds by graph, each found when it is first asked for.
func (c *Priced) newBounds() []func() *bound {
	bounds := make([]func() *bound, len(c.graphs))
	for i := range bounds {
		bounds[i] = sync.OnceValue(func() *bound { return c.newBound(i) })
	}
	return bounds
}

func (c *Priced) newBound(graph int) *bound {
	b, g := &bound{}, c.Program.Graphs[graph]
	if c.whole != nil {
		of := c.whole.bounds[graph]()
		b.settings, b.inStep, b.acrossSteps = of.settings, of.inStep, of.acrossSteps
	} else {
		b.settings = c.settingsOf(graph)
		b.inStep, b.acrossSteps = mustFollow(g)
	}
	problem := c.Problem(graph, 1)
	if problem.check() != nil {
		return b
	}
	leasts := c.leasts(graph, b.settings)
	problem.Costs = leasts.costs
	eligible, err := newEligibility(problem)
	if err != nil {
		return b
	}
	b.least = make([]time.Duration, len(g.Tasks))
	work := newStepWork(problem, leasts, eligible)
	for t := range b.least {
		b.least[t] = work.add(dag.TaskID(t))
		b.serialNs += float64(b.least[t])
	}
	b.oneWorker, b.areaNs = work.oneWorker(), work.areaNs()
	return b
}

// mustFollow lists what every schedule puts before a task: what wrote what it reads, in the same
// step and in the one before, and, in the same step, what it names.
func mustFollow(g *dag.Graph) (inStep, acrossSteps dag.Rows) {
	const steps = 2
	var edges [steps][]dag.Edge // from a task of the second step to what it follows, by how far back that is
	writer := slices.Repeat([]int32{-1}, g.NumAtoms())
	n := int32(len(g.Tasks))
	for i := range steps * n {
		t := dag.TaskID(i % n)
		for k, a := range g.Tasks[t].Accesses {
			for _, atom := range g.Atoms(t, k) {
				if last := writer[atom]; a.Mode.Reads() && last >= 0 && i >= n {
					back := 1 - last/n
					edges[back] = append(edges[back], dag.Edge{From: t, To: dag.TaskID(last % n)})
				}
				if a.Mode.Writes() { // no other operand of the task has the atom
					writer[atom] = i
				}
			}
		}
		if i >= n {
			for _, other := range g.Tasks[t].After {
				edges[0] = append(edges[0], dag.Edge{From: t, To: other})
			}
		}
	}
	for back := range edges {
		edges[back] = slices.Compact(edges[back]) // the atoms of an operand often have one writer
	}
	return dag.NewRows(len(g.Tasks), edges[0]), dag.NewRows(len(g.Tasks), edges[1])
}

// maxBoundInstances bounds the tasks that [bound.path] visits of a long run.
const maxBoundInstances = 2_000_000

// path is the length of the longest path through some steps.
//
// Of many steps it follows the first m. From there on it repeats a cycle. Of the tasks that a next
// step waits for it takes the one that ends last, and finds the longest paths from its end to its
// end one to m−1 steps later. A path to that task may go on along any number of these.
func (b *bound) path(steps int) time.Duration {
	const never = math.MinInt64 / 2
	n := len(b.least)
	first := min(steps, max(2, maxBoundInstances/n))
	if len(b.acrossSteps.All()) == 0 { // all steps are alike
		steps, first = 1, 1
	}
	var longest time.Duration
	last := b.unroll(first, make([]time.Duration, n), 0, func(ends []time.Duration) { longest = max(longest, slices.Max(ends)) })
	if first == steps {
		return longest
	}
	again := slices.MaxFunc(b.acrossSteps.All(), func(x, y int32) int { return cmp.Compare(last[x], last[y]) })
	since := slices.Repeat([]time.Duration{never}, n)
	since[again] = 0
	cycles := []time.Duration{0} // by steps; 0: there is none
	b.unroll(first-1, since, never, func(ends []time.Duration) { cycles = append(cycles, max(0, ends[again])) })
	left := steps - first
	for k := 1; k < len(cycles); k++ {
		longest = max(longest, last[again]+time.Duration(left/k)*cycles[k]+cycles[left%k])
	}
	return longest
}

// unroll tells for each of some steps when its tasks end at the earliest, and returns those times
// of the last step. It overwrites before, the times of the step before the first. No task starts
// before the time given as the earliest.
func (b *bound) unroll(steps int, before []time.Duration, earliest time.Duration, each func(ends []time.Duration)) []time.Duration {
	ends := make([]time.Duration, len(before))
	for range steps {
		for t := range ends {
			start := earliest
			for _, other := range b.acrossSteps.Row(int32(t)) {
				start = max(start, before[other])
			}
			for _, other := range b.inStep.Row(int32(t)) {
				start = max(start, ends[other])
			}
			ends[t] = start + b.least[t]
		}
		each(ends)
		before, ends = ends, before
	}
	return before
}
