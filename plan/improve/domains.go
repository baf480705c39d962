package improve

import (
	"slices"

	"dahl/platform"
	"dahl/schedule/ready"
)

// domain is the units whose clock changes together.
type domain struct {
	clock          platform.ClockID
	settled, until int64 // when its last change was over; when all its tasks so far have ended
	changes        []changed
	tasks          int              // of a step
	last           platform.ClockID // the clock of one of them

	waiting []int32 // workers with a task that has not begun, in the order in which they came
	running int
}

type changed struct {
	at    int64
	clock platform.ClockID
}

// change brings a domain to a clock from a time on, and returns when that is done.
func (own *domain) change(d *device, clock platform.ClockID, at int64) int64 {
	own.clock, own.settled = clock, at+int64(d.Switch.Takes)
	own.changes = append(own.changes, changed{own.settled, clock})
	return own.settled
}

// turn is when a task at a clock can start that else could at a time.
func (e *evaluator) turn(id int32, d *device, clock platform.ClockID, at int64) int64 {
	own := &e.domain[id]
	at = max(at, own.settled)
	if own.clock != clock {
		at = own.change(d, clock, max(at, own.until))
	}
	return at
}

// queues serve the requests of units whose clock changes together. A task at another clock waits until
// nothing runs in its domain, and what came after it waits too. So tasks are timed in the order of time and
// not in their sequence.
type queues struct {
	lists     [][]int32 // by worker: its tasks, in order
	next      []int32   // by worker: how many tasks of the run it has begun
	idle      []bool    // by worker
	waits     []int32   // by step and task: how many it waits for
	remaining []int32   // by step and task: how many it still waits for
	after     [][]wait  // by task: those that wait for it
	ready     []int64   // by worker: of its next task
	byCPU     []bool
	ends      ready.Heap[ending]
	touched   []int32
	left      [unrolled]int32 // by step: tasks
}

// ending is the end of a worker's task.
type ending struct {
	at                 int64
	worker, task, step int32
	rank               int32 // of the task
}

// Before is the order in which a world hears of ends.
func (a ending) Before(b ending) bool {
	return a.at < b.at || a.at == b.at && (a.rank < b.rank || a.rank == b.rank && a.step < b.step)
}

func newQueues(m *model) *queues {
	workers := len(m.workers)
	q := &queues{lists: make([][]int32, workers), next: make([]int32, workers), idle: make([]bool, workers), ready: make([]int64, workers), byCPU: make([]bool, workers),
		after: make([][]wait, m.tasks), waits: make([]int32, int(m.steps())*m.tasks), remaining: make([]int32, int(m.steps())*m.tasks)}
	for t := range int32(m.tasks) {
		for _, of := range m.waits.of[m.waits.start[t]:m.waits.start[t+1]] {
			q.after[of.task] = append(q.after[of.task], wait{t, of.back})
			for step := of.back; step < m.steps(); step++ {
				q.waits[step*int32(m.tasks)+t]++
			}
		}
	}
	return q
}

// byRequest times steps until it is known how they go on, and returns the last.
func (e *evaluator) byRequest() (last int32) {
	q := e.queues
	e.alike = 0
	copy(q.remaining, q.waits)
	q.ends = q.ends[:0]
	clear(e.ends[:])
	for step := range q.left {
		q.left[step] = int32(e.tasks)
	}
	for w := range q.lists {
		q.lists[w], q.next[w], q.idle[w] = q.lists[w][:0], 0, true
	}
	for _, t := range e.x.sequence {
		q.lists[e.x.worker[t]] = append(q.lists[e.x.worker[t]], t)
	}
	for w := range int32(len(q.lists)) {
		e.request(w)
	}
	e.serve(0)
	for len(q.ends) > 0 {
		end := q.ends.Pop()
		q.idle[end.worker] = true
		e.domain[e.workers[end.worker].domain].running--
		e.ends[end.step] = max(e.ends[end.step], end.at)
		q.touched = append(q.touched[:0], end.worker)
		for _, of := range q.after[end.task] {
			if step := end.step + of.back; step < e.steps() {
				i := step*int32(e.tasks) + of.task
				if q.remaining[i]--; q.remaining[i] == 0 {
					q.touched = append(q.touched, int32(e.x.worker[of.task]))
				}
			}
		}
		slices.Sort(q.touched)
		for _, w := range q.touched {
			e.request(w)
		}
		e.serve(end.at)
		if q.left[end.step]--; q.left[end.step] > 0 {
			continue
		}
		last, e.step = end.step, end.step
		e.ends[last] = max(e.ends[last], e.ends[max(0, last-1)])
		if e.known() {
			break
		}
	}
	return last
}

// request lets a worker ask for its next task, if it has nothing to do and that waits for nothing any more.
func (e *evaluator) request(w int32) {
	q := e.queues
	list := q.lists[w]
	if !q.idle[w] || len(list) == 0 || q.next[w] == int32(len(list))*e.steps() {
		return
	}
	step, t := q.next[w]/int32(len(list)), list[q.next[w]%int32(len(list))]
	if q.remaining[step*int32(e.tasks)+t] > 0 {
		return
	}
	q.idle[w] = false
	own := &e.workers[w]
	e.step = step
	q.ready[w], q.byCPU[w] = e.ready(t, own, &e.devices[own.device])
	e.domain[own.domain].waiting = append(e.domain[own.domain].waiting, w)
}

// serve begins what can begin.
func (e *evaluator) serve(now int64) {
	q := e.queues
	for id := range e.domain {
		own := &e.domain[id]
		kept, drains := own.waiting[:0], false
		for _, w := range own.waiting {
			list := q.lists[w]
			t := list[q.next[w]%int32(len(list))]
			clock := e.x.clock[t]
			if drains = drains || clock != own.clock && own.running > 0; drains {
				kept = append(kept, w)
				continue
			}
			d := &e.devices[e.workers[w].device]
			from := max(now, own.settled)
			if clock != own.clock {
				from = own.change(d, clock, now)
			}
			e.step = q.next[w] / int32(len(list))
			q.next[w]++
			own.running++
			q.ends.Push(ending{e.run(t, w, from, q.ready[w], q.byCPU[w]), w, t, e.step, e.rank[t]})
		}
		own.waiting = kept
	}
}

// idleJoules is what the units of a device draw in a step beside what their calls add.
func (e *evaluator) idleJoules(id int32, span int64) (sum float64) {
	d, seconds := &e.devices[id], float64(span)/1e9
	if !d.clocks {
		return float64(d.count * d.idle[0] * seconds)
	}
	// The step is looked at while the next one begins, if there is one.
	from, to := int64(0), span
	if e.steady {
		to = e.ends[max(0, e.step-1)]
		from = to - span
	}
	units := d.count
	if d.UnitClocks {
		units = 1
	}
	for w := range e.workers {
		own := &e.domain[w]
		if e.workers[w].device != id || int(e.workers[w].domain) != w {
			continue
		}
		if e.steady && !e.mixed && own.tasks > 0 {
			sum += float64(units * d.idle[own.last] * seconds)
			continue
		}
		clock, at := d.AtClock, from
		for _, c := range own.changes {
			if c.at > to {
				break
			}
			if c.at > from {
				sum += float64(units*d.idle[clock]*float64(c.at-at)/1e9) + d.Switch.Joules
				at = c.at
			}
			clock = c.clock
		}
		sum += float64(units * d.idle[clock] * float64(to-at) / 1e9)
	}
	return sum
}
