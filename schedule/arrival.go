package schedule

import (
	"time"

	"dahl/dag"
	"dahl/platform"
)

// Arrival is when the operands of an instance are expected in a memory. Copies for it may start
// early where there is room, behind all others that wait. When a worker takes the task, its
// copies go before early ones, and contents in their way leave.
type Arrival struct {
	Soon   time.Duration // when early copies have brought them; [Never] where there is no room for early copies
	Urgent time.Duration // when the engines have done the copies that others wait for
	Takes  time.Duration // how long a worker then waits if it takes the task
}

// Never is later than any time of a run.
const Never = 2 * LongestRun

// StartsAt is when a worker is expected to start an instance, given the arrival of its operands.
func (v *View) StartsAt(w platform.WorkerID, a Arrival) time.Duration {
	free := v.FreeAt(w)
	return min(max(free, a.Soon), max(free, a.Urgent)+a.Takes)
}

// arrival answers [View.Arrival]. It looks at the contents of the memory, at waiting and started
// copies, and at the operands of the tasks given to the memory. It cannot know which tasks become
// ready later.
//
// Copies from several memories reach the host's at once. They reach any other memory in turn,
// since they share its engines or its link.
//
// In a crowded memory, one that cannot hold the operands of these tasks and this one, contents
// that no other task names will have left before this task runs. As many bytes have to be written
// back before they come again. Otherwise only missing operands come, and the first idle atoms
// leave for them.
func (e *Engine) arrival(i dag.Instance, m platform.MemoryID) Arrival {
	if e.copies == nil {
		return Arrival{}
	}
	evictor, home := e.resident.evictors[m], e.p.Platform.HostMemory()
	var lacks [platform.MaxMemories]lack
	crowded := evictor != nil && evictor.crowded(i.Task)
	e.lacking(i.Task, m, crowded, &lacks)
	a := Arrival{Soon: e.at, Urgent: e.at}
	early, bytes := time.Duration(0), int64(0)
	for s := range lacks[:len(e.p.Platform.Memories)] {
		l, from := &lacks[s], platform.MemoryID(s)
		if *l == (lack{}) {
			continue
		}
		bytes += l.absent.bytes + l.asked.bytes
		lines := e.copies.queue.way(from, m).lines
		soon, takes := e.takes(from, m, l.absent), e.takes(from, m, l.absent.and(l.asked))
		a.Urgent = max(a.Urgent, lines.free(e.at, true))
		if m == home {
			a.Soon, a.Takes = max(a.Soon, lines.free(e.at, false)+soon), max(a.Takes, takes)
			continue
		}
		a.Soon, a.Takes = max(a.Soon, lines.free(e.at, false)), a.Takes+takes
		early += soon
	}
	a.Soon += early
	if evictor == nil {
		return a
	}
	full, back := evictor.makes(i.Task, bytes, crowded)
	if full {
		a.Soon = Never
	}
	if back > 0 {
		a.Urgent = max(a.Urgent, e.copies.queue.way(m, home).lines.free(e.at, true))
		a.Takes += e.p.Platform.RouteTime(m, home, back)
	}
	return a
}

// takes is how long copies need from one memory to another if nobody else copies. The latency of
// a copy counts if it has to wait for an engine.
func (e *Engine) takes(from, to platform.MemoryID, c cargo) time.Duration {
	if c.copies == 0 {
		return 0
	}
	again := time.Duration(e.copies.queue.inTurn(c.copies, from, to) - 1)
	return e.p.Platform.RouteTime(from, to, c.bytes) + again*e.p.Platform.RouteTime(from, to, 0)
}

// lack is what an instance is expected to need from one memory.
type lack struct {
	absent cargo // nobody has asked for it
	asked  cargo // copies for it wait
	coming bool  // a copy has started to bring something
}

// cargo is the load of some copies, one for each storage.
type cargo struct {
	bytes  int64
	copies int
	last   dag.BufferID // storage of the last copy
}

// add puts an atom of a storage into the cargo. Atoms of one storage follow each other.
func (c *cargo) add(bytes int64, storage dag.BufferID) {
	if c.copies == 0 || c.last != storage {
		c.copies++
		c.last = storage
	}
	c.bytes += bytes
}

func (c cargo) and(other cargo) cargo {
	return cargo{bytes: c.bytes + other.bytes, copies: c.copies + other.copies}
}

// lacking adds up, by source, the bytes that a task reads and a memory lacks. In a crowded memory
// it also counts bytes that are there and that no other task names.
func (e *Engine) lacking(t dag.TaskID, m platform.MemoryID, crowded bool, lacks *[platform.MaxMemories]lack) {
	g, r, bit := e.p.Graph, e.resident, uint64(1)<<m
	for k, access := range g.Tasks[t].Accesses {
		if !access.Mode.Reads() {
			continue
		}
		region, storage := int64(-1), g.Storage(access.Buffer)
		for _, atom := range g.Atoms(t, k) {
			valid := r.valid[atom]
			goes := crowded && valid != everywhere && r.evictors[m].idle.named[atom] == 0
			if valid == 0 || valid&bit != 0 && !goes {
				continue
			}
			if valid&bit != 0 {
				lacks[e.p.Platform.HostMemory()].absent.add(r.bytes(atom), storage)
				continue
			}
			if region < 0 {
				region = g.RegionBytes(t, k)
			}
			l := &lacks[r.source(atom, m, region)]
			switch {
			case r.arriving[atom]&bit != 0:
				l.coming = true
			case r.wanted[atom]&bit != 0:
				l.asked.add(r.bytes(atom), storage)
			default:
				l.absent.add(r.bytes(atom), storage)
			}
		}
	}
}
