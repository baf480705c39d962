package improve

import (
	"dahl/plan/problem"
	"dahl/platform"
	"dahl/schedule/place"
)

// transfers times what moves between memories: a piece goes to each memory where some of its readers are, once.
type transfers struct {
	*problem.Data
	*evaluator
	memories int
	at       []int64   // by step, piece and memory: when it is there; pending: an engine has not begun with it
	next     []int32   // by step, piece and memory: the entry of another piece that moves with it; -1 means none
	links    []int64   // by link and direction: when it is free
	engines  []engines // into each memory and then out of it; the last ones are none
	follows  follows
	batch    []copying  // of one task
	room     []*copying // for copies that wait, those in use first
	used     int
	least    []int64 // by memory, of one piece: by how many steps later, and at which place, its first reader there runs
	first    []int32 // by memory, of one piece: this reader
	reached  platform.MemorySet
	sent     platform.MemorySet // of one piece
	joules   float64            // of the step
}

const pending = -1

func newTransfers(e *evaluator, steps int) *transfers {
	p := e.platform
	n := steps * len(e.data.Pieces) * len(p.Memories)
	c := &transfers{Data: e.data, evaluator: e, memories: len(p.Memories), reached: p.NewMemorySet(), sent: p.NewMemorySet(), at: make([]int64, n), next: make([]int32, n),
		follows: follows{make([]int64, e.tasks), make([]int64, len(e.workers))}, least: make([]int64, len(p.Memories)), first: make([]int32, len(p.Memories)), links: make([]int64, 2*len(p.Links))}
	for m := range p.Memories {
		in, out := p.CopyEngines(platform.MemoryID(m))
		c.engines = append(c.engines, engines{free: make([]int64, in)}, engines{free: make([]int64, out)})
	}
	c.engines = append(c.engines, engines{})
	return c
}

// begin prepares a step. Before the first one everything goes from where it is at home to where it is read.
func (c *transfers) begin() {
	n := len(c.Pieces) * c.memories
	for i := int(c.step) * n; i < int(c.step+1)*n; i++ {
		c.at[i] = pending
	}
	c.joules = 0
	if c.step > 0 {
		return
	}
	c.used = 0
	clear(c.reached)
	clear(c.links)
	for i := range c.engines {
		c.engines[i].begin()
	}
	c.follows.find(c)
	c.send(int32(c.tasks), 0)
}

// memory is where the writer of a piece is. The one past the last task stands for what was there before the
// run.
func (c *transfers) memory(p *problem.Piece) platform.MemoryID {
	if int(p.Writer) == c.tasks {
		return p.Home
	}
	return c.in[p.Writer]
}

func (c *transfers) entry(piece, step int32) int32 {
	return (step*int32(len(c.Pieces)) + piece) * int32(c.memories)
}

// send lets what a task has written move as soon as it has ended. Pieces of one storage for one first reader move together.
func (c *transfers) send(writer int32, ended int64) {
	c.batch = c.batch[:0]
	for _, id := range c.Written[writer] {
		p := &c.Pieces[id]
		from, sent := c.memory(p), c.sent
		for _, r := range p.Readers {
			to, key := c.in[r.Of], int64(r.Back)<<32|int64(c.x.at[r.Of])
			if to == from || sent.Has(to) && c.least[to] <= key {
				continue
			}
			sent.Add(to)
			c.least[to], c.first[to] = key, r.Of
		}
		for to := range sent.All() {
			c.load(copying{since: ended, urgency: c.follows.of[c.first[to]], reader: c.least[to], written: c.step, read: c.step + int32(c.least[to]>>32), storage: p.Storage, from: from, to: to, last: to, bytes: p.Bytes, entry: c.entry(id, c.step) + int32(to)})
		}
		clear(sent)
	}
	for i := range c.batch {
		b := &c.batch[i]
		stops := c.platform.Stops(b.from, b.to)
		for i := len(stops) - 1; i >= 0; i-- {
			at := b.from
			if i > 0 {
				at = stops[i-1]
			}
			c.joules += float64(c.Ways[at][stops[i]].JoulesPerByte * float64(b.bytes))
		}
		b.to = stops[0]
		c.reached.Add(b.from)
		c.reached.Add(b.to)
		c.start(b)
	}
}

// load adds a piece to the batch.
func (c *transfers) load(of copying) {
	for k := range c.batch {
		if b := &c.batch[k]; b.storage == of.storage && b.to == of.to && (b.reader == of.reader || c.joins(b, &of)) {
			if of.reader < b.reader {
				b.reader, b.urgency = of.reader, of.urgency
			}
			b.bytes += of.bytes
			c.next[of.entry], b.entry = b.entry, of.entry
			return
		}
	}
	c.next[of.entry] = -1
	c.batch = append(c.batch, of)
}

// joins reports whether pieces for readers of one step go together.
func (c *transfers) joins(a, b *copying) bool {
	return a.read == b.read && len(c.platform.Stops(a.from, a.to)) == 1 && place.Joins(c.platform, a.from, a.to, a.bytes+b.bytes)
}

// start lets a copy wait for an engine if it needs one.
func (c *transfers) start(of *copying) {
	way := &c.Ways[of.from][of.to]
	if way.Engine < 0 && len(way.Shares) == 0 {
		c.move(of)
		return
	}
	if c.used == len(c.room) {
		c.room = append(c.room, new(copying))
	}
	waits := c.room[c.used]
	c.used++
	*waits = *of
	c.enginesOf(way).coming.Push(soonest{waits})
}

// arrived is when a memory has all that a task reads.
func (c *transfers) arrived(t int32) (at int64) {
	in := c.in[t]
	for _, r := range c.Reads[t] {
		p := &c.Pieces[r.Of]
		if r.Back > c.step || int(p.Writer) == c.tasks && c.step > 0 || c.memory(p) == in {
			continue
		}
		entry := c.entry(r.Of, c.step-r.Back) + int32(in)
		for c.at[entry] == pending {
			c.serve()
		}
		at = max(at, c.at[entry])
	}
	return at
}

// share is when a copy ends on links that others share with it. A link has so much left to move from before;
// the copy gets half of it until that is done or it has ended.
func (c *transfers) share(way *problem.Way, start, end, bytes int64) int64 {
	for _, s := range way.Shares {
		from, takes := start+way.LatencyNs, int64(s.NsPerByte*float64(bytes))
		left := max(0, c.links[s.Link]-from)
		end = max(end, from+takes+min(left, takes))
		c.links[s.Link] = from + left + takes
	}
	return end
}

// chunks is in how many parts something moves that passes the host's memory.
const chunks = 8

// move gives a copy to the engine that is free first.
func (c *transfers) move(of *copying) {
	way := &c.Ways[of.from][of.to]
	start, takes, free := of.since, way.Takes(of.bytes), c.enginesOf(way).first()
	if free != nil {
		start = max(start, *free)
	}
	end := c.share(way, start, start+takes, of.bytes)
	if free != nil {
		*free = end
	}
	if of.to == of.last {
		for entry := of.entry; entry >= 0; entry = c.next[entry] {
			c.at[entry] = end
		}
		return
	}
	// The second hop of a part overlaps the first hop of the next.
	next := c.platform.Stops(of.to, of.last)[0]
	on := &c.Ways[of.to][next]
	of.since = max(start, end+on.Takes(of.bytes/chunks)-on.Takes(of.bytes))
	of.from, of.to = of.to, next
	c.start(of)
}
