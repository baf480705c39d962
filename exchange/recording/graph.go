package recording

import (
	"cmp"
	"container/heap"
	"maps"
	"slices"
	"strings"

	"dahl/dag"
)

// ahead orders tasks by their start among those whose predecessors are done.
type ahead struct {
	tasks []task
	ids   []int
}

func (a *ahead) Len() int { return len(a.ids) }
func (a *ahead) Less(i, j int) bool {
	x, y := a.ids[i], a.ids[j]
	return cmp.Or(cmp.Compare(a.tasks[x].start, a.tasks[y].start), cmp.Compare(x, y)) < 0
}
func (a *ahead) Swap(i, j int) { a.ids[i], a.ids[j] = a.ids[j], a.ids[i] }
func (a *ahead) Push(x any)    { a.ids = append(a.ids, x.(int)) }
func (a *ahead) Pop() any {
	last := a.ids[len(a.ids)-1]
	a.ids = a.ids[:len(a.ids)-1]
	return last
}

// order lists tasks so that each is behind those that it follows, and else by their start.
func (t *timeline) order() []int {
	missing := make([]int, len(t.tasks))
	followers := make([][]int, len(t.tasks))
	next := &ahead{tasks: t.tasks}
	for id := range t.tasks {
		k := &t.tasks[id]
		slices.Sort(k.after)
		k.after = slices.Compact(k.after)
		missing[id] = len(k.after)
		for _, p := range k.after {
			followers[p] = append(followers[p], id)
		}
		if missing[id] == 0 {
			next.ids = append(next.ids, id)
		}
	}
	heap.Init(next)
	order := make([]int, 0, len(t.tasks))
	done := make([]bool, len(t.tasks))
	for len(order) < len(t.tasks) {
		if next.Len() == 0 {
			t.breakCircle(missing, done, next)
		}
		id := heap.Pop(next).(int)
		order, done[id] = append(order, id), true
		for _, f := range followers[id] {
			if missing[f]--; missing[f] == 0 {
				heap.Push(next, f)
			}
		}
	}
	return order
}

// breakCircle lets the first of the tasks that wait for each other go on. Events of no duration at the same time may do so.
func (t *timeline) breakCircle(missing []int, done []bool, next *ahead) {
	first := -1
	for id := range t.tasks {
		if !done[id] && (first < 0 || t.tasks[id].start < t.tasks[first].start) {
			first = id
		}
	}
	t.left["waits in a circle"]++
	t.tasks[first].after = slices.DeleteFunc(t.tasks[first].after, func(p int) bool { return !done[p] })
	missing[first] = 1 << 30
	heap.Push(next, first)
}

// everyStep stands for all steps of a recording.
const everyStep = -1

// earlier is the operation of tasks that stand for steps before.
const earlier = "steps before"

// earlierWork lists work of other steps that ends within a step and delays it: for each thread and stream, in the order of its ends.
func (t *timeline) earlierWork(step int) (all [][]int) {
	awaited := map[[2]int][]int{} // by thread and stream
	for id := range t.tasks {
		if t.tasks[id].step != step {
			continue
		}
		for _, p := range t.tasks[id].after {
			if k := &t.tasks[p]; k.step != step && k.end > t.steps[step].start {
				awaited[[2]int{k.thread, k.stream}] = append(awaited[[2]int{k.thread, k.stream}], p)
			}
		}
	}
	for _, key := range slices.SortedFunc(maps.Keys(awaited), func(a, b [2]int) int { return slices.Compare(a[:], b[:]) }) {
		list := awaited[key]
		slices.SortFunc(list, func(a, b int) int { return cmp.Or(cmp.Compare(t.tasks[a].end, t.tasks[b].end), cmp.Compare(a, b)) })
		all = append(all, slices.Compact(list))
	}
	return all
}

// stepName is the name of a step, or of all before the first one.
func (t *timeline) stepName(step int) string {
	if step == beforeSteps {
		return earlier
	}
	return t.steps[step].name
}

// cost is a time that was recorded.
func cost(ns int64) []dag.Cost { return []dag.Cost{{Key: dag.AnyDevice, Ns: ns}} }

// operatorWork is the work of an operator, and how long all that it launched took.
type operatorWork struct {
	work
	ns int64
}

// workOfOperators sums what operators launched.
func (t *timeline) workOfOperators() map[*event]operatorWork {
	all := map[*event]operatorWork{}
	for i := range t.tasks {
		k := &t.tasks[i]
		if k.operator == nil || k.event.cat != kernel {
			continue
		}
		o, known := all[k.operator]
		if !known {
			o.work, _ = k.operator.work()
		}
		o.ns += k.end - k.start
		all[k.operator] = o
	}
	return all
}

// describe makes a task without its name. The work of an operator is shared among its kernels by their time.
func (t *timeline) describe(k *task, shared map[*event]operatorWork) dag.Task {
	out := dag.Task{Op: k.op, Labels: dag.Labels{Phase: t.stepName(k.step)}, Costs: cost(k.gap + k.duration())}
	if k.stream < 0 {
		out.Labels.Layer = "thread " + t.threads[k.thread].id
		if k.event != nil {
			w, _ := k.event.work()
			out.Type, out.Flops, out.MovedBytes = w.typ, w.flops, w.bytes
		}
		return out
	}
	out.Labels.Layer = "stream " + t.streams[k.stream].id
	if k.gap > 0 {
		out.Params = dag.Params{{Name: gapParam, Value: float64(k.gap)}}
	}
	t.describeGPU(k, shared, &out)
	return out
}

// duration is the time of a task without the gap before it.
func (k *task) duration() int64 {
	if k.resized != nil {
		return *k.resized
	}
	return k.end - k.start
}

// gapParam is the part of a task's time, in nanoseconds, that passed before the work began.
const gapParam = "gap"

func (t *timeline) describeGPU(k *task, shared map[*event]operatorWork, out *dag.Task) {
	switch k.event.cat {
	case copyWork:
		out.Op = copyKind(k.event.name)
		out.MovedBytes = k.event.bytes
	case setWork:
		out.Op = "memset"
		out.MovedBytes = k.event.bytes
	default:
		out.Op = shortKernel(k.event.name)
		if k.operator == nil {
			return
		}
		out.Op = k.operator.name
		if o := shared[k.operator]; o.ns > 0 {
			part := float64(k.end-k.start) / float64(o.ns)
			out.Type, out.Flops, out.MovedBytes = o.typ, o.flops*part, int64(float64(o.bytes)*part)
		}
	}
}

// Operations of copies between a host and its GPU, and within a GPU.
const (
	copyIn     = "memcpy in"
	copyOut    = "memcpy out"
	copyWithin = "memcpy"
)

// copyKind names a copy by its direction.
func copyKind(name string) string {
	switch {
	case strings.Contains(name, "HtoD"), strings.Contains(name, "HostToDevice"):
		return copyIn
	case strings.Contains(name, "DtoH"), strings.Contains(name, "DeviceToHost"):
		return copyOut
	}
	return copyWithin
}

// shortKernel is the name of a kernel without its result, its templates and its parameters.
func shortKernel(name string) string {
	name = strings.TrimPrefix(name, "void ")
	if end := strings.IndexAny(name, "<("); end > 0 {
		name = name[:end]
	}
	return strings.TrimSpace(name)
}
