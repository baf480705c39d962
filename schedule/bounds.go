package schedule

import (
	"slices"
	"time"

	"dahl/dag"
	"dahl/platform"
)

// LowerBound is a time that no schedule of all steps can beat on the costs of the
// problem: the larger of the critical path, each task at its least and every
// transfer free, and the area, the work divided by the workers that can do it.
func LowerBound(p *Problem) time.Duration {
	if p.check() != nil {
		return 0
	}
	eligible, err := newEligibility(p)
	if err != nil {
		return 0
	}
	best := make([]time.Duration, len(p.Graph.Tasks))
	for t := range best {
		id := dag.TaskID(t)
		for k, w := range eligible.of(id) {
			d := p.Platform.Workers[w].Device
			takes := p.Platform.Devices[d].Dispatch + p.Costs.ByClass[p.Costs.Class[t]][d].least()
			if k == 0 || takes < best[t] {
				best[t] = takes
			}
		}
	}
	return max(criticalPathBound(p, best), areaBound(p, eligible, best))
}

// maxBoundInstances bounds the task instances that criticalPathBound visits. The
// path through the first steps bounds longer runs too, if not as closely.
const maxBoundInstances = 20_000_000

// criticalPathBound follows the dependences through the steps.
func criticalPathBound(p *Problem, best []time.Duration) time.Duration {
	sorted, stuck := topological(p.Graph.Links, p.Reuse, nil)
	if stuck >= 0 {
		return 0
	}
	n := len(best)
	before, ends := make([]time.Duration, n), make([]time.Duration, n)
	after, afterNext := newRows(n, p.Reuse), newRows(n, p.ReuseNext)
	starts := make([]time.Duration, n)
	var longest time.Duration
	for step := range min(p.Steps, 1+maxBoundInstances/max(1, n)) {
		clear(starts)
		if step > 0 {
			for t := range n {
				id := dag.TaskID(t)
				for _, list := range [3][]int32{p.Graph.CarriedSuccs(id), p.Graph.ReuseSuccs(id), afterNext.of(id)} {
					for _, s := range list {
						starts[s] = max(starts[s], before[t])
					}
				}
			}
		}
		for _, t := range sorted {
			ends[t] = starts[t] + best[t]
			longest = max(longest, ends[t])
			for _, list := range [2][]int32{p.Graph.Succs(t), after.of(t)} {
				for _, s := range list {
					starts[s] = max(starts[s], ends[t])
				}
			}
		}
		before, ends = ends, before
	}
	return longest
}

// areaBound looks at each set of workers to which some tasks are restricted: all
// tasks that can run on no other worker have to share it.
func areaBound(p *Problem, eligible *eligibility, best []time.Duration) time.Duration {
	everyone := make([]platform.WorkerID, len(p.Platform.Workers))
	for w := range everyone {
		everyone[w] = platform.WorkerID(w)
	}
	sets, work := [][]platform.WorkerID{everyone}, []time.Duration{0}
	setOf := make([]int, len(eligible.workers)) // by class
	for c, workers := range eligible.workers {
		k := slices.IndexFunc(sets, func(s []platform.WorkerID) bool { return slices.Equal(s, workers) })
		if k < 0 {
			k = len(sets)
			sets, work = append(sets, workers), append(work, 0)
		}
		setOf[c] = k
	}
	for t, c := range eligible.class {
		work[setOf[c]] += best[t]
	}
	var bound time.Duration
	for _, set := range sets {
		var sum time.Duration
		for k, within := range sets {
			if !slices.ContainsFunc(within, func(w platform.WorkerID) bool { return !slices.Contains(set, w) }) {
				sum += work[k]
			}
		}
		workers := time.Duration(len(set))
		bound = max(bound, (sum*time.Duration(p.Steps)+workers-1)/workers)
	}
	return bound
}
