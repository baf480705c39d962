package schedule

import (
	"time"

	"dahl/platform"
)

// dmda gives every task, when it becomes ready, to the worker that is expected
// to end it first: after what the worker has already been given, after the
// operands have moved with nothing else on the links, plus the kernel. Each
// worker runs its tasks in the order in which it got them. Ties go to the worker
// with the lower index.
type dmda struct {
	queues  []fifo          // by worker
	moving  []time.Duration // by memory, for the task at hand
	movesOf []bool
}

func newDMDA(p *Problem) *dmda {
	memories := len(p.Platform.Memories)
	return &dmda{queues: make([]fifo, len(p.Platform.Workers)), moving: make([]time.Duration, memories), movesOf: make([]bool, memories)}
}

func (q *dmda) Ready(v *View, i Instance) platform.WorkerID {
	clear(q.movesOf)
	now, best := v.Now(), Undecided
	var bestEnd time.Duration
	for _, w := range v.Workers(i.Task) {
		m := v.Problem.memoryOf(w)
		if !q.movesOf[m] {
			q.moving[m], q.movesOf[m] = v.TransferTime(i, m), true
		}
		end := max(v.FreeAt(w), now+q.moving[m]) + v.Occupies(i.Task, w)
		if best == Undecided || end < bestEnd {
			best, bestEnd = w, end
		}
	}
	q.queues[best].push(i)
	return best
}

func (q *dmda) Next(_ *View, w platform.WorkerID) (Instance, bool) { return q.queues[w].pop() }

// fifo is a queue in a ring that grows when it is full.
type fifo struct {
	ring        []Instance
	first, size int
}

func (f *fifo) push(i Instance) {
	if f.size == len(f.ring) {
		grown := make([]Instance, max(8, 2*f.size))
		n := copy(grown, f.ring[f.first:])
		copy(grown[n:], f.ring[:f.first])
		f.ring, f.first = grown, 0
	}
	f.ring[(f.first+f.size)%len(f.ring)] = i
	f.size++
}

func (f *fifo) pop() (Instance, bool) {
	if f.size == 0 {
		return Instance{}, false
	}
	i := f.ring[f.first]
	f.first = (f.first + 1) % len(f.ring)
	f.size--
	return i, true
}
