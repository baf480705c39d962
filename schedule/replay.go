package schedule

import (
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
