package improve

import (
	"cmp"
	"slices"

	"dahl/dag"
	"dahl/platform"
	"dahl/schedule/ready"
)

// copies times what moves between memories. An engine takes what has been ready longest, and of that what is read
// first, as a decision estimates it. Links count as free.
type copies struct {
	*spread
	*evaluator
	at      []int64   // by step, piece and memory: when it is there; pending: an engine has not begun with it
	lanes   [][]int64 // of engines, into each memory and then out of it: when each is free
	queue   ready.Heap[copying]
	batch   []copying // of one task
	reached uint64    // memories
	joules  float64   // of the step
}

const pending = -1

// copying is a copy that waits for an engine.
type copying struct {
	since    int64
	reader   int64 // what reads it first: its step, then its place
	storage  dag.BufferID
	from, to platform.MemoryID
	last     platform.MemoryID // where it goes on to; to: nowhere
	bytes    int64
	pieces   []int32 // entries of at, of memory 0
}

// Before is the order in which engines take copies.
func (c copying) Before(d copying) bool {
	return cmp.Or(cmp.Compare(c.since, d.since), cmp.Compare(c.reader, d.reader), cmp.Compare(c.storage, d.storage), cmp.Compare(c.to, d.to)) < 0
}

func newCopies(e *evaluator, steps int) *copies {
	s := e.spread
	c := &copies{spread: s, evaluator: e, at: make([]int64, steps*len(s.pieces)*s.memories)}
	for _, of := range s.engines {
		c.lanes = append(c.lanes, make([]int64, of.in), make([]int64, of.out))
	}
	return c
}

// begin prepares a step. Before the first one everything goes from where it is at home to where it is read.
func (c *copies) begin() {
	n := len(c.pieces) * c.memories
	for i := int(c.step) * n; i < int(c.step+1)*n; i++ {
		c.at[i] = pending
	}
	c.joules = 0
	if c.step > 0 {
		return
	}
	c.queue, c.reached = c.queue[:0], 0
	for _, lanes := range c.lanes {
		clear(lanes)
	}
	c.send(int32(c.tasks), 0)
}

// memory is where a task writes. The one past the last stands for what was there before the run.
func (c *copies) memory(writer int32, p *piece) platform.MemoryID {
	if int(writer) == c.tasks {
		return p.home
	}
	return c.workers[c.x.worker[writer]].memory
}

// send lets what a task has written move as soon as it has ended. What is of one storage and for one reader first
// moves together.
func (c *copies) send(writer int32, ended int64) {
	c.batch = c.batch[:0]
	for _, id := range c.written[writer] {
		p := &c.pieces[id]
		from, sent := c.memory(writer, p), uint64(0)
		for _, r := range p.readers {
			to := c.workers[c.x.worker[r.of]].memory
			if to == from || sent&(1<<to) != 0 {
				continue
			}
			sent |= 1 << to
			c.load(copying{since: ended, reader: c.first(p, to), storage: p.storage, from: from, to: to, bytes: p.bytes}, c.entry(id, c.step))
		}
	}
	for _, b := range c.batch {
		b.last = b.to
		if host := c.platform.HostMemory(); c.platform.Passes(b.from, b.to, host) {
			b.to = host
			c.joules += float64(c.perByte[host][b.last] * float64(b.bytes))
		}
		c.joules += float64(c.perByte[b.from][b.to] * float64(b.bytes))
		c.reached |= 1<<b.from | 1<<b.to
		c.queue.Push(b)
	}
}

func (c *copies) entry(piece, step int32) int32 {
	return (step*int32(len(c.pieces)) + piece) * int32(c.memories)
}

// first is the reader of a piece that comes first in a memory.
func (c *copies) first(p *piece, in platform.MemoryID) int64 {
	least := int64(-1)
	for _, r := range p.readers {
		if key := int64(r.back)<<32 | int64(c.x.at[r.of]); c.workers[c.x.worker[r.of]].memory == in && (least < 0 || key < least) {
			least = key
		}
	}
	return least
}

// load adds a piece to the batch.
func (c *copies) load(like copying, entry int32) {
	k := slices.IndexFunc(c.batch, func(b copying) bool { return b.storage == like.storage && b.to == like.to && b.reader == like.reader })
	if k < 0 {
		c.batch = append(c.batch, like)
		k = len(c.batch) - 1
	} else {
		c.batch[k].bytes += like.bytes
	}
	c.batch[k].pieces = append(c.batch[k].pieces, entry)
}

// arrived is when a memory has all that a task reads.
func (c *copies) arrived(t int32, in platform.MemoryID) (at int64) {
	for _, r := range c.reads[t] {
		p := &c.pieces[r.of]
		if r.back > c.step || int(p.writer) == c.tasks && c.step > 0 || c.memory(p.writer, p) == in {
			continue
		}
		entry := c.entry(r.of, c.step-r.back) + int32(in)
		for c.at[entry] == pending {
			c.move(c.queue.Pop())
		}
		at = max(at, c.at[entry])
	}
	return at
}

// parts is in how many parts something moves that passes the host's memory.
const parts = 8

// move gives a copy to the engine that is free first.
func (c *copies) move(of copying) {
	p := c.platform
	takes := int64(p.RouteTime(of.from, of.to, of.bytes))
	start := of.since
	if lanes := c.lanesOf(of.from, of.to); len(lanes) > 0 {
		best := 0
		for l := range lanes {
			if lanes[l] < lanes[best] {
				best = l
			}
		}
		start = max(start, lanes[best])
		lanes[best] = start + takes
	}
	if of.to == of.last {
		for _, entry := range of.pieces {
			c.at[entry+int32(of.to)] = start + takes
		}
		return
	}
	// The second hop of a part runs beside the first hop of the next.
	second, part := int64(p.RouteTime(of.to, of.last, of.bytes)), int64(p.RouteTime(of.to, of.last, of.bytes/parts))
	of.since = max(start, start+takes+part-second)
	of.from, of.to = of.to, of.last
	c.queue.Push(of)
}

// lanesOf are the engines that can make a copy; none: it needs none.
func (c *copies) lanesOf(from, to platform.MemoryID) []int64 {
	in, out := c.platform.EnginesTaken(from, to)
	switch {
	case in:
		return c.lanes[2*to]
	case out:
		return c.lanes[2*from+1]
	}
	return nil
}
