package policy

import (
	"time"

	"dahl/dag"
	"dahl/platform"
	"dahl/schedule"
	"dahl/schedule/ready"
)

// DMDA places every task where it is expected to end first.
var DMDA = NewOnline(schedule.Doc{
	Name:     "dmda",
	Sentence: "a task that becomes ready goes where it is expected to end first, transfers included",
	Paper:    "C. Augonnet, S. Thibault, R. Namyst, P.-A. Wacrenier, StarPU, Concurrency and Computation: Practice and Experience 23(2), 2011",
}, func(p *schedule.Problem) Scheduler { return newDMDA(p) })

// dmda gives every task, when it becomes ready, to the worker that is expected to end it first.
// The worker first ends the tasks it was given, and the operands arrive. Then the kernel runs. Each worker runs its tasks in the order in which
// it got them. Ties go to the worker with the lower index.
type dmda struct {
	queues  []queue         // by worker
	behind  []dag.Instance  // by slot of an instance that waits in a queue: the next instance of the queue
	arrival []time.Duration // by memory, for the task at hand
	known   []bool
}

// queue is the instances that wait for one worker, first come, first served. Each instance waits
// in one queue at most, so dmda.behind links all of them and never grows.
type queue struct {
	first, last dag.Instance
	size        int
}

func newDMDA(p *schedule.Problem) *dmda {
	memories := len(p.Platform.Memories)
	return &dmda{queues: make([]queue, len(p.Platform.Workers)), behind: make([]dag.Instance, int(ready.Ring(p.Graph.Links, p.Steps, 0))*len(p.Graph.Tasks)),
		arrival: make([]time.Duration, memories), known: make([]bool, memories)}
}

func (q *dmda) Ready(v *View, i dag.Instance) platform.WorkerID {
	w := q.place(v, i)
	waiting := &q.queues[w]
	q.insert(v, waiting, waiting.last, i)
	return w
}

// place is the worker that is expected to end an instance first.
func (q *dmda) place(v *View, i dag.Instance) platform.WorkerID {
	clear(q.known)
	best := Undecided
	var bestEnd time.Duration
	for _, w := range v.Workers(i.Task) {
		m := v.Problem.Platform.MemoryOf(w)
		if !q.known[m] {
			q.arrival[m], q.known[m] = v.Arrival(i, m), true
		}
		end := max(v.FreeAt(w), q.arrival[m]) + v.Occupies(i.Task, w)
		if best == Undecided || end < bestEnd {
			best, bestEnd = w, end
		}
	}
	return best
}

// insert puts an instance into a queue, behind the last one or one before it.
func (q *dmda) insert(v *View, waiting *queue, ahead, i dag.Instance) {
	if waiting.size == 0 {
		waiting.first, waiting.last = i, i
	} else {
		q.behind[v.order.Slot(i)] = q.behind[v.order.Slot(ahead)]
		q.behind[v.order.Slot(ahead)] = i
	}
	if ahead == waiting.last {
		waiting.last = i
	}
	waiting.size++
}

func (q *dmda) Next(v *View, w platform.WorkerID) (dag.Instance, bool) {
	waiting := &q.queues[w]
	if waiting.size == 0 {
		return dag.Instance{}, false
	}
	i := waiting.first
	waiting.first = q.behind[v.order.Slot(i)]
	waiting.size--
	return i, true
}
