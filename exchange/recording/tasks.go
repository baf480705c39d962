package recording

import (
	"cmp"
	"slices"
)

// addHostTasks divides the time of each thread at its cuts and waits. Between two of these there is a task of the time that something
// explains, and one of the rest.
func (t *timeline) addHostTasks() {
	for i := range t.threads {
		if len(t.busy[i]) == 0 {
			continue
		}
		t.hostTasks(i)
	}
	for i := range t.threads { // waits name tasks of all threads
		ends := map[int64][]moment{}
		for _, w := range t.waits[i] {
			ends[w.end] = append(ends[w.end], w.threads...)
		}
		for _, at := range t.byThread[i] {
			task := &t.tasks[at]
			if task.op != hostWait {
				continue
			}
			for _, m := range ends[task.end] {
				if on := t.lastOf(m); on >= 0 {
					task.after = append(task.after, on)
				}
			}
		}
	}
}

// hostTasks adds the tasks of a thread.
func (t *timeline) hostTasks(thread int) {
	waits := disjoint(t.waits[thread])
	t.waits[thread] = waits
	end := t.busy[thread][len(t.busy[thread])-1].end
	cuts := append(t.cuts[thread], t.start, end)
	for _, s := range t.steps {
		cuts = append(cuts, s.start)
	}
	for _, w := range waits {
		cuts = append(cuts, w.start, w.end)
	}
	slices.Sort(cuts)
	cuts = slices.Compact(cuts)
	computed := t.computed[thread]
	for i, from := range cuts {
		for len(waits) > 0 && waits[0].end <= from {
			t.add(task{span: span{from, from}, op: hostWait, thread: thread, stream: -1})
			waits = waits[1:]
		}
		if i+1 == len(cuts) || from >= end {
			break
		}
		piece := span{from, cuts[i+1]}
		if len(waits) > 0 && waits[0].start <= from {
			continue // the thread waits
		}
		for len(computed) > 0 && computed[0].end <= from {
			computed = computed[1:]
		}
		if len(computed) > 0 && computed[0].start <= from {
			t.add(task{span: piece, op: computed[0].name, event: computed[0], thread: thread, stream: -1})
			continue
		}
		split := piece.start + piece.covered(t.explained[thread])
		if split > piece.start {
			t.add(task{span: span{piece.start, split}, op: hostWork, thread: thread, stream: -1})
		}
		if split < piece.end {
			t.add(task{span: span{split, piece.end}, op: hostUnexplained, thread: thread, stream: -1})
		}
	}
}

// disjoint orders waits, and lets none begin before the one before has ended.
func disjoint(waits []wait) []wait {
	slices.SortStableFunc(waits, func(a, b wait) int { return cmp.Or(cmp.Compare(a.end, b.end), cmp.Compare(a.start, b.start)) })
	out := waits[:0]
	for _, w := range waits {
		if n := len(out); n > 0 && w.start < out[n-1].end {
			w.start = min(out[n-1].end, w.end)
		}
		out = append(out, w)
	}
	return out
}

// add adds a task, behind the one before it on its thread.
func (t *timeline) add(k task) {
	id := len(t.tasks)
	k.step = t.stepAt(k.start)
	if k.thread >= 0 {
		on := &t.byThread[k.thread]
		if n := len(*on); n > 0 {
			k.after = append(k.after, (*on)[n-1])
		}
		*on = append(*on, id)
	}
	t.tasks = append(t.tasks, k)
}

// lastOf is the last task of a thread that ends by a moment; -1 where there is none.
func (t *timeline) lastOf(m moment) int {
	on := t.byThread[m.thread]
	behind, _ := slices.BinarySearchFunc(on, m.at+1, func(id int, at int64) int { return cmp.Compare(t.tasks[id].end, at) })
	if behind == 0 {
		return -1
	}
	return on[behind-1]
}

// addGPUTasks adds the work of all GPUs in the order in which it began, and lets waits of threads follow it.
func (t *timeline) addGPUTasks() {
	var order []place
	t.byEvent = make([][]int, len(t.streams))
	t.firstLaunched = make([]int, len(t.streams))
	for s := range t.streams {
		t.firstLaunched[s] = max(0, slices.IndexFunc(t.submitted[s], func(s submission) bool { return s.known }))
		t.byEvent[s] = make([]int, len(t.streams[s].events))
		for i := range t.streams[s].events {
			order = append(order, place{s, i})
		}
	}
	slices.SortStableFunc(order, func(a, b place) int { return cmp.Compare(t.at(a).start, t.at(b).start) })
	for _, p := range order {
		t.gpuTask(p)
	}
	for i := range t.threads {
		waits := map[int64][]place{}
		for _, w := range t.waits[i] {
			waits[w.end] = append(waits[w.end], w.works...)
		}
		for _, id := range t.byThread[i] {
			if t.tasks[id].op == hostWait {
				for _, p := range waits[t.tasks[id].end] {
					if on := t.byEvent[p.stream][p.event]; t.tasks[on].end <= t.tasks[id].start {
						t.tasks[id].after = append(t.tasks[id].after, on)
					} else {
						t.left["waits that end before what they wait for"]++
					}
				}
			}
		}
	}
}

// gpuTask adds a piece of work. It follows its launch and the piece before it in its stream. It also follows the last end in another stream
// before its beginning, if that end was later.
func (t *timeline) gpuTask(p place) {
	e := t.at(p)
	k := task{span: e.span, op: e.name, event: e, thread: -1, stream: p.stream}
	ready := t.start
	if handed := t.submitted[p.stream][p.event]; handed.known {
		k.operator = handed.operator
		ready = handed.at
		if on := t.lastOf(handed.moment); on >= 0 {
			k.after = append(k.after, on)
		}
	}
	if e.args != nil { // of an execution trace: it is the operator
		of := *e
		of.cat = operator
		k.operator = &of
	}
	if p.event > 0 {
		before := t.byEvent[p.stream][p.event-1]
		ready = max(ready, t.tasks[before].end)
		k.after = append(k.after, before)
	}
	if other, ok := t.endedBefore(p, ready); ok {
		ready = t.tasks[other].end
		k.after = append(k.after, other)
	}
	k.start = max(k.start, ready, t.start)
	k.end = max(k.end, k.start)
	k.gap = k.start - ready
	t.byEvent[p.stream][p.event] = len(t.tasks)
	t.add(k)
	added := &t.tasks[len(t.tasks)-1]
	if handed := t.submitted[p.stream][p.event]; handed.known {
		added.step = t.stepAt(handed.at)
	} else if p.event < t.firstLaunched[p.stream] {
		added.step = beforeSteps
	}
}

// beforeSteps is the step of work that was launched before the recording.
const beforeSteps = -2

// endedBefore finds the work of another stream that ended last before this work began, and after a time.
func (t *timeline) endedBefore(p place, after int64) (id int, ok bool) {
	start := t.at(p).start
	for s := range t.streams {
		if s == p.stream {
			continue
		}
		events := t.streams[s].events
		behind, _ := slices.BinarySearchFunc(events, start, func(x event, at int64) int { return cmp.Compare(x.start, at) })
		for i := behind - 1; i >= 0 && i >= behind-2; i-- {
			if end := t.tasks[t.byEvent[s][i]].end; end > after && end <= start {
				after, id, ok = end, t.byEvent[s][i], true
			}
		}
	}
	return id, ok
}
