package ready

import (
	"slices"

	"dahl/dag"
)

// leastWindow is how many steps may be in progress at once, where no task of a plan runs as many steps behind others. It
// bounds the memory of Steps, whatever the number of steps, to one more counter per task, and one for each further step that
// links reach back. Within the window a task waits for nothing but its predecessors.
const leastWindow = 8

// windowFor is the number of steps in progress for a plan with a greatest lag.
func windowFor(lag int32) int32 { return max(leastWindow, lag+1) }

// Ring is the number of steps with state: those in progress and the next ones, whose predecessors
// may already end. Lag is how many steps a task runs behind others at most.
func Ring(links *dag.Links, steps int, lag int32) int32 {
	return min(int32(steps), windowFor(lag)+links.Reach())
}

// Steps counts the predecessors that each instance still waits for. Step k lives in slot k modulo
// the number of slots.
type Steps struct {
	links  *dag.Links
	steps  int
	slots  int32
	window int32 // steps in progress at once
	first  int32 // the first step with tasks left
	n      int32

	reach    int32      // how many steps back a predecessor may be
	orders   []dag.Rows // successors by orders that links lacks, by steps between the two
	pending  []int32    // by slot and task
	left     []int32    // by slot: tasks that have not ended
	tasks    []dag.TaskID
	place    []int32 // by task: its place in tasks; nil means by their numbers
	released []int64 // keys of the instances that became ready
}

// New prepares a number of steps. Orders are further edges, by the number of steps between the two tasks. None
// reaches further than the links. Instances of one step come in the order of tasks. Nil means by their numbers. Lag is how
// many steps a task runs behind others at most.
func New(links *dag.Links, steps int, orders [][]dag.Edge, tasks []dag.TaskID, lag int32) *Steps {
	n := links.NumTasks()
	s := &Steps{links: links, steps: steps, n: int32(n), slots: Ring(links, steps, lag), window: windowFor(lag), reach: min(links.Reach(), int32(steps-1)), tasks: tasks}
	s.orders = make([]dag.Rows, s.reach+1)
	for back, edges := range orders[:min(len(orders), len(s.orders))] {
		s.orders[back] = dag.NewRows(n, edges)
	}
	s.pending, s.left = make([]int32, int(s.slots)*n), make([]int32, s.slots)
	if tasks != nil {
		s.place = make([]int32, n)
		for place, t := range tasks {
			s.place[t] = int32(place)
		}
	}
	return s
}

// Order is the order of the tasks of a step, and the place of each task in it.
func (s *Steps) Order() (tasks []dag.TaskID, place []int32) { return s.tasks, s.place }

// Begin releases the instances that wait for nothing. Each time that held names a task, its
// instance of the first step also waits for a [Steps.Release].
func (s *Steps) Begin(held []dag.TaskID) {
	for step := range s.slots {
		s.prepare(step)
	}
	for _, t := range held {
		s.pending[t]++
	}
	for step := range min(int32(s.steps), s.window) {
		s.open(step)
	}
}

// Release takes back one time that Begin held a task.
func (s *Steps) Release(t dag.TaskID) { s.countDown(0, int32(t)) }

// prepare sets the counters of a step to the predecessors in it and in those before; one is
// added that open takes away.
func (s *Steps) prepare(step int32) {
	pending := s.pending[(step%s.slots)*s.n:][:s.n]
	for t := range pending {
		pending[t] = 1
	}
	for back := range min(step, s.reach) + 1 {
		for t := range pending {
			for _, preds := range s.links.PredsBack(dag.TaskID(t), back) {
				pending[t] += int32(len(preds))
			}
		}
		for _, t := range s.orders[back].All() {
			pending[t]++
		}
	}
	s.left[step%s.slots] = s.n
}

// open lets the tasks of a step start when their predecessors have ended.
func (s *Steps) open(step int32) {
	for t := range s.n {
		s.countDown(step, t)
	}
}

func (s *Steps) countDown(step, t int32) {
	p := &s.pending[(step%s.slots)*s.n+t]
	*p--
	if *p == 0 {
		s.released = append(s.released, s.Key(dag.Instance{Task: dag.TaskID(t), Step: step}))
	}
}

// Key orders instances by step, then task.
func (s *Steps) Key(i dag.Instance) int64 {
	if s.place == nil {
		return int64(i.Step)<<32 | int64(i.Task)
	}
	return int64(i.Step)<<32 | int64(s.place[i.Task])
}

// instance is the inverse of Key.
func (s *Steps) instance(key int64) dag.Instance {
	i := dag.Instance{Task: dag.TaskID(key & (1<<32 - 1)), Step: int32(key >> 32)}
	if s.tasks != nil {
		i.Task = s.tasks[i.Task]
	}
	return i
}

// End counts down the successors of an instance that has ended.
func (s *Steps) End(i dag.Instance) {
	g := s.links
	for _, t := range g.Succs(i.Task) {
		s.countDown(i.Step, t)
	}
	for _, t := range s.orders[0].Row(int32(i.Task)) {
		s.countDown(i.Step, t)
	}
	for back := int32(1); back <= s.reach && int(i.Step+back) < s.steps; back++ {
		next := i.Step + back
		if back == 1 {
			for _, t := range g.CarriedSuccs(i.Task) {
				s.countDown(next, t)
			}
		}
		for _, t := range g.ReuseSuccs(i.Task, back) {
			s.countDown(next, t)
		}
		for _, t := range s.orders[back].Row(int32(i.Task)) {
			s.countDown(next, t)
		}
	}
	s.left[i.Step%s.slots]--
	for !s.Finished() && s.left[s.first%s.slots] == 0 {
		s.first++
		if ahead := s.first + s.slots - 1; int(ahead) < s.steps {
			s.prepare(ahead)
		}
		if opened := s.first + s.window - 1; int(opened) < s.steps {
			s.open(opened)
		}
	}
}

// Cut makes a number of steps all that there are. None of the others has a task that ended.
func (s *Steps) Cut(steps int32) { s.steps = min(s.steps, int(steps)) }

// IsCut reports whether a step was cut off.
func (s *Steps) IsCut(step int32) bool { return int(step) >= s.steps }

// Finished reports whether all tasks of all steps have ended.
func (s *Steps) Finished() bool { return int(s.first) == s.steps }

// First is the first step with tasks left; the number of steps when none has.
func (s *Steps) First() int32 { return s.first }

// TakeReleased moves the instances that became ready into buf, in their order.
func (s *Steps) TakeReleased(buf []dag.Instance) []dag.Instance {
	slices.Sort(s.released)
	return s.TakeAsReleased(buf)
}

// TakeAsReleased is TakeReleased in the order in which they became ready.
func (s *Steps) TakeAsReleased(buf []dag.Instance) []dag.Instance {
	buf = buf[:0]
	for _, key := range s.released {
		buf = append(buf, s.instance(key))
	}
	s.released = s.released[:0]
	return buf
}

// Ready reports whether an instance that has not ended waits for nothing any more.
func (s *Steps) Ready(i dag.Instance) bool {
	return i.Step < s.first+s.slots && s.pending[s.Slot(i)] == 0
}

// Slot is the index of an instance in tables by slot and task.
func (s *Steps) Slot(i dag.Instance) int32 { return i.Step%s.slots*s.n + int32(i.Task) }
