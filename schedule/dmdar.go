package schedule

import "dahl/platform"

// dmdar gives tasks to workers as [dmda] does. A worker takes, of those that wait for it,
// not the one that waits longest but the one of whose operands the fewest bytes are
// missing in its memory; ties go to the one that waits longest. So it goes on with what is
// there while the operands of others come, and where the memory cannot hold what all of
// them read, it uses up what it has before it lets it go.
//
// Nothing waits for ever: a step ends when all its tasks have, only so many steps are in
// progress at once, and a worker rests only when nothing waits for it.
type dmdar struct{ *dmda }

// comparedTasks is how many of those that wait are compared, the longest waiting ones: what
// a task costs must not grow with how many wait.
const comparedTasks = 256

func (q *dmdar) Next(v *View, w platform.WorkerID) (Instance, bool) {
	waiting := &q.queues[w]
	if waiting.size == 0 {
		return Instance{}, false
	}
	m := v.Problem.memoryOf(w)
	var best, ahead, aheadOfBest Instance
	least := int64(-1)
	for k, i := 0, waiting.first; k < min(waiting.size, comparedTasks) && least != 0; k++ {
		if bytes := v.MissingBytes(i, m); least < 0 || bytes < least {
			best, aheadOfBest, least = i, ahead, bytes
		}
		ahead, i = i, q.behind[v.order.slot(i)]
	}
	q.remove(v, waiting, best, aheadOfBest)
	return best, true
}

// remove takes an instance out of a queue, given the one that waits ahead of it if it is
// not the first.
func (q *dmdar) remove(v *View, waiting *queue, i, ahead Instance) {
	behind := q.behind[v.order.slot(i)]
	if i == waiting.first {
		waiting.first = behind
	} else {
		q.behind[v.order.slot(ahead)] = behind
	}
	if i == waiting.last {
		waiting.last = ahead
	}
	waiting.size--
}
