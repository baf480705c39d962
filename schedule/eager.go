package schedule

import "dahl/platform"

// eager is list scheduling: ready tasks wait in one queue, earlier steps first,
// then higher priorities, then by name. A worker that becomes idle takes the
// first task it can run, and no worker rests while there is one.
//
// Graham showed that without transfers and on equal workers any such schedule is
// at most 2 - 1/m times as long as the best one on m workers.
type eager struct {
	queues []taskHeap // by class of eligibility
}

func (q *eager) Ready(v *View, i Instance) platform.WorkerID {
	if q.queues == nil {
		q.queues = newTaskHeaps(v)
	}
	q.queues[v.eligible.class[i.Task]].push(v.order.keyAt(i))
	return Undecided
}

func (q *eager) Next(v *View, w platform.WorkerID) (Instance, bool) {
	first := -1
	for c := range q.queues {
		if len(q.queues[c]) > 0 && v.eligible.allowed[c][w] && (first < 0 || q.queues[c][0] < q.queues[first][0]) {
			first = c
		}
	}
	if first < 0 {
		return Instance{}, false
	}
	return v.order.instanceAt(q.queues[first].pop()), true
}

// newTaskHeaps makes a queue for each class, large enough for all of its instances
// that can be ready at once.
func newTaskHeaps(v *View) []taskHeap {
	count := make([]int, len(v.eligible.allowed))
	for _, c := range v.eligible.class {
		count[c]++
	}
	queues := make([]taskHeap, len(count))
	for c, n := range count {
		queues[c] = make(taskHeap, 0, n*int(v.order.slots))
	}
	return queues
}

// taskHeap is a binary heap of instances by their keys in the order of readiness.
type taskHeap []int64

func (h *taskHeap) push(key int64) {
	*h = append(*h, key)
	for a, i := *h, len(*h)-1; i > 0 && a[i] < a[(i-1)/2]; i = (i - 1) / 2 {
		a[i], a[(i-1)/2] = a[(i-1)/2], a[i]
	}
}

func (h *taskHeap) pop() int64 {
	a := *h
	top, last := a[0], len(a)-1
	a[0] = a[last]
	a = a[:last]
	for i := 0; ; {
		child := 2*i + 1
		if child+1 < last && a[child+1] < a[child] {
			child++
		}
		if child >= last || a[i] <= a[child] {
			break
		}
		a[i], a[child] = a[child], a[i]
		i = child
	}
	*h = a
	return top
}
