package policy

import (
	"dahl/dag"
	"dahl/platform"
	"dahl/schedule"
)

// LWS is work stealing from neighbours.
var LWS = NewOnline(schedule.Doc{
	Name:     "lws",
	Sentence: "a task waits at the worker that released it; a worker without tasks steals one from the nearest worker that has one",
	Paper:    "R. D. Blumofe, C. E. Leiserson, Scheduling multithreaded computations by work stealing, Journal of the ACM 46(5), 1999; StarPU handbook, scheduling policy lws",
}, func(p *schedule.Problem) Scheduler { return &lws{waiting: make([]eager, len(p.Platform.Workers))} })

// lws is locality work stealing. Each worker has a queue. A task goes to the queue of the worker that ended its last predecessor: its
// caches have an operand. Tasks without predecessors go to the workers in turn. So do tasks that this worker cannot run.
// Each worker takes the tasks of its queue in the order of [eager]. A worker with an empty queue steals from the nearest queue: first
// on its own device, then in its own memory, then elsewhere. Queues of one distance are tried by the numbers of their workers, beginning behind the thief.
//
// No worker rests while a task waits that it can run, so that Graham's bound of [eager] holds here, too.
type lws struct {
	waiting []eager // by worker
	turn    int
}

func (q *lws) Ready(v *View, i dag.Instance) platform.WorkerID {
	w := v.Released
	for w == Undecided || !v.CanRun(i.Task, w) {
		w = platform.WorkerID(q.turn)
		q.turn = (q.turn + 1) % len(q.waiting)
	}
	return q.waiting[w].Ready(v, i)
}

func (q *lws) Next(v *View, w platform.WorkerID) (dag.Instance, bool) {
	if i, ok := q.waiting[w].Next(v, w); ok {
		return i, true
	}
	for far := range distances {
		for k := 1; k < len(q.waiting); k++ {
			victim := (w + platform.WorkerID(k)) % platform.WorkerID(len(q.waiting))
			if distance(v.Problem.Platform, w, victim) != far {
				continue
			}
			if i, ok := q.waiting[victim].Next(v, w); ok {
				return i, true
			}
		}
	}
	return dag.Instance{}, false
}

// distances is how many distances there are between workers.
const distances = 3

// distance is 0 between workers of one device, 1 between workers in one memory, else 2.
func distance(p *platform.Platform, a, b platform.WorkerID) int {
	switch {
	case p.Workers[a].Device == p.Workers[b].Device:
		return 0
	case p.MemoryOf(a) == p.MemoryOf(b):
		return 1
	}
	return 2
}
