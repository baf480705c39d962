package schedule

import (
	"fmt"
	"time"

	"dahl/dag"
	"dahl/platform"
	"dahl/schedule/place"
)

// copies are the movements that were asked for and have not arrived. Each moves atoms of one
// storage from one memory to another, for one task. A copy waits for its engines and for room at
// its destination.
type copies struct {
	p        *Problem
	resident *residency
	inFlight []*flight // by CopyID; entries are reused
	free     []CopyID
	carrying map[delivery]CopyID
	batch    []CopyID // copies asked for together, so that atoms of one storage go together
	queue    *copyQueue
	arrived  []time.Duration // by atom and memory: when the atom last came there
}

type flight struct {
	Transfer
	id      CopyID
	urgency urgency
	place   int32 // of the task in the order of tasks
	ticket  int64 // position in the order of requests
	awaited bool  // a prefetch for a task that its worker is about to take
}

// delivery is an atom and the memory to which a copy brings it.
type delivery struct {
	atom   int32
	memory platform.MemoryID
}

func newCopies(p *Problem, r *residency, order []int32) *copies {
	c := &copies{p: p, resident: r, carrying: map[delivery]CopyID{},
		arrived: make([]time.Duration, p.Graph.NumAtoms()*len(p.Platform.Memories))}
	c.queue = newCopyQueue(p, order)
	return c
}

// fetch asks for the atoms that an instance reads and a memory lacks.
func (c *copies) fetch(i dag.Instance, m platform.MemoryID, why urgency) (err error) {
	c.batch = c.batch[:0]
	c.resident.missing(i.Task, m, func(atom int32, regionBytes int64) {
		if err == nil {
			err = c.want(i, atom, m, regionBytes, why)
		}
	})
	return err
}

// want asks for an atom at a memory that lacks it, as part of a region of regionBytes. It does
// nothing if a copy that is as urgent already brings the atom.
func (c *copies) want(i dag.Instance, atom int32, m platform.MemoryID, regionBytes int64, why urgency) error {
	if c.resident.valid[atom] == 0 {
		g := c.p.Graph
		return fmt.Errorf("task %q: it reads buffer %q, which nothing has written; give the buffer a home",
			g.Tasks[i.Task].Name, g.Buffers[g.AtomStorage(dag.AtomID(atom))].Name)
	}
	return c.ask(i, atom, c.resident.source(atom, m, regionBytes), m, why)
}

// ask does the same from a given source. It takes the atom over from a less urgent copy that has
// not started. It also takes an eviction over from one out of another memory, since that one is
// called off when the atom need not leave there any more.
func (c *copies) ask(i dag.Instance, atom int32, from, to platform.MemoryID, why urgency) error {
	r, key, bit := c.resident, delivery{atom, to}, uint64(1)<<to
	if r.arriving[atom]&bit != 0 {
		return nil
	}
	bytes := r.bytes(atom)
	if r.wanted[atom]&bit != 0 {
		other := c.inFlight[c.carrying[key]]
		if stale := why == evicting && other.urgency == evicting && other.From != from; !stale && other.urgency <= why {
			return nil
		}
		c.queue.resize(other, -bytes)
	}
	id, err := c.batchCopy(i, c.p.Graph.AtomStorage(dag.AtomID(atom)), from, to, why)
	if err != nil {
		return err
	}
	f := c.inFlight[id]
	f.Atoms = append(f.Atoms, atom)
	c.queue.resize(f, bytes)
	r.wanted[atom] |= bit
	c.carrying[key] = id
	return nil
}

// await marks the copies of the batch as awaited.
func (c *copies) await() {
	for _, id := range c.batch {
		f := c.inFlight[id]
		lines := c.queue.way(f.From, f.To).lines
		lines.wait(f, -1)
		f.awaited = true
		lines.wait(f, 1)
	}
}

// callOff takes atoms back from the prefetches for an instance that will run at another memory.
func (c *copies) callOff(i dag.Instance, m platform.MemoryID) {
	r, bit := c.resident, uint64(1)<<m
	for id, f := range c.inFlight {
		if f.For != i.Task || f.Step != i.Step || f.To != m || f.Reason != place.ReasonPrefetch {
			continue
		}
		for _, a := range f.Atoms {
			if key := (delivery{a, m}); r.wanted[a]&bit != 0 && c.carrying[key] == CopyID(id) {
				r.wanted[a] &^= bit
				delete(c.carrying, key)
				c.queue.resize(f, -r.bytes(a))
			}
		}
	}
}

// urgency says what a copy is for. Copies that somebody waits for come first. An eviction is
// called off when the atom is needed again, so a copy for a task does not rely on one.
type urgency uint8

const (
	taking     urgency = iota // for a task that its worker has taken
	evicting                  // to make room
	expecting                 // for a task that was given to a worker
	foreseeing                // for a task that is not ready
)

func (u urgency) reason() place.Reason {
	return [...]place.Reason{place.ReasonFetch, place.ReasonEvict, place.ReasonPrefetch, place.ReasonPrefetch}[u]
}

// batchCopy finds or opens the copy of this batch for a storage, a source and a destination.
func (c *copies) batchCopy(i dag.Instance, storage dag.BufferID, from, to platform.MemoryID, why urgency) (CopyID, error) {
	for _, id := range c.batch {
		if f := c.inFlight[id]; f.Buffer == storage && f.From == from && f.To == to {
			return id, nil
		}
	}
	if _, ok := c.p.Platform.Route(from, to); !ok {
		g, ms := c.p.Graph, c.p.Platform.Memories
		return 0, fmt.Errorf("task %q: buffer %q has to move from memory %q to %q, and platform %q has no route between them",
			g.Tasks[i.Task].Name, g.Buffers[storage].Name, ms[from].Name, ms[to].Name, c.p.Platform.Name)
	}
	id := CopyID(len(c.inFlight))
	if n := len(c.free); n > 0 {
		id, c.free = c.free[n-1], c.free[:n-1]
	} else {
		c.inFlight = append(c.inFlight, &flight{id: id})
	}
	f := c.inFlight[id]
	f.urgency, f.awaited = why, false
	f.Transfer = Transfer{Buffer: storage, Atoms: f.Atoms[:0], From: from, To: to, For: i.Task, Step: i.Step, Reason: why.reason()}
	c.batch = append(c.batch, id)
	c.queue.add(f)
	return id, nil
}

// next starts the most urgent copy that has its engines and room; ok is false when there is none.
// From now on its bytes count at its destination.
func (c *copies) next(now time.Duration) (id CopyID, ok bool, err error) {
	for {
		f := c.queue.take(c.fits)
		if f == nil {
			return 0, false, nil
		}
		if err := c.settleSource(f); err != nil {
			return 0, false, err
		}
		if len(f.Atoms) == 0 {
			c.free = append(c.free, f.id)
			continue
		}
		c.start(f, now)
		if c.resident.evictors[f.To] == nil {
			if err := c.resident.overfull(f.To); err != nil {
				return 0, false, fmt.Errorf("task %q: %w", c.p.Graph.Tasks[f.For].Name, err)
			}
		}
		return f.id, true, nil
	}
}

// fits reports whether the destination has room for a copy now. A prefetch takes only bytes that
// are promised to nobody else. For a task that is not ready it leaves the way to others.
func (c *copies) fits(f *flight) bool {
	early := f.Reason == place.ReasonPrefetch
	evictor := c.resident.evictors[f.To]
	switch {
	case !c.resident.shared.still(f.To, f.Buffer), f.urgency == foreseeing && !c.queue.way(f.From, f.To).lines.idle():
		return false
	case evictor == nil:
		return !early || c.resident.fits(f.To, f.Bytes)
	case !evictor.clear(f.Buffer):
		return false
	case early:
		return f.Bytes <= evictor.free()-evictor.reserved && !evictor.claimed(f.Buffer)
	}
	return f.Bytes <= evictor.free()
}

// settleSource updates a copy that is about to start. It drops atoms that the copy need not bring
// any more, and asks another memory for atoms that its source has evicted.
func (c *copies) settleSource(f *flight) error {
	c.batch = c.batch[:0]
	r, kept := c.resident, f.Atoms[:0]
	f.Bytes = 0
	for _, a := range f.Atoms {
		key, bit := delivery{a, f.To}, uint64(1)<<f.To
		if r.wanted[a]&bit == 0 || c.carrying[key] != f.id {
			continue // overwritten or freed meanwhile, or another copy has taken it over
		}
		nearer := f.urgency == foreseeing && r.source(a, f.To, r.bytes(a)) != f.From // since it was asked for
		if f.Reason != place.ReasonEvict && r.valid[a]&(1<<f.From) != 0 && !nearer || f.Reason == place.ReasonEvict && r.evictors[f.From].state[a]&isLeaving != 0 {
			kept = append(kept, a)
			f.Bytes += r.bytes(a)
			continue
		}
		r.wanted[a] &^= bit
		delete(c.carrying, key)
		if f.Reason == place.ReasonEvict {
			continue // called off
		}
		if err := c.want(dag.Instance{Task: f.For, Step: f.Step}, a, f.To, r.bytes(a), f.urgency); err != nil {
			return err
		}
	}
	f.Atoms = kept
	return nil
}

func (c *copies) start(f *flight, now time.Duration) {
	c.queue.start(f, now)
	r := c.resident
	r.shared.touch(f, 1)
	for _, a := range f.Atoms {
		r.wanted[a] &^= 1 << f.To
		r.take(a, f.To)
		r.arriving[a] |= 1 << f.To
		if evictor := r.evictors[f.From]; evictor != nil {
			evictor.departs(a)
		}
	}
}

// arrive makes the atoms of a copy valid at its destination and frees the copy's ID.
func (c *copies) arrive(id CopyID, at time.Duration) {
	f, r := c.inFlight[id], c.resident
	c.queue.end(f)
	r.shared.touch(f, -1)
	for _, a := range f.Atoms {
		key := delivery{a, f.To}
		if c.carrying[key] == id && r.arriving[a]&(1<<f.To) != 0 { // else overwritten or freed meanwhile
			r.arriving[a] &^= 1 << f.To
			r.valid[a] |= 1 << f.To
			c.arrived[c.at(a, f.To)] = at
			delete(c.carrying, key)
			if evictor := r.evictors[f.To]; evictor != nil {
				evictor.arrived(a, f.Reason == place.ReasonPrefetch)
			}
		}
		if evictor := r.evictors[f.From]; evictor != nil {
			evictor.departed(a)
		}
	}
	c.free = append(c.free, id)
}

func (c *copies) at(atom int32, m platform.MemoryID) int {
	return int(atom)*len(c.p.Platform.Memories) + int(m)
}

// lastArrival is when the last operand of a task came to a memory.
func (c *copies) lastArrival(t dag.TaskID, m platform.MemoryID) time.Duration {
	var last time.Duration
	for i, a := range c.p.Graph.Tasks[t].Accesses {
		if !a.Mode.Reads() {
			continue
		}
		for _, atom := range c.p.Graph.Atoms(t, i) {
			last = max(last, c.arrived[c.at(atom, m)])
		}
	}
	return last
}
