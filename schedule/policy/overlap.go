package policy

import (
	"cmp"
	"slices"

	"dahl/dag"
	"dahl/schedule"
	"dahl/schedule/ready"
)

// overlapped lets the steps of a pipeline follow each other without a gap, where weights of the step before are not waited for. It gives a plan of single steps lags: each
// device takes micro-batches forward and backward in turn all the time.
//
// A step of m micro-batches has 2m slots. On lane r of p, micro-batch j goes forward in slot 2j + r, and backward in 2j + 2(p - 1) - r + 1, which may be one of the next
// step. Other tasks have the last slot of what they follow. A worker begins its periods with its lane, and a lag is the number of
// periods from there to the slot. Nil means that it has fewer micro-batches than lanes, or other dependences.
func (p *pipeline) overlapped(plan *schedule.Plan, stages, batches []int32) *schedule.Plan {
	last, size := len(p.lanes)-1, 2*len(batches)
	if last == 0 || len(batches) <= last || slices.ContainsFunc(p.lanes, func(l *lane) bool { return len(l.stages) != 1 }) {
		return nil
	}
	slots := slices.Repeat([]int{-1}, p.nodes)
	for b, node := range p.blocks {
		rank, _ := slices.BinarySearch(stages, b.stage)
		at, _ := slices.BinarySearch(batches, b.batch)
		if slots[node] = 2*at + rank; b.backward {
			slots[node] = 2*at + 2*last - rank + 1
		}
	}
	slot := make([]int, len(p.node)) // by task
	for t := range slot {
		if slot[t] = slots[p.node[t]]; slot[t] < 0 {
			slot[t] = 0
			for _, before := range p.g.Preds(dag.TaskID(t)) {
				slot[t] = max(slot[t], slot[before])
			}
		}
	}
	next := *plan
	next.Lags, next.Order = make([]int32, len(slot)), make([][]dag.TaskID, len(plan.Order))
	least := int32(0)
	for w, list := range plan.Order {
		begins := size
		for _, t := range list {
			if slots[p.node[t]] >= 0 {
				begins = min(begins, slot[t])
			}
		}
		begins %= size // without a lane periods begin at 0
		period := func(t dag.TaskID) int { return (slot[t]-begins+size)/size - 1 }
		for _, t := range list {
			next.Lags[t] = int32(period(t))
			least = min(least, next.Lags[t])
		}
		next.Order[w] = slices.Clone(list)
		slices.SortStableFunc(next.Order[w], func(a, b dag.TaskID) int {
			return cmp.Or(cmp.Compare(slot[a]-period(a)*size, slot[b]-period(b)*size), cmp.Compare(period(b), period(a)), cmp.Compare(slot[a], slot[b]))
		})
	}
	for t := range next.Lags {
		next.Lags[t] -= least
	}
	if _, stuck := ready.SortPeriod(p.g.Links, next.Lags, next.Order); stuck >= 0 {
		return nil
	}
	return &next
}
