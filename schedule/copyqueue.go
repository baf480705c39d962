package schedule

import (
	"cmp"
	"time"

	"dahl/platform"
	"dahl/schedule/ready"
)

// copyQueue holds the copies that wait, and the engines that carry them.
//
// The engines of a memory, in each direction, are those of its devices. The host's memory has
// none, and neither has a memory whose devices do not say how many they have. A copy takes an
// engine of its destination and one of its source, where they have some. A copy between two
// devices takes only an engine of its destination if its route does not pass the host's memory.
//
// Copies that somebody waits for start first: by step, then by the order of tasks, then by the
// order of requests. Prefetches for tasks that were given to a worker follow in the same order, and
// then those for tasks that are not ready, by an order of their own. A copy without room or engine holds up
// the copies behind it from the same source to the same destination, and no others.
type copyQueue struct {
	p       *Problem
	order   []int32   // by task
	turn    []int32   // by task: the order for those that are not ready; nil: nobody asks for them
	ways    []waiting // by source and destination
	used    []int32   // indices of the ways that have had a copy
	engines []engines // by memory
	tickets int64
}

// engines are the copy engines of a memory; 0 of them means unlimited.
type engines struct{ in, out, busyIn, busyOut int }

// waiting is a heap of copies from one memory to another.
type waiting struct {
	copies            ready.Heap[*flight]
	lines             lines
	takesIn, takesOut bool
	used              bool
}

func newCopyQueue(p *Problem, order []int32) *copyQueue {
	n := len(p.Platform.Memories)
	q := &copyQueue{p: p, order: order, ways: make([]waiting, n*n), engines: make([]engines, n)}
	host := p.Platform.HostMemory()
	for m := range q.engines {
		if platform.MemoryID(m) != host {
			q.engines[m].in, q.engines[m].out = p.Platform.CopyEngines(platform.MemoryID(m))
		}
	}
	lines := newLineMaker(p.Platform)
	for w := range q.ways {
		from, to := platform.MemoryID(w/n), platform.MemoryID(w%n)
		in, out := p.Platform.EnginesTaken(from, to)
		q.ways[w] = waiting{takesIn: in, takesOut: out, lines: lines.of(from, to, out)}
	}
	return q
}

func (q *copyQueue) way(from, to platform.MemoryID) *waiting {
	return &q.ways[int(from)*len(q.engines)+int(to)]
}

func (q *copyQueue) add(f *flight) {
	f.ticket, f.place = q.tickets, q.order[f.For]
	if f.urgency == foreseeing {
		f.place = q.turn[f.For]
	}
	q.tickets++
	w := q.way(f.From, f.To)
	if !w.used {
		w.used = true
		q.used = append(q.used, int32(int(f.From)*len(q.engines)+int(f.To)))
	}
	w.copies.Push(f)
}

// take removes the first copy that has its engines and for which fits holds; nil: there is none.
func (q *copyQueue) take(fits func(*flight) bool) *flight {
	var best *waiting
	for _, k := range q.used {
		w := &q.ways[k]
		if len(w.copies) == 0 || !q.free(w, w.copies[0]) || !fits(w.copies[0]) {
			continue
		}
		if best == nil || w.copies[0].Before(best.copies[0]) {
			best = w
		}
	}
	if best == nil {
		return nil
	}
	f := best.copies.Pop()
	best.lines.wait(f, -1)
	return f
}

// resize adds bytes to a waiting copy.
func (q *copyQueue) resize(f *flight, bytes int64) {
	lines := q.way(f.From, f.To).lines
	lines.wait(f, -1)
	f.Bytes += bytes
	lines.wait(f, 1)
}

// start and end bracket the time during which a copy has its engines.
func (q *copyQueue) start(f *flight, now time.Duration) {
	q.occupy(f.From, f.To, 1)
	q.way(f.From, f.To).lines.start(f, now)
}

func (q *copyQueue) end(f *flight) {
	q.occupy(f.From, f.To, -1)
	q.way(f.From, f.To).lines.end()
}

// inTurn is how many of so many copies on one way run one after the other, since engines are few.
func (q *copyQueue) inTurn(copies int, from, to platform.MemoryID) int {
	w, atOnce := q.way(from, to), copies
	if w.takesIn {
		atOnce = min(atOnce, q.engines[to].in)
	}
	if w.takesOut {
		atOnce = min(atOnce, q.engines[from].out)
	}
	return (copies + atOnce - 1) / max(1, atOnce)
}

func (q *copyQueue) free(w *waiting, f *flight) bool {
	in, out := &q.engines[f.To], &q.engines[f.From]
	return (!w.takesIn || in.busyIn < in.in) && (!w.takesOut || out.busyOut < out.out)
}

// occupy takes the engines of a copy (1) or gives them back (-1).
func (q *copyQueue) occupy(from, to platform.MemoryID, n int) {
	w := q.way(from, to)
	if w.takesIn {
		q.engines[to].busyIn += n
	}
	if w.takesOut {
		q.engines[from].busyOut += n
	}
}

// Before is the order in which copies start.
func (f *flight) Before(g *flight) bool {
	return cmp.Or(cmp.Compare(f.early(), g.early()), cmp.Compare(f.Step, g.Step),
		cmp.Compare(f.place, g.place), cmp.Compare(f.ticket, g.ticket)) < 0
}

// early is 0 for a copy that somebody waits for, and grows with the time that others have.
func (f *flight) early() int { return max(0, int(f.urgency)-int(evicting)) }

// expected is 0 for a copy that is expected to start before the early ones.
func (f *flight) expected() int {
	if f.awaited {
		return 0
	}
	return min(1, f.early())
}
