package schedule

import (
	"math"
	"slices"

	"dahl/dag"
)

// stepWindow is how many steps may be in progress at once. It bounds the Engine's memory to
// stepWindow+1 counters per task, whatever the number of steps. Within the window a task waits
// for nothing but its predecessors.
const stepWindow = 8

// ringSlots is the number of steps with state: those in progress and the next one, whose
// predecessors may already end.
func ringSlots(steps int) int32 { return int32(min(steps, stepWindow+1)) }

// readiness counts the predecessors that each instance still waits for. Step k
// lives in slot k modulo the number of slots.
type readiness struct {
	links *dag.Links
	steps int
	slots int32
	base  int32 // the first step with tasks left
	n     int32

	reuse, reuseNext dag.Rows // successors by orders beyond those of links
	pending          []int32  // by slot and task
	left             []int32  // by slot: tasks that have not ended
	keyOf            []int32  // by task: its place in the order of tasks; nil: by their numbers
	taskOf           []dag.TaskID
	released         []int64 // instances that became ready: step and key
}

// taskOrder lists the tasks by priority, highest first, then by name.
func taskOrder(g *dag.Graph) []dag.TaskID {
	keys := make([]uint64, len(g.Tasks)) // by rank: 2^32 less the priority, then the rank
	tasks := make([]dag.TaskID, len(g.Tasks))
	for t := range g.Tasks {
		rank := g.Rank(dag.TaskID(t))
		keys[rank] = uint64(math.MaxInt32-int64(g.Tasks[t].Priority))<<32 | uint64(rank)
		tasks[rank] = dag.TaskID(t)
	}
	if slices.IsSorted(keys) {
		return tasks
	}
	slices.Sort(keys)
	order := make([]dag.TaskID, len(keys))
	for i, k := range keys {
		order[i] = tasks[uint32(k)]
	}
	return order
}

// newReadiness prepares a number of steps; reuse and reuseNext are orders beside the links.
func newReadiness(links *dag.Links, steps int, reuse, reuseNext []dag.Edge) *readiness {
	n := links.NumTasks()
	r := &readiness{links: links, steps: steps, n: int32(n), slots: ringSlots(steps), reuse: dag.NewRows(n, reuse)}
	if steps > 1 {
		r.reuseNext = dag.NewRows(n, reuseNext)
	}
	r.pending, r.left = make([]int32, int(r.slots)*n), make([]int32, r.slots)
	return r
}

// inOrder makes instances of one step come in an order of their tasks.
func (r *readiness) inOrder(tasks []dag.TaskID) {
	r.taskOf, r.keyOf = tasks, make([]int32, len(tasks))
	for key, t := range tasks {
		r.keyOf[t] = int32(key)
	}
}

// begin releases the instances that wait for nothing.
func (r *readiness) begin() {
	for step := range r.slots {
		r.prepare(step)
	}
	for step := range min(int32(r.steps), stepWindow) {
		r.open(step)
	}
}

// prepare sets the counters of a step to the predecessors in it and in the one before; one is
// added that open takes away.
func (r *readiness) prepare(step int32) {
	pending := r.pending[(step%r.slots)*r.n:][:r.n]
	for t := range pending {
		pending[t] = 1 + int32(len(r.links.Preds(dag.TaskID(t))))
		if step > 0 {
			pending[t] += int32(len(r.links.CarriedPreds(dag.TaskID(t))) + len(r.links.ReusePreds(dag.TaskID(t))))
		}
	}
	for _, t := range r.reuse.All() {
		pending[t]++
	}
	if step > 0 {
		for _, t := range r.reuseNext.All() {
			pending[t]++
		}
	}
	r.left[step%r.slots] = r.n
}

// open lets the tasks of a step start when their predecessors have ended.
func (r *readiness) open(step int32) {
	for t := range r.n {
		r.countDown(step, t)
	}
}

func (r *readiness) countDown(step, t int32) {
	p := &r.pending[(step%r.slots)*r.n+t]
	*p--
	if *p == 0 {
		r.released = append(r.released, r.keyAt(dag.Instance{Task: dag.TaskID(t), Step: step}))
	}
}

// keyAt orders instances by step, then task; instanceAt is its inverse.
func (r *readiness) keyAt(i dag.Instance) int64 {
	if r.keyOf == nil {
		return int64(i.Step)<<32 | int64(i.Task)
	}
	return int64(i.Step)<<32 | int64(r.keyOf[i.Task])
}

func (r *readiness) instanceAt(key int64) dag.Instance {
	i := dag.Instance{Task: dag.TaskID(key & (1<<32 - 1)), Step: int32(key >> 32)}
	if r.taskOf != nil {
		i.Task = r.taskOf[i.Task]
	}
	return i
}

// end counts down the successors of an instance that has ended.
func (r *readiness) end(i dag.Instance) {
	g := r.links
	for _, t := range g.Succs(i.Task) {
		r.countDown(i.Step, t)
	}
	for _, t := range r.reuse.Row(int32(i.Task)) {
		r.countDown(i.Step, t)
	}
	if next := i.Step + 1; int(next) < r.steps {
		for _, t := range g.CarriedSuccs(i.Task) {
			r.countDown(next, t)
		}
		for _, t := range g.ReuseSuccs(i.Task) {
			r.countDown(next, t)
		}
		for _, t := range r.reuseNext.Row(int32(i.Task)) {
			r.countDown(next, t)
		}
	}
	r.left[i.Step%r.slots]--
	for !r.finished() && r.left[r.base%r.slots] == 0 {
		r.base++
		if ahead := r.base + stepWindow; int(ahead) < r.steps {
			r.prepare(ahead)
		}
		if opened := r.base + stepWindow - 1; int(opened) < r.steps {
			r.open(opened)
		}
	}
}

func (r *readiness) finished() bool { return int(r.base) == r.steps }

// takeReleased moves the instances that became ready into buf, in their order.
func (r *readiness) takeReleased(buf []dag.Instance) []dag.Instance {
	slices.Sort(r.released)
	buf = buf[:0]
	for _, k := range r.released {
		buf = append(buf, r.instanceAt(k))
	}
	r.released = r.released[:0]
	return buf
}

// ready reports whether an instance of a step that is prepared waits for nothing any more.
func (r *readiness) ready(i dag.Instance) bool { return r.pending[r.slot(i)] == 0 }

// slot is the index of an instance in tables by slot and task.
func (r *readiness) slot(i dag.Instance) int32 { return i.Step%r.slots*r.n + int32(i.Task) }
