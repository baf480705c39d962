package improve

import (
	"dahl/plan/problem"
	"dahl/platform"
	"dahl/schedule/place"
)

// transfers times what moves between memories: a piece goes to each memory where some of its readers are, once. All steps of a point move the same.
type transfers struct {
	*problem.Data
	*evaluator
	memories int
	copies   rows[copying] // by writer
	needs    rows[need]    // by task
	at       []int64       // by step, piece and memory: when it is there; pending: an engine has not begun with it
	next     []int32       // by piece and memory: the entry of another piece that moves with it; -1 means none
	links    []int64       // by link and direction: when it is free
	engines  []engines     // into each memory and then out of it; the last ones are none
	follows  follows
	room     []*copying // for copies that wait, those in use first
	used     int
	least    []int64 // by memory, of one piece: by how many steps later, and at which place, its first reader there runs
	first    []int32 // by memory, of one piece: this reader
	reached  platform.MemorySet
	sent     platform.MemorySet // of one piece
	joules   float64            // of the step
}

const pending = -1

// need is a piece in the memory of a task that reads it, written some steps before.
type need struct {
	entry, back int32
	initial     bool // it was there before the run
}

// rows are lists by task, which are filled one after the other.
type rows[T any] struct {
	all        []T
	start, end []int32
}

func newRows[T any](n int) rows[T] { return rows[T]{start: make([]int32, n), end: make([]int32, n)} }

func (r *rows[T]) of(t int32) []T { return r.all[r.start[t]:r.end[t]] }

func newTransfers(e *evaluator, steps int) *transfers {
	p := e.platform
	n := len(e.data.Pieces) * len(p.Memories)
	c := &transfers{Data: e.data, evaluator: e, memories: len(p.Memories), copies: newRows[copying](e.tasks + 1), needs: newRows[need](e.tasks), reached: p.NewMemorySet(), sent: p.NewMemorySet(),
		at: make([]int64, steps*n), next: make([]int32, n), follows: follows{make([]int64, e.tasks), make([]int64, len(e.workers))},
		least: make([]int64, len(p.Memories)), first: make([]int32, len(p.Memories)), links: make([]int64, 2*len(p.Links))}
	for m := range p.Memories {
		in, out := p.CopyEngines(platform.MemoryID(m))
		c.engines = append(c.engines, engines{free: make([]int64, in)}, engines{free: make([]int64, out)})
	}
	c.engines = append(c.engines, engines{})
	return c
}

// begin prepares a step. Before the first one everything goes from where it is at home to where it is read.
func (c *transfers) begin() {
	of := c.at[int(c.step)*len(c.next):][:len(c.next)]
	for i := range of {
		of[i] = pending
	}
	c.joules = 0
	if c.step > 0 {
		return
	}
	c.used, c.copies.all, c.needs.all = 0, c.copies.all[:0], c.needs.all[:0]
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

func (c *transfers) entry(piece int32, in platform.MemoryID) int32 {
	return piece*int32(c.memories) + int32(in)
}

// before is the place of an entry in the times of some steps before.
func (c *transfers) before(entry, steps int32) int { return int(c.step-steps)*len(c.next) + int(entry) }

// send lets what a task has written move as soon as it has ended.
func (c *transfers) send(writer int32, ended int64) {
	if c.step == 0 {
		c.findCopies(writer)
	}
	for _, of := range c.copies.of(writer) {
		of.since, of.written, of.read = ended, c.step, c.step+of.back()
		c.joules += of.joules
		c.start(&of)
	}
}

// findCopies finds what moves after a task. Pieces of one storage for one first reader move together.
func (c *transfers) findCopies(writer int32) {
	c.copies.start[writer] = int32(len(c.copies.all))
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
			c.load(writer, copying{urgency: c.follows.of[c.first[to]], reader: c.least[to], storage: p.Storage, from: from, to: to, last: to, bytes: p.Bytes, entry: c.entry(id, to)})
		}
		clear(sent)
	}
	c.copies.end[writer] = int32(len(c.copies.all))
	for i := range c.copies.of(writer) {
		of := &c.copies.of(writer)[i]
		at := of.from
		for _, stop := range c.platform.Stops(of.from, of.to) {
			of.joules += float64(c.Ways[at][stop].JoulesPerByte * float64(of.bytes))
			at = stop
		}
		of.to = c.platform.Stops(of.from, of.to)[0]
		of.takes = c.Ways[of.from][of.to].Takes(of.bytes)
		c.reached.Add(of.from)
		c.reached.Add(of.to)
	}
}

// load adds a piece to the copies after a task.
func (c *transfers) load(writer int32, of copying) {
	after := c.copies.all[c.copies.start[writer]:]
	for k := range after {
		if b := &after[k]; b.storage == of.storage && b.to == of.to && (b.reader == of.reader || c.joins(b, &of)) {
			if of.reader < b.reader {
				b.reader, b.urgency = of.reader, of.urgency
			}
			b.bytes += of.bytes
			c.next[of.entry], b.entry = b.entry, of.entry
			return
		}
	}
	c.next[of.entry] = -1
	c.copies.all = append(c.copies.all, of)
}

// joins reports whether pieces for readers of one step go together.
func (c *transfers) joins(a, b *copying) bool {
	return a.back() == b.back() && len(c.platform.Stops(a.from, a.to)) == 1 && place.Joins(c.platform, a.from, a.to, a.bytes+b.bytes)
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
	if c.step == 0 {
		c.findNeeds(t)
	}
	for _, of := range c.needs.of(t) {
		if of.back > c.step || of.initial && c.step > 0 {
			continue
		}
		entry := c.before(of.entry, of.back)
		for c.at[entry] == pending {
			c.serve()
		}
		at = max(at, c.at[entry])
	}
	return at
}

// findNeeds finds what moves to a task.
func (c *transfers) findNeeds(t int32) {
	c.needs.start[t] = int32(len(c.needs.all))
	for _, r := range c.Reads[t] {
		if p := &c.Pieces[r.Of]; c.memory(p) != c.in[t] {
			c.needs.all = append(c.needs.all, need{c.entry(r.Of, c.in[t]), r.Back, int(p.Writer) == c.tasks})
		}
	}
	c.needs.end[t] = int32(len(c.needs.all))
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
	start, free := of.since, c.enginesOf(way).first()
	if free != nil {
		start = max(start, *free)
	}
	end := c.share(way, start, start+of.takes, of.bytes)
	if free != nil {
		*free = end
	}
	if of.to == of.last {
		there := c.at[int(of.written)*len(c.next):]
		for entry := of.entry; entry >= 0; entry = c.next[entry] {
			there[entry] = end
		}
		return
	}
	// The second hop of a part overlaps the first hop of the next.
	next := c.platform.Stops(of.to, of.last)[0]
	on := &c.Ways[of.to][next]
	of.since = max(start, end+on.Takes(of.bytes/chunks)-on.Takes(of.bytes))
	of.from, of.to, of.takes = of.to, next, on.Takes(of.bytes)
	c.start(of)
}
