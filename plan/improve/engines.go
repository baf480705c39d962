package improve

import (
	"cmp"
	"math"

	"dahl/dag"
	"dahl/plan/problem"
	"dahl/platform"
	"dahl/schedule/ready"
)

// engines are those that can make the same copies. As in the lists of a decision (package place), they go through their copies step by step. A free one takes, of the
// ready copies, the copy for the earlier step, and of several that with the most urgent reader.
type engines struct {
	free   []int64             // when each is free; nil stands for ways that need none
	coming ready.Heap[soonest] // copies that no engine has looked at yet
	ready  ready.Heap[urgent]  // copies of one step that were ready when an engine last took one
}

// copying is a copy that waits for an engine.
type copying struct {
	since, takes   int64 // when it is ready, and for how long it moves alone
	urgency        int64 // of what reads it first: what follows the start of this reader takes so long
	reader         int64 // how many steps later the reader runs, then its place
	written, read  int32 // the steps of the writer and of the reader
	entry          int32 // of one of its pieces, in the last memory
	joules         float64
	storage        dag.BufferID
	from, to, last platform.MemoryID // last: where it goes on to; to: nowhere
	bytes          int64
}

// back is how many steps later the reader runs.
func (c *copying) back() int32 { return int32(c.reader >> 32) }

// urgent is a copy in the order in which engines take ready ones.
type urgent struct{ *copying }

func (c urgent) Before(d urgent) bool {
	switch {
	case c.read != d.read:
		return c.read < d.read
	case c.urgency != d.urgency:
		return c.urgency > d.urgency
	case c.since != d.since:
		return c.since < d.since
	}
	return c.named(d.copying)
}

// soonest is a copy in the order of steps, and of when copies are ready.
type soonest struct{ *copying }

func (c soonest) Before(d soonest) bool {
	switch {
	case c.written != d.written:
		return c.written < d.written
	case c.since != d.since:
		return c.since < d.since
	}
	return c.named(d.copying)
}

// named is the order of copies between which nothing else decides.
func (c *copying) named(d *copying) bool {
	return cmp.Or(cmp.Compare(c.reader, d.reader), cmp.Compare(c.storage, d.storage), cmp.Compare(c.to, d.to), cmp.Compare(c.entry, d.entry)) < 0
}

func (e *engines) begin() {
	clear(e.free)
	e.coming, e.ready = e.coming[:0], e.ready[:0]
}

// first is when an engine is free; nil where none is needed.
func (e *engines) first() (free *int64) {
	for l := range e.free {
		if free == nil || e.free[l] < *free {
			free = &e.free[l]
		}
	}
	return free
}

// starts is when the next copy does; never without one.
func (e *engines) starts() (at int64) {
	if free := e.first(); free != nil {
		at = *free
	}
	switch {
	case len(e.ready) > 0:
		return at
	case len(e.coming) > 0:
		return max(at, e.coming[0].since)
	}
	return math.MaxInt64
}

// take takes the next copy, which starts at some time.
func (e *engines) take(at int64) *copying {
	if len(e.ready) == 0 {
		e.ready.Push(urgent{e.coming.Pop().copying})
	}
	for step := e.ready[0].written; len(e.coming) > 0 && e.coming[0].written == step && e.coming[0].since <= at; {
		e.ready.Push(urgent{e.coming.Pop().copying})
	}
	return e.ready.Pop().copying
}

// enginesOf are the engines for a way.
func (c *transfers) enginesOf(way *problem.Way) *engines {
	if way.Engine < 0 {
		return &c.engines[len(c.engines)-1]
	}
	return &c.engines[way.Engine]
}

// serve starts the copy that starts first on any engine.
func (c *transfers) serve() {
	var next *engines
	first := int64(math.MaxInt64)
	for i := range c.engines {
		if at := c.engines[i].starts(); at < first {
			next, first = &c.engines[i], at
		}
	}
	c.move(next.take(first))
}
