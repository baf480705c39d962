package schedule

import (
	"fmt"

	"dahl/dag"
	"dahl/platform"
)

// Replay runs a plan: every task on the planned worker in the planned order,
// step after step; a worker waits for its next task even if a later one is
// ready. [NewEngine] refuses a plan that does not fit the problem.
func Replay(p *Problem, plan *Plan) Policy { return &replay{p: p, plan: plan} }

type replay struct {
	p      *Problem
	plan   *Plan
	worker []platform.WorkerID // by task
	next   []Instance          // by worker: position in its list, and step
	ready  []bool              // by slot and task
	slots  int32
}

func (r *replay) check() error {
	if err := r.plan.Check(r.p); err != nil {
		return err
	}
	r.worker, _ = r.placement()
	r.next = make([]Instance, len(r.p.Platform.Workers))
	r.slots = ringSlots(r.p.Steps)
	r.ready = make([]bool, int(r.slots)*len(r.p.Graph.Tasks))
	return nil
}

// placement returns the worker of every task and its place in the worker's list.
func (r *replay) placement() (workers []platform.WorkerID, position []int32) {
	workers = make([]platform.WorkerID, len(r.p.Graph.Tasks))
	position = make([]int32, len(r.p.Graph.Tasks))
	for w, list := range r.plan.Order {
		for at, t := range list {
			workers[t], position[t] = platform.WorkerID(w), int32(at)
		}
	}
	return workers, position
}

func (r *replay) slot(t dag.TaskID, step int32) int {
	return int(step%r.slots)*len(r.p.Graph.Tasks) + int(t)
}

func (r *replay) Ready(_ *View, i Instance) platform.WorkerID {
	r.ready[r.slot(i.Task, i.Step)] = true
	return r.worker[i.Task]
}

func (r *replay) Next(_ *View, w platform.WorkerID) (Instance, bool) {
	if int(w) >= len(r.plan.Order) || len(r.plan.Order[w]) == 0 {
		return Instance{}, false
	}
	at := &r.next[w] // Task counts positions here
	i := Instance{Task: r.plan.Order[w][at.Task], Step: at.Step}
	is := &r.ready[r.slot(i.Task, i.Step)]
	if int(i.Step) >= r.p.Steps || !*is {
		return Instance{}, false
	}
	*is = false
	if at.Task++; int(at.Task) == len(r.plan.Order[w]) {
		*at = Instance{Step: at.Step + 1}
	}
	return i, true
}

// Check verifies that a plan fits a problem: every task once, on a worker that
// can run it, colocated tasks together, in an order that the dependences allow.
func (plan *Plan) Check(p *Problem) error {
	if err := p.check(); err != nil {
		return err
	}
	g, pl := p.Graph, p.Platform
	if len(plan.Order) > len(pl.Workers) {
		return fmt.Errorf("the plan is for %d workers, platform %q has %d", len(plan.Order), pl.Name, len(pl.Workers))
	}
	eligible, err := newEligibility(p)
	if err != nil {
		return err
	}
	seen := make([]bool, len(g.Tasks))
	for w, list := range plan.Order {
		for _, t := range list {
			if int(t) < 0 || int(t) >= len(g.Tasks) {
				return fmt.Errorf("the plan gives worker %q task %d; graph %q has %d", pl.Workers[w].Name, t, g.Name, len(g.Tasks))
			}
			if seen[t] {
				return fmt.Errorf("the plan runs task %q twice in one step", g.Tasks[t].Name)
			}
			seen[t] = true
			if !eligible.canRun(t, platform.WorkerID(w)) {
				return fmt.Errorf("the plan puts task %q on worker %q, which cannot run it", g.Tasks[t].Name, pl.Workers[w].Name)
			}
			eligible.bind(t, platform.WorkerID(w))
		}
	}
	for t, ok := range seen {
		if !ok {
			return fmt.Errorf("the plan leaves out task %q", g.Tasks[t].Name)
		}
	}
	if _, stuck := topological(g, p.Reuse, plan.Order); stuck >= 0 {
		return fmt.Errorf("the plan's order contradicts the dependences: task %q could never start", g.Tasks[stuck].Name)
	}
	return nil
}

// topological orders the tasks of one step by the graph, the reuse edges and the
// order of each worker. If they contradict each
// other it returns a task that can never start, else -1.
func topological(g *dag.Graph, reuse []Edge, order [][]dag.TaskID) (sorted []dag.TaskID, stuck dag.TaskID) {
	extra := reuse[:len(reuse):len(reuse)]
	for _, list := range order {
		for k := 1; k < len(list); k++ {
			extra = append(extra, Edge{list[k-1], list[k]})
		}
	}
	after := newRows(len(g.Tasks), extra)
	waits := make([]int32, len(g.Tasks))
	for t := range g.Tasks {
		waits[t] = int32(len(g.Preds(dag.TaskID(t))))
	}
	for _, e := range extra {
		waits[e.To]++
	}
	sorted = make([]dag.TaskID, 0, len(g.Tasks))
	for t := range waits {
		if waits[t] == 0 {
			sorted = append(sorted, dag.TaskID(t))
		}
	}
	for k := 0; k < len(sorted); k++ {
		for _, next := range [2][]int32{g.Succs(sorted[k]), after.of(sorted[k])} {
			for _, t := range next {
				if waits[t]--; waits[t] == 0 {
					sorted = append(sorted, dag.TaskID(t))
				}
			}
		}
	}
	if len(sorted) == len(g.Tasks) {
		return sorted, -1
	}
	for t, n := range waits {
		if n > 0 {
			return sorted, dag.TaskID(t)
		}
	}
	panic("schedule: tasks are missing from the order and none waits")
}
