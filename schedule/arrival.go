package schedule

import (
	"time"

	"dahl/dag"
	"dahl/platform"
)

// Arrival is when the operands of an instance are expected in a memory. Copies for it
// may start early, behind all others that wait, where there is room for them. From when a
// worker takes the task on, its copies go before early ones, and what is in their way
// leaves.
type Arrival struct {
	Soon   time.Duration // when the early copies have come; [Never] where there is no room for them
	Urgent time.Duration // when the engines are done with what others wait for
	Takes  time.Duration // what a worker that takes the task waits from then on
}

// Never is later than any time of a run.
const Never = 2 * LongestRun

// StartsAt is when a worker is expected to start an instance whose operands arrive in its
// memory like that.
func (v *View) StartsAt(w platform.WorkerID, a Arrival) time.Duration {
	free := v.FreeAt(w)
	return min(max(free, a.Soon), max(free, a.Urgent)+a.Takes)
}

// arrival is what [View.Arrival] says. It looks at what is there, at the copies that wait
// and that have started, and at what the tasks name that were given to the memory. What
// other copies on the same links take away, and what becomes ready later, it cannot know.
//
// Where the memory cannot hold all that these tasks and this one name, what none of them
// names will have gone by the time it is its turn, and as many bytes have to be written
// back before they come again. Otherwise what it lacks comes, for which the first of what
// is idle leaves.
func (e *Engine) arrival(i Instance, m platform.MemoryID) Arrival {
	if e.copies == nil {
		return Arrival{}
	}
	c, room := e.copies, e.resident.rooms[m]
	var lacks [platform.MaxMemories]lack
	crowded := room != nil && room.crowded(i.Task)
	e.lacking(i.Task, m, crowded, &lacks)
	a := Arrival{Soon: e.at, Urgent: e.at}
	soon, bytes := time.Duration(0), int64(0)
	for s := range lacks[:len(e.p.Platform.Memories)] {
		l, from := &lacks[s], platform.MemoryID(s)
		if *l == (lack{}) {
			continue
		}
		bytes += l.absent + l.asked
		lines := c.queue.way(from, m).lines
		a.Soon = max(a.Soon, lines.free(e.at, false))
		a.Urgent = max(a.Urgent, lines.free(e.at, true))
		if l.absent > 0 {
			soon += e.p.Platform.RouteTime(from, m, l.absent)
		}
		if l.absent+l.asked > 0 {
			a.Takes += e.p.Platform.RouteTime(from, m, l.absent+l.asked)
		}
	}
	a.Soon += soon
	if room == nil {
		return a
	}
	full, back := room.makes(i.Task, bytes, crowded)
	if full {
		a.Soon = Never
	}
	if back > 0 {
		home := e.p.Platform.HostMemory()
		a.Urgent = max(a.Urgent, c.queue.way(m, home).lines.free(e.at, true))
		a.Takes += e.p.Platform.RouteTime(m, home, back)
	}
	return a
}

// lack is what an instance is expected to need from one memory.
type lack struct {
	absent int64 // bytes that nobody has asked for
	asked  int64 // bytes for which a copy waits
	coming bool  // bytes of a copy that has started
}

// lacking adds up, by source, what a task reads and a memory does not have; where it is
// crowded, also what is there and none of the tasks given to it names.
func (e *Engine) lacking(t dag.TaskID, m platform.MemoryID, crowded bool, lacks *[platform.MaxMemories]lack) {
	g, r, bit := e.p.Graph, e.resident, uint64(1)<<m
	for k, access := range g.Tasks[t].Accesses {
		if !access.Mode.Reads() {
			continue
		}
		region := int64(-1)
		for _, atom := range g.Atoms(t, k) {
			valid := r.valid[atom]
			goes := crowded && valid != everywhere && r.rooms[m].idle.named[atom] == 0
			if valid == 0 || valid&bit != 0 && !goes {
				continue
			}
			if valid&bit != 0 {
				lacks[e.p.Platform.HostMemory()].absent += r.bytes(atom)
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
				l.asked += r.bytes(atom)
			default:
				l.absent += r.bytes(atom)
			}
		}
	}
}
