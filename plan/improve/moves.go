package improve

import (
	"math/rand/v2"
	"slices"

	"dahl/dag"
	"dahl/platform"
)

// change makes one random change of a point.
func (s *search) change(x *point) {
	t := int32(s.random.IntN(len(x.sequence)))
	switch kind := s.random.IntN(16); {
	case kind < 3 && s.manyClocks:
		s.changeClocks(x, t)
	case kind < 4 || kind == 4 && !s.exchangeTails(x, t):
		s.exchange(x, t)
	case kind == 4:
	case kind < 7:
		s.moveJointly(x, s.relatedTasks(x, t))
	default:
		s.move(x, t)
	}
}

// move puts a task at another place of the sequence, and mostly on another worker.
func (s *search) move(x *point, t int32) {
	first, last := s.room(x, t)
	x.insert(t, first+s.random.Int32N(last-first+1))
	if s.random.IntN(4) > 0 {
		s.put(x, t, s.workerOf(x, t, pick(s.random, s.places[t])))
	}
}

// workerOf chooses one of the workers of a device for a task: as often one that runs a task before it or
// after it as any.
func (s *search) workerOf(x *point, t int32, of []platform.WorkerID) platform.WorkerID {
	beside := [2][]int32{s.graph.Preds(dag.TaskID(t)), s.graph.Succs(dag.TaskID(t))}[s.random.IntN(2)]
	if len(of) > 1 && len(beside) > 0 && s.random.IntN(2) == 0 {
		if w := x.worker[pick(s.random, beside)]; w >= of[0] && w <= of[len(of)-1] && s.allows(t, w) {
			return w
		}
	}
	return pick(s.random, of)
}

// exchange gives a task and another one each the worker and, where nothing between forbids it, the place of
// the other.
func (s *search) exchange(x *point, t int32) {
	const near = 16
	at := x.at[t] + s.random.Int32N(2*near+1) - near
	if at < 0 || int(at) >= len(x.sequence) {
		return
	}
	u := x.sequence[at]
	from, to := x.worker[t], x.worker[u]
	if s.allows(t, to) && s.allows(u, from) && s.group[t] == nil && s.group[u] == nil {
		s.put(x, t, to)
		s.put(x, u, from)
	}
	here := x.at[t]
	if first, last := s.room(x, t); first <= at && at <= last {
		x.insert(t, at)
	}
	if first, last := s.room(x, u); first <= here && here <= last {
		x.insert(u, here)
	}
}

// exchangeTails gives two workers of a device what the other one runs from some place of the sequence on; false means the task's
// device has no other.
func (s *search) exchangeTails(x *point, t int32) bool {
	a, b := x.worker[t], pick(s.random, s.workersOf(t, s.deviceOf(x.worker[t])))
	if a == b {
		return false
	}
	for _, u := range x.sequence[x.at[t]:] {
		switch w := x.worker[u]; {
		case s.group[u] != nil:
		case w == a && s.allows(u, b):
			x.worker[u] = b
		case w == b && s.allows(u, a):
			x.worker[u] = a
		}
	}
	return true
}

// workersOf lists the workers of a device that may run a task.
func (s *search) workersOf(t int32, id platform.DeviceID) []platform.WorkerID {
	i := slices.IndexFunc(s.places[t], func(of []platform.WorkerID) bool { return s.deviceOf(of[0]) == id })
	return s.places[t][i]
}

// relatedTasks chooses tasks that may be good to move at once: tasks like the given one, its layer, its device, or a chain from it on.
func (s *search) relatedTasks(x *point, t int32) []int32 {
	s.chain = append(s.chain[:0], t)
	switch s.random.IntN(8) {
	case 0, 1:
		return s.sameCalls[t]
	case 2, 3:
		return s.layer[t]
	case 4:
		for _, other := range x.sequence {
			if other != t && s.deviceOf(x.worker[other]) == s.deviceOf(x.worker[t]) {
				s.chain = append(s.chain, other)
			}
		}
		return s.chain
	}
	for next := s.graph.Succs(dag.TaskID(t)); len(next) > 0 && s.random.IntN(8) > 0; next = s.graph.Succs(dag.TaskID(t)) {
		t = pick(s.random, next)
		s.chain = append(s.chain, t)
	}
	return s.chain
}

// moveJointly gives tasks to the workers of one device: to one of them, or each to any.
func (s *search) moveJointly(x *point, tasks []int32) {
	to := pick(s.random, s.places[tasks[0]])
	one, id, alone := pick(s.random, to), s.deviceOf(to[0]), s.random.IntN(2) == 0
	for _, t := range tasks {
		for _, of := range s.places[t] {
			switch {
			case s.deviceOf(of[0]) != id:
			case alone && s.allows(t, one):
				s.put(x, t, one)
			case s.deviceOf(x.worker[t]) != id || len(tasks) > 1:
				s.put(x, t, s.workerOf(x, t, of))
			}
		}
	}
}

// changeClocks gives another clock to a task, to tasks like it, to a stretch of the sequence or to all tasks of its device.
func (s *search) changeClocks(x *point, t int32) {
	id := s.deviceOf(x.worker[t])
	if len(s.clocks[id]) < 2 {
		return
	}
	clock := pick(s.random, s.clocks[id])
	tasks := []int32{t}
	switch s.random.IntN(4) {
	case 0:
		tasks = s.sameCalls[t]
	case 1:
		from := x.at[t]
		tasks = x.sequence[from : from+1+s.random.Int32N(int32(len(x.sequence))-from)]
	case 2:
		tasks = x.sequence
	}
	for _, t := range tasks {
		if s.deviceOf(x.worker[t]) == id {
			x.clock[t] = clock
		}
	}
}

// put gives a task to a worker, and with it those that are to share its worker.
func (s *search) put(x *point, t int32, w platform.WorkerID) {
	set := func(t int32) {
		x.worker[t], x.clock[t] = w, s.clockOn(s.deviceOf(w), x.clock[t])
	}
	set(t)
	for _, t := range s.group[t] {
		set(t)
	}
}

// room is the first and the last place of the sequence to which a task may move.
func (r *rules) room(x *point, t int32) (first, last int32) {
	first, last = 0, int32(len(x.sequence))-1
	for _, before := range r.graph.Preds(dag.TaskID(t)) {
		first = max(first, x.at[before]+1)
	}
	for _, after := range r.graph.Succs(dag.TaskID(t)) {
		last = min(last, x.at[after]-1)
	}
	return first, last
}

// pick is a random element.
func pick[T any](r *rand.Rand, list []T) T { return list[r.IntN(len(list))] }
