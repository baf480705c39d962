package recording

import (
	"cmp"
	"slices"
	"strings"
)

// A recording becomes tasks that start when all tasks before them have ended. timeline finds these tasks:
// each begins and ends as recorded, and there is no task while a thread or a stream waits.

// task is a piece of a thread's time, or work of a GPU.
type task struct {
	span            // without gap
	gap      int64  // before it, without a reason in the recording
	resized  *int64 // its time with other extents; nil means as recorded
	op       string
	event    *event // nil on a thread, but for an operator that computes there
	operator *event // that launched work of a GPU; nil means not known
	thread   int    // -1 for work of a GPU
	stream   int    // -1 on a thread
	step     int
	after    []int
}

// Operations of tasks of hosts.
const (
	hostWork        = "host"
	hostUnexplained = "host: unexplained"
	hostWait        = "host: wait"
)

// place is an event of a stream.
type place struct{ stream, event int }

// wait is when a thread did nothing until others had come so far.
type wait struct {
	span
	works   []place // of GPUs
	threads []moment
}

// moment is a time of a thread.
type moment struct {
	thread int
	at     int64
}

// submission is when a call had handed over its work.
type submission struct {
	moment
	operator *event
	known    bool
}

// timeline is a recording on its way to tasks.
type timeline struct {
	*recording
	submitted [][]submission // by stream and event
	cuts      [][]int64      // by thread: times at which its tasks end, since others wait for them
	waits     [][]wait       // by thread
	computed  [][]*event     // by thread: operators that compute there
	busy      [][]span       // by thread: operators and calls, joined
	explained [][]span       // by thread: these, annotations and functions of Python

	tasks    []task
	byThread [][]int // tasks by thread, in the order of time
	byEvent  [][]int // tasks by stream and event

	firstLaunched []int // by stream: the first event whose launch is known; 0 if no launch is
}

// newTimeline finds the tasks of a recording.
func newTimeline(r *recording) *timeline {
	n := len(r.threads)
	t := &timeline{recording: r, cuts: make([][]int64, n), waits: make([][]wait, n), computed: make([][]*event, n),
		busy: make([][]span, n), explained: make([][]span, n), byThread: make([][]int, n)}
	t.cover()
	t.findLaunches()
	t.findWaitsForGPUs()
	t.findHandovers()
	t.addHostTasks()
	t.addGPUTasks()
	return t
}

// cover finds when threads were busy, and when something in the recording explains their time.
func (t *timeline) cover() {
	for i := range t.threads {
		all := slices.Clone(t.threads[i].python)
		for _, e := range t.threads[i].events {
			switch {
			case e.cat != annotation:
				t.busy[i] = append(t.busy[i], e.span)
				all = append(all, e.span)
			case !strings.HasPrefix(e.name, stepPrefix):
				all = append(all, e.span)
			}
		}
		t.busy[i], t.explained[i] = joined(t.busy[i]), joined(all)
	}
}

// nest calls visit for each event of a thread with the operators around it, the outermost first.
func (th *thread) nest(visit func(e *event, around []*event)) {
	var open []*event
	for i := range th.events {
		e := &th.events[i]
		for len(open) > 0 && open[len(open)-1].end <= e.start {
			open = open[:len(open)-1]
		}
		visit(e, open)
		if e.cat == operator {
			open = append(open, e)
		}
	}
}

// findLaunches joins work of GPUs with its launch: the call and the operator around it. It also finds the operators that compute on a thread.
func (t *timeline) findLaunches() {
	works := map[int64][]place{}
	t.submitted = make([][]submission, len(t.streams))
	for s := range t.streams {
		t.submitted[s] = make([]submission, len(t.streams[s].events))
		for i, e := range t.streams[s].events {
			if e.link != 0 {
				works[e.link] = append(works[e.link], place{s, i})
			}
		}
	}
	for i := range t.threads {
		calls := map[*event]bool{} // operators around a call
		var candidates []*event
		t.threads[i].nest(func(e *event, around []*event) {
			if e.cat == call {
				if launched := works[e.link]; e.link != 0 && len(launched) > 0 {
					t.launch(i, e, around, launched)
				}
				for _, o := range around {
					calls[o] = true
				}
			}
			if e.cat == operator && e.hasWork() {
				candidates = append(candidates, e)
			}
		})
		for _, e := range computing(candidates, calls) {
			t.computed[i] = append(t.computed[i], e)
			t.cuts[i] = append(t.cuts[i], e.start, e.end)
		}
	}
}

// computing are the operators with known work that compute by themselves: they call no GPU, and those within them have no more than half of their work.
// So a product counts that copies an operand before, and of two operators for the same product the inner one. All of one thread come, by their start.
func computing(candidates []*event, calls map[*event]bool) (list []*event) {
	taken := make([]bool, len(candidates))
	for i, e := range slices.Backward(candidates) {
		flops, within, end := 0.0, false, i+1
		for ; end < len(candidates) && candidates[end].start < e.end; end++ {
			if taken[end] {
				w, _ := candidates[end].work()
				flops, within = flops+w.flops, true
			}
		}
		own, _ := e.work()
		if calls[e] || within && own.flops <= 2*flops {
			continue
		}
		clear(taken[i+1 : end])
		taken[i] = true
	}
	for i, e := range candidates {
		if taken[i] {
			list = append(list, e)
		}
	}
	return list
}

// launch notes when the work of a call was handed over: at the end of the call, or when the first of it began before. A
// call that returns after its copy, and found its stream busy, handed over at its begin and waited.
func (t *timeline) launch(thread int, e *event, around []*event, works []place) {
	at := e.end
	for _, w := range works {
		on := t.at(w)
		if on.cat == copyWork && on.returnedBy(e) {
			on.span = on.within(e.span) // as the host's clock has it
			busy := w.event > 0 && t.at(place{w.stream, w.event - 1}).end > e.start
			if busy || on.start == e.end {
				at = e.start
			}
		}
		at = min(at, on.start)
	}
	if at < e.start && e.start > t.start {
		t.left["pieces of work that begin before their launch"] += len(works)
		return
	}
	at = max(at, e.start)
	var of *event
	for _, o := range slices.Backward(around) {
		if of == nil || o.hasWork() {
			of = o
		}
		if o.hasWork() {
			break
		}
	}
	t.cuts[thread] = append(t.cuts[thread], at)
	for _, w := range works {
		t.submitted[w.stream][w.event] = submission{moment{thread, at}, of, true}
	}
}

// slack is how far the clocks of a host and its GPU may be apart at the end of a call that waits.
func (e *event) slack() int64 { return max(5_000, (e.end-e.start)/100) }

// findWaitsForGPUs finds calls that wait for work of GPUs: by their names, and calls for copies by their ends.
func (t *timeline) findWaitsForGPUs() {
	works := map[int64][]place{}
	for s := range t.streams {
		for i, e := range t.streams[s].events {
			if e.cat == copyWork && e.link != 0 {
				works[e.link] = append(works[e.link], place{s, i})
			}
		}
	}
	for i := range t.threads {
		for _, e := range t.threads[i].events {
			if e.cat != call {
				continue
			}
			if strings.Contains(e.name, "Synchronize") {
				t.addWait(i, e, t.awaited(e))
			} else if w := works[e.link]; e.link != 0 && len(w) == 1 {
				if t.at(w[0]).returnedBy(&e) {
					t.addWait(i, e, w)
				}
			}
		}
	}
}

// awaited lists what a call waits for: the last work of each stream that was handed over before the call and ended
// before it. A call that waits for one stream or event gets the last end of these, since the file names neither.
func (t *timeline) awaited(e event) (all []place) {
	for s := range t.streams {
		events := t.streams[s].events
		behind, _ := slices.BinarySearchFunc(events, e.end, func(x event, end int64) int { return cmp.Compare(x.start, end) })
		for i := behind - 1; i >= 0; i-- {
			handed := t.submitted[s][i]
			if events[i].end <= e.end+e.slack() && (!handed.known || handed.at <= e.start) {
				all = append(all, place{s, i})
				break
			}
		}
	}
	if strings.Contains(e.name, "DeviceSynchronize") || len(all) == 0 {
		return all
	}
	last := slices.MaxFunc(all, func(a, b place) int { return cmp.Compare(t.at(a).end, t.at(b).end) })
	return []place{last}
}

// returnedBy reports whether a copy ended within its call, by clocks that are a little apart. Nobody waits for a copy of pinned memory.
func (e *event) returnedBy(by *event) bool {
	return by.end > by.start && e.start > by.start && e.end <= by.end+by.slack() && !strings.Contains(e.name, "Pinned")
}

func (t *timeline) at(p place) *event { return &t.streams[p.stream].events[p.event] }

// addWait adds a wait for work of GPUs within a call.
func (t *timeline) addWait(thread int, e event, works []place) {
	until := e.start
	for _, w := range works {
		if w := t.at(w); w.end > e.end {
			w.span = w.within(e.span) // as the host's clock has it
		}
		until = max(until, min(t.at(w).end, e.end))
		if s := t.submitted[w.stream][w.event]; s.known && s.thread == thread {
			until = max(until, s.at)
		}
	}
	from := e.start
	for _, w := range works { // a copy is handed over by the call that waits for it
		if s := t.submitted[w.stream][w.event]; s.known && s.thread == thread && s.at > from && s.at <= until {
			from = s.at
		}
	}
	if len(works) > 0 {
		t.waits[thread] = append(t.waits[thread], wait{span: span{from, until}, works: works})
	}
}

// findHandovers finds when a thread waited for another one of its process. A thread with a gap waits for the thread whose work began and ended
// in the gap. That thread does nothing when the gap ends. So the thread of the backward pass takes over from its caller, and back.
func (t *timeline) findHandovers() {
	for i := range t.threads {
		from := t.start
		for _, b := range t.busy[i] {
			if from < b.start {
				t.handover(i, span{from, b.start})
			}
			from = b.end
		}
	}
}

func (t *timeline) handover(thread int, gap span) {
	best := moment{-1, gap.start}
	for u := range t.threads {
		if u == thread || t.threads[u].process != t.threads[thread].process {
			continue
		}
		busy := t.busy[u]
		next, _ := slices.BinarySearchFunc(busy, gap.end, func(b span, at int64) int { return cmp.Compare(b.end, at+1) })
		// busy[next] is the first that ends behind the gap.
		if next < len(busy) && busy[next].start < gap.end || next == 0 {
			continue
		}
		if last := busy[next-1]; last.end > best.at && last.start >= gap.start {
			best = moment{u, last.end}
		}
	}
	if best.thread < 0 {
		return
	}
	t.cuts[best.thread] = append(t.cuts[best.thread], best.at)
	t.waits[thread] = append(t.waits[thread], wait{span: span{gap.start, best.at}, threads: []moment{best}})
}
