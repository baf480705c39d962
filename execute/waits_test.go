package execute

import (
	"math"
	"testing"

	"dahl/dag"
)

// A mutant is a runner from whose lists one wait was taken away. What is left orders all
// that depends on each other (the wait is implied by others) or does not (it is needed).

// unlimited is a need that every count meets.
const unlimited = math.MinInt32

// mutation is the place of a wait.
type mutation struct{ lane, item, wait int }

// mutations are the waits of the lists of a graph that are wanted.
func mutations(c *compiledGraph, want func(lane int, w *wait) bool) []mutation {
	var all []mutation
	for lane, list := range c.replay.lists {
		for i, it := range list {
			for k := it.firstWait; k < it.endWait; k++ {
				if want(lane, &c.replay.waits[k]) {
					all = append(all, mutation{lane, i, int(k)})
				}
			}
		}
	}
	return all
}

// ordered reports whether lists and waits order everything that depends on each other. It
// carries vector clocks through the lists of three steps, of which the last has all
// that it depends on behind it.
func ordered(c *compiledGraph) bool {
	const steps = 3
	lists := c.replay.lists
	clocks := make([][][]int64, len(lists)) // by lane and count: of how many tasks of each lane that task comes after
	for progress := true; progress; {
		progress = false
		for lane, list := range lists {
			for len(clocks[lane]) < steps*len(list) {
				clock, ok := clockOf(c.replay, clocks, lane)
				if !ok {
					break
				}
				clocks[lane] = append(clocks[lane], clock)
				progress = true
			}
		}
	}
	at := map[int32]position{}
	for lane, list := range lists {
		for i, it := range list {
			at[it.task] = position{int32(lane), int32(i)}
		}
	}
	into := predecessors(c.graph, c.placed.Orders())
	for t := range c.graph.Tasks {
		here := at[int32(t)]
		clock := clocks[here.worker][(steps-1)*len(lists[here.worker])+int(here.index)]
		after := func(preds []int32, before int) bool {
			for _, p := range preds {
				there := at[p]
				if clock[there.worker] < int64((steps-1-before)*len(lists[there.worker])+int(there.index)+1) {
					return false
				}
			}
			return true
		}
		ok := true
		into(dag.TaskID(t), func(back int32, preds []int32) { ok = ok && after(preds, int(back)) })
		if !ok {
			return false
		}
	}
	return true
}

// clockOf is that of the next task of a lane, if what it waits for has one.
func clockOf(r *replay, clocks [][][]int64, lane int) ([]int64, bool) {
	count := len(clocks[lane])
	size := len(r.lists[lane])
	it, step := &r.lists[lane][count%size], int64(count/size)
	clock := make([]int64, len(r.lists))
	join := func(other int, tasks int64) bool {
		if tasks <= 0 {
			return true
		}
		if int64(len(clocks[other])) < tasks {
			return false
		}
		for l, n := range clocks[other][tasks-1] {
			clock[l] = max(clock[l], n)
		}
		clock[other] = max(clock[other], tasks)
		return true
	}
	if !join(lane, int64(count)) {
		return nil, false
	}
	for k := it.firstWait; k < it.endWait; k++ {
		if w := &r.waits[k]; !join(int(w.worker), w.need+step*w.length) {
			return nil, false
		}
	}
	return clock, true
}

// TestOrderedSeesWhatIsMissing: all lists are ordered as they are compiled, and no longer
// without any wait of one lane for another.
func TestOrderedSeesWhatIsMissing(t *testing.T) {
	prog := testProgram(t)
	for _, split := range splits {
		r := newRunner(t, prog, how{Platform: node(t, 1, 1), Options: Options{Hooks: testHooks(nil)},
			Plans: spreadPlans(prog, 2, func(task *dag.Task) int { return split.of(task, 2) })})
		c := r.graphs[0]
		if !ordered(c) {
			t.Errorf("%s: the lists do not order what depends on each other", split.name)
		}
		for _, m := range mutations(c, func(int, *wait) bool { return true }) {
			c.replay.waits[m.wait].need = unlimited
		}
		if ordered(c) {
			t.Errorf("%s: ordered without any wait", split.name)
		}
	}
}
