package policy

import (
	"dahl/dag"
	"dahl/platform"
	"dahl/schedule"
	"dahl/schedule/ready"
)

// Eager is list scheduling by one queue.
var Eager = NewOnline(schedule.Doc{
	Name:     "eager",
	Sentence: "one central queue by priority, then name; an idle worker takes the first task it can run",
	Paper:    "R. L. Graham, Bounds for certain multiprocessing anomalies, Bell System Technical Journal 45(9), 1966",
}, func(*schedule.Problem) Scheduler { return &eager{} })

// eager is list scheduling. Ready tasks wait in one queue: earlier steps first, then higher
// priorities, then by name. A worker that becomes idle takes the first task it can run. No worker
// rests while there is one.
//
// Graham showed that in one memory and on equal workers any such schedule is
// at most 2 - 1/m times as long as the best one on m workers.
type eager struct {
	queues []eagerQueue // by class of eligibility
	place  []int32      // by task: its place in the queue of its class
}

// eagerQueue is the ready instances of the tasks of one class.
type eagerQueue struct {
	tasks []dag.TaskID // by place, in the order in which they are taken
	ready []rankSet    // by step, modulo their number: places
	size  int
}

func (q *eager) Ready(v *View, i dag.Instance) platform.WorkerID {
	if q.queues == nil {
		q.prepare(v)
	}
	queue := &q.queues[v.Class(i.Task)]
	queue.at(i.Step).add(int(q.place[i.Task]))
	queue.size++
	return Undecided
}

func (q *eager) Next(v *View, w platform.WorkerID) (dag.Instance, bool) {
	first, best := -1, dag.Instance{}
	for c := range q.queues {
		if q.queues[c].size == 0 || !v.CanRun(q.queues[c].tasks[0], w) {
			continue
		}
		if i := q.queues[c].first(v.order); first < 0 || v.order.Key(i) < v.order.Key(best) {
			first, best = c, i
		}
	}
	if first < 0 {
		return dag.Instance{}, false
	}
	q.queues[first].at(best.Step).remove(int(q.place[best.Task]))
	q.queues[first].size--
	return best, true
}

// at is the places of one step.
func (q *eagerQueue) at(step int32) *rankSet { return &q.ready[step%int32(len(q.ready))] }

// first is the instance to be taken next from a queue that is not empty.
func (q *eagerQueue) first(order *ready.Steps) dag.Instance {
	step := order.First()
	for q.at(step).empty() {
		step++
	}
	return dag.Instance{Task: q.tasks[q.at(step).least()], Step: step}
}

// prepare makes a queue for each class.
func (q *eager) prepare(v *View) {
	q.queues = make([]eagerQueue, v.Classes())
	q.place = make([]int32, v.Problem.Graph.NumTasks())
	tasks, _ := v.order.Order()
	for _, t := range tasks {
		queue := &q.queues[v.Class(t)]
		q.place[t] = int32(len(queue.tasks))
		queue.tasks = append(queue.tasks, t)
	}
	for c := range q.queues {
		for range ready.Ring(v.Problem.Graph.Links, v.Problem.Steps, 0) {
			q.queues[c].ready = append(q.queues[c].ready, newRankSet(len(q.queues[c].tasks)))
		}
	}
}
