package policy

import (
	"dahl/dag"
	"dahl/platform"
	"dahl/schedule"
)

// DMDAR is DMDA with workers that take the task with the fewest missing bytes.
var DMDAR = NewOnline(schedule.Doc{
	Name:     "dmdar",
	Sentence: "places as dmda does; a worker takes the waiting task with the fewest bytes missing in its memory",
	Paper:    "C. Augonnet, J. Clet-Ortega, S. Thibault, R. Namyst, Data-aware task scheduling on multi-accelerator based platforms, ICPADS 2010; StarPU handbook, scheduling policy dmdar",
}, func(p *schedule.Problem) Scheduler { return &dmdar{newDMDA(p)} })

// dmdar gives tasks to workers as [dmda] does. A worker then takes the waiting task with the
// fewest bytes missing in its memory; ties go to the task that waits longest. So the worker goes
// on with operands that are there while others come.
//
// No task waits for ever: a step ends when all its tasks have ended, few steps are in progress at once, and a worker
// rests only when no task waits for it.
type dmdar struct{ *dmda }

// comparedTasks is how many waiting tasks are compared, those that wait longest. The cost of a
// decision must not grow with the number of waiting tasks.
const comparedTasks = 256

func (q *dmdar) Next(v *View, w platform.WorkerID) (dag.Instance, bool) {
	return q.fewestMissing(v, w, func(dag.Instance) bool { return true })
}

// fewestMissing takes an instance from the front of a worker's queue, of those before the first that may not be compared.
func (q *dmda) fewestMissing(v *View, w platform.WorkerID, compared func(dag.Instance) bool) (dag.Instance, bool) {
	waiting := &q.queues[w]
	if waiting.size == 0 {
		return dag.Instance{}, false
	}
	m := v.Problem.Platform.MemoryOf(w)
	var best, ahead, aheadOfBest dag.Instance
	least := int64(-1)
	for k, i := 0, waiting.first; k < min(waiting.size, comparedTasks) && least != 0 && compared(i); k++ {
		if bytes := v.MissingBytes(i, m); least < 0 || bytes < least {
			best, aheadOfBest, least = i, ahead, bytes
		}
		ahead, i = i, q.behind[v.order.Slot(i)]
	}
	q.remove(v, waiting, best, aheadOfBest)
	return best, true
}

// remove takes an instance out of a queue. ahead is the instance before it, if there is one.
func (q *dmda) remove(v *View, waiting *queue, i, ahead dag.Instance) {
	behind := q.behind[v.order.Slot(i)]
	if i == waiting.first {
		waiting.first = behind
	} else {
		q.behind[v.order.Slot(ahead)] = behind
	}
	if i == waiting.last {
		waiting.last = ahead
	}
	waiting.size--
}
