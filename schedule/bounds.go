package schedule

import (
	"math"
	"slices"
	"sync"
	"time"

	"dahl/dag"
	"dahl/schedule/place"
)

// LowerBound is a time that no schedule of some steps of a graph goes below on these costs. The
// schedule may be of any policy, plan, variants and layout, on any part of the devices and
// units, at any of their clocks, timed or not. It has as many versions of each buffer as the graph. For a plan with
// other numbers, [Decision.Priced] has the bound. LowerBound is 0 where there is no schedule.
//
// The bound for a part of the machine ([Priced.On]) counts the devices of the part. It is no less than the bound for
// the whole machine.
//
// Theory. Three bounds hold, and the largest counts. For the first two a task takes the least that it takes
// in any [setting], and nothing takes time to move.
//
// Path: a task starts after the writers of its operands, in its step or in the one before, and after the tasks that
// it names (After). On a machine of one memory it also starts after the last users of the buffers it overwrites, as
// many steps before as the buffer has versions. No other order binds every schedule. On several memories, overwritten
// contents can stay for their readers in another one, and the orders of a layout are its own. The longest path through
// the steps along these orders is a bound.
//
// Area: the devices have to do the work of all tasks ([stepWork.areaNs]). One worker has to do the tasks without
// another worker, and all tasks of a colocation group.
//
// Cuts: what tasks have to get from other memories or nodes crosses links (bounds_cuts.go).
func (c *Priced) LowerBound(graph, steps int) time.Duration {
	b := c.bounds[graph]()
	if len(b.least) == 0 || steps < 1 || float64(b.serialNs*float64(steps)) > float64(LongestRun) {
		return 0
	}
	bound := max(b.path(steps), b.oneWorker*time.Duration(steps), surely(float64(b.areaNs*float64(steps))))
	for _, cut := range b.cuts {
		bound = max(bound, surely(cut.over(float64(steps))))
	}
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

// bound is the part of one graph's bounds that holds for all numbers of steps.
type bound struct {
	settings  [][][]setting // by class of costs and device of the whole machine
	follows   follows
	least     []time.Duration // by task; nil means there is no schedule
	serialNs  float64         // the sum of least
	oneWorker time.Duration   // of a step: the most that some worker has to run
	areaNs    float64         // of a step
	cuts      []cutTimes
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
		b.settings, b.follows = of.settings, of.follows
	} else {
		b.settings, b.follows = c.settingsOf(graph), mustFollow(g, len(c.Platform.Memories))
	}
	problem := c.Problem(graph, 1)
	if problem.Check() != nil {
		return b
	}
	leasts := c.leasts(graph, b.settings)
	problem.Costs = leasts.costs
	fit, err := newFit(problem)
	if err != nil {
		return b
	}
	b.least = make([]time.Duration, len(g.Tasks))
	work := newStepWork(problem, leasts, fit)
	for t := range b.least {
		b.least[t] = work.add(dag.TaskID(t))
		b.serialNs += float64(b.least[t])
	}
	b.oneWorker, b.areaNs = work.oneWorker(), work.areaNs()
	b.cuts = crossings(g, c.Platform, fit)
	return b
}

// follows lists the tasks that every schedule puts before a task, in its step and up to reach steps back.
type follows struct {
	tasks func(t dag.TaskID, back int32) [2][]int32
	reach int32
}

// eachAcross visits the tasks of earlier steps that a step's tasks follow.
func (f *follows) eachAcross(tasks int, visit func(other int32)) {
	for back := int32(1); back <= f.reach; back++ {
		for t := range dag.TaskID(tasks) {
			for _, others := range f.tasks(t, back) {
				for _, other := range others {
					visit(other)
				}
			}
		}
	}
}

// mustFollow finds the tasks that every schedule in a number of memories puts before a task. In one memory they are
// the graph's orders. In several they are the writers of its operands, in the same step and in the one before, and in
// the same step the tasks that it names.
func mustFollow(g *dag.Graph, memories int) follows {
	if memories == 1 {
		return follows{g.PredsBack, g.Reach()}
	}
	const steps = 2
	var edges [steps][]dag.Edge // from a task to its predecessor, by the steps between
	place.EachReading(g, func(writer int32, reader dag.TaskID, _ int32, next bool) {
		switch is := (dag.Edge{From: reader, To: dag.TaskID(writer)}); {
		case int(writer) == len(g.Tasks): // nobody
		case next:
			edges[1] = append(edges[1], is)
		default:
			edges[0] = append(edges[0], is)
		}
	})
	for t := range g.Tasks {
		for _, other := range g.Tasks[t].After {
			edges[0] = append(edges[0], dag.Edge{From: dag.TaskID(t), To: other})
		}
	}
	for back := range edges {
		edges[back] = slices.Compact(edges[back]) // the atoms of an operand often have one writer
	}
	rows := [steps]dag.Rows{dag.NewRows(len(g.Tasks), edges[0]), dag.NewRows(len(g.Tasks), edges[1])}
	return follows{func(t dag.TaskID, back int32) [2][]int32 { return [2][]int32{rows[back].Row(int32(t))} }, steps - 1}
}

// maxBoundInstances bounds the tasks that [bound.path] visits of a long run.
const maxBoundInstances = 2_000_000

// path is the length of the longest path through some steps.
//
// Of many steps it follows the first m. From there on it repeats a cycle. It takes the task that ends last among the
// predecessors of the next step, and finds the longest paths from its end to its end one to m−1 steps later. A path
// to that task may go on along any number of these.
func (b *bound) path(steps int) time.Duration {
	const never = math.MinInt64 / 2
	n := len(b.least)
	first := min(steps, max(2, maxBoundInstances/n))
	again := int32(-1)
	b.follows.eachAcross(n, func(other int32) { again = other })
	if again < 0 { // all steps are alike
		steps, first = 1, 1
	}
	var longest time.Duration
	last := b.unroll(first, -1, 0, func(ends []time.Duration) { longest = max(longest, slices.Max(ends)) })
	if first == steps {
		return longest
	}
	again = -1
	b.follows.eachAcross(n, func(other int32) {
		if again < 0 || last[other] > last[again] {
			again = other
		}
	})
	cycles := []time.Duration{0} // by steps; 0 means there is none
	b.unroll(first-1, again, never, func(ends []time.Duration) { cycles = append(cycles, max(0, ends[again])) })
	left := steps - first
	for k := 1; k < len(cycles); k++ {
		longest = max(longest, last[again]+time.Duration(left/k)*cycles[k]+cycles[left%k])
	}
	return longest
}

// unroll tells for each of some steps when its tasks end at the earliest, and returns those times
// of the last step. No task starts before the time given as the earliest. The tasks of the steps before have ended by
// then; in the step right before, the task ended, if it is not negative, ended at 0.
func (b *bound) unroll(steps int, ended int32, earliest time.Duration, each func(ends []time.Duration)) []time.Duration {
	past := make([][]time.Duration, b.follows.reach+1) // by how many steps back; the first is in the making
	for back := range past {
		past[back] = slices.Repeat([]time.Duration{earliest}, len(b.least))
	}
	if ended >= 0 {
		past[0][ended] = 0
	}
	for range steps {
		oldest := past[len(past)-1]
		copy(past[1:], past)
		past[0] = oldest
		for t := range oldest {
			start := earliest
			for back, ends := range past {
				for _, others := range b.follows.tasks(dag.TaskID(t), int32(back)) {
					for _, other := range others {
						start = max(start, ends[other])
					}
				}
			}
			oldest[t] = start + b.least[t]
		}
		each(oldest)
	}
	return past[0]
}
