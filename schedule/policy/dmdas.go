package policy

import (
	"dahl/dag"
	"dahl/platform"
	"dahl/schedule"
	"dahl/schedule/ready"
)

// DMDAS is DMDA with workers that take the most urgent task.
var DMDAS = NewOnline(schedule.Doc{
	Name:     "dmdas",
	Sentence: "places as dmda does; a worker takes the waiting task of the highest priority, by upward rank where a graph has none",
	Paper:    "E. Agullo, O. Beaumont, L. Eyraud-Dubois, S. Kumar, Are static schedules so bad? A case study on Cholesky factorization, IPDPS 2016; StarPU handbook, scheduling policy dmdas",
}, func(p *schedule.Problem) Scheduler { return &dmdas{dmda: newDMDA(p)} })

// dmdas gives tasks to workers as [dmda] does. A worker then takes the waiting task of the earliest step and of the highest
// priority. Of several it takes the one with the fewest bytes missing in its memory, as [dmdar] does.
//
// Where no task of a graph has a priority, upward ranks take their place ([byRank]): the longest way from a task to the end of its step,
// by mean times. So dmdas decides as HEFT does, but when tasks become ready.
type dmdas struct {
	*dmda
	urgency []float64 // by task
}

func (q *dmdas) Ready(v *View, i dag.Instance) platform.WorkerID {
	if q.urgency == nil {
		q.urgency = urgencies(v)
	}
	w := q.place(v, i)
	waiting := &q.queues[w]
	if waiting.size == 0 || !q.before(i, waiting.last) {
		q.insert(v, waiting, waiting.last, i)
		return w
	}
	ahead, next := dag.Instance{}, waiting.first
	for !q.before(i, next) {
		ahead, next = next, q.behind[v.order.Slot(next)]
	}
	if next == waiting.first {
		q.behind[v.order.Slot(i)], waiting.first = next, i
		waiting.size++
		return w
	}
	q.insert(v, waiting, ahead, i)
	return w
}

// before reports whether a is more urgent than b.
func (q *dmdas) before(a, b dag.Instance) bool {
	if a.Step != b.Step {
		return a.Step < b.Step
	}
	return q.urgency[a.Task] > q.urgency[b.Task]
}

func (q *dmdas) Next(v *View, w platform.WorkerID) (dag.Instance, bool) {
	first := q.queues[w].first
	return q.fewestMissing(v, w, func(i dag.Instance) bool { return !q.before(first, i) })
}

// urgencies are the priorities of the tasks, or their upward ranks if all priorities are 0.
func urgencies(v *View) []float64 {
	g := v.Problem.Graph
	urgencies, stated := make([]float64, len(g.Tasks)), false
	for t := range g.Tasks {
		urgencies[t] = float64(g.Tasks[t].Priority)
		stated = stated || g.Tasks[t].Priority != 0
	}
	if stated {
		return urgencies
	}
	sorted, _ := ready.Sort(g.Links, v.Problem.Reuse, nil)
	return upwardRanks(v.Problem, v.Fit, sorted, dag.NewRows(len(g.Tasks), v.Problem.Reuse))
}
