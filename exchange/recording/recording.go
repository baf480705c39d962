package recording

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"dahl/exchange/ranks"
)

// category tells operators, calls and work of GPUs apart.
type category uint8

const (
	operator   category = iota // an operator of PyTorch on a host thread
	call                       // a call of a GPU's runtime or driver
	annotation                 // a range that the program or PyTorch named
	kernel                     // work of a GPU
	copyWork                   // a copy by a GPU
	setWork                    // a GPU fills memory
)

// span is a range of time, in nanoseconds since an instant that all events of a file share.
type span struct{ start, end int64 }

// event is an entry of a recording.
type event struct {
	span
	name     string
	cat      category
	link     int64 // joins a call with the work that it launched; 0 is none
	external int64 // joins an operator with the calls and the work that it made; 0 is none
	record   int64 // number of an operator in an execution trace; 0 is none
	bytes    int64 // that a copy moves
	args     *operands
	exchange *ranks.Exchange
}

// thread is a thread of a host.
type thread struct {
	process, id string
	events      []event // by start, an outer one before those within it
	python      []span  // when a function of Python was on the stack, joined
}

// stream is a queue of work of a GPU.
type stream struct {
	device int // as the file numbers it
	id     string
	events []event // by start
}

// gpu is a GPU as the file describes it.
type gpu struct {
	ID          int    `json:"id"`
	Name        string `json:"name"`
	MemoryBytes int64  `json:"totalGlobalMem"`
}

// step is a step of a training, by the host's clock.
type step struct {
	name string
	span
}

// stepWord begins the name of a step.
const stepWord = "step "

// counts say how much of something there was, by its name.
type counts map[string]int

// recording has the events of one rank.
type recording struct {
	file        string
	rank, world int // world is 0 where the file does not say
	gpus        []gpu
	threads     []thread
	streams     []stream
	steps       []step // in the order of time, without gaps between them
	span               // of all steps
	left        counts // out
	part        *part  // of the file that is kept
	room        *Room
	entry       int64 // bytes in the file of the event that is being read
	byRoofline  bool  // no time was recorded: operators take their time by the roofline
}

// orderEvents puts the events of all threads and streams into the order of time.
func (r *recording) orderEvents() {
	order := func(a, b event) int {
		return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(b.end, a.end), cmp.Compare(b.cat, a.cat))
	}
	for i := range r.threads {
		slices.SortStableFunc(r.threads[i].events, order)
		r.threads[i].python = joined(r.threads[i].python)
	}
	for i := range r.streams {
		slices.SortStableFunc(r.streams[i].events, order)
	}
}

// findSteps divides the time into steps: by the profiler's annotations, else at the ends of the optimiser's updates. A recording
// without either is one step.
func (r *recording) findSteps() {
	var marked, updates []step
	for i := range r.threads {
		for _, e := range r.threads[i].events {
			switch {
			case e.cat != annotation:
			case strings.HasPrefix(e.name, stepPrefix):
				marked = append(marked, step{stepWord + e.name[len(stepPrefix):], e.span})
			case strings.HasPrefix(e.name, updatePrefix):
				updates = append(updates, step{"", e.span})
			}
		}
	}
	byStart := func(a, b step) int { return cmp.Compare(a.start, b.start) }
	slices.SortStableFunc(marked, byStart)
	slices.SortStableFunc(updates, byStart)
	at := r.start
	add := func(name string, until int64) {
		if until > at {
			r.steps = append(r.steps, step{name, span{at, until}})
			at = until
		}
	}
	if len(marked) > 0 {
		at = marked[0].start
		for i, s := range marked {
			if i+1 < len(marked) {
				s.end = marked[i+1].start
			}
			add(s.name, s.end)
		}
	} else {
		for i, u := range updates {
			add(stepWord+strconv.Itoa(i+1), u.end)
		}
	}
	if len(r.steps) == 0 {
		add("the recording", max(r.end, at+1))
	}
	r.crop(span{r.steps[0].start, at})
}

// crop leaves out all work of hosts outside a range, and work of GPUs from launches behind it.
func (r *recording) crop(to span) {
	late := map[int64]bool{}
	for i := range r.threads {
		kept := r.threads[i].events[:0]
		for _, e := range r.threads[i].events {
			if e.cat == call && e.start >= to.end {
				late[e.link] = true
			}
			if e.start < to.end && e.end > to.start {
				e.span = e.within(to)
				kept = append(kept, e)
			} else if e.cat == operator {
				r.left["operators before and behind the steps"]++
			}
		}
		r.threads[i].events = kept
	}
	for i := range r.streams {
		r.streams[i].events = slices.DeleteFunc(r.streams[i].events, func(e event) bool {
			return e.link != 0 && late[e.link] || e.end <= to.start
		})
	}
	r.span = to
}

// within is the part of a span in another one that it touches.
func (s span) within(o span) span {
	return span{min(max(s.start, o.start), o.end), max(min(s.end, o.end), o.start)}
}

// stepAt is the step at a time.
func (r *recording) stepAt(t int64) int {
	i, _ := slices.BinarySearchFunc(r.steps, t, func(s step, t int64) int {
		if s.end <= t {
			return -1
		}
		return 1
	})
	return min(i, len(r.steps)-1)
}

// joined unites spans that overlap or touch, and puts them into the order of time.
func joined(spans []span) []span {
	slices.SortFunc(spans, func(a, b span) int { return cmp.Compare(a.start, b.start) })
	out := spans[:0]
	for _, s := range spans {
		if n := len(out); n > 0 && s.start <= out[n-1].end {
			out[n-1].end = max(out[n-1].end, s.end)
			continue
		}
		out = append(out, s)
	}
	return out
}

// covered is how much of a span lies in joined spans.
func (s span) covered(in []span) (ns int64) {
	at, _ := slices.BinarySearchFunc(in, s.start, func(x span, start int64) int { return cmp.Compare(x.end, start) })
	for ; at < len(in) && in[at].start < s.end; at++ {
		ns += max(0, min(s.end, in[at].end)-max(s.start, in[at].start))
	}
	return ns
}
