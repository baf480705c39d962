package schedule

import (
	"fmt"
	"math"
	"slices"

	"dahl/dag"
	"dahl/platform"
)

// evictor is a memory that cannot hold everything that may be wanted there, and decides
// what leaves it, of what nobody needs now: first the least recently used of what no task
// names that was given to a worker of this memory ([idleAtoms]).
//
// A task of a worker of this memory is *admitted* when the atoms that it names, and
// those that the tasks admitted before it name, fit together; it waits its turn until
// then. From admission to its end they are *held*: what is there stays, and what is
// missing has bytes *reserved*. Whatever is neither held nor being copied from here is
// *idle* and may be evicted: it is dropped where it is valid elsewhere too, and else
// first copied to the host's memory, from which nothing is evicted.
//
// Every run comes to an end. It would not if one task's operands could be evicted for
// another's while both wait for the rest of theirs:
//
//  1. What an admitted task holds only grows towards what it needs, since nothing held
//     is evicted.
//  2. It gets all of it. The held atoms of all admitted tasks fit together, and whatever
//     else is here goes away without waiting for any of them: an idle atom is dropped, or
//     copied to the host, which has room or else the run fails with an error; a copy in
//     progress ends; what a running task overwrites in another memory goes when it ends.
//     Copies take all their engines at once and wait for nothing once started, and those
//     for admitted tasks and for evictions come before those that are early.
//  3. So every admitted task runs and ends: its worker runs nothing then, or a task that it
//     had taken before, which ends. The first in turn is admitted at the latest when no
//     other is: NewEngine lets no task near a memory that is smaller than what it names.
//  4. Early copies use only bytes that are neither live nor reserved, may be evicted, and
//     are asked for once for each task: they cost finitely many copies.
//
// In which order idle atoms leave is no matter for this.
//
// Where storages share bytes (places), "fit together" means that no two of them do, and
// what an admitted task names waits until nothing is left of the storages that share
// bytes with it; the bytes of all together are then no matter. The same proof holds:
// of those nothing is held, so it goes.
type evictor struct {
	r        *residency
	memory   platform.MemoryID
	capacity int64

	held  []int32     // by atom: admitted tasks that name it
	busy  []int32     // by atom: copies of it from here in progress
	state []atomState // by atom
	idle  idleAtoms   // valid, not held, not busy, not leaving

	namedBytes int64          // of the atoms that tasks name which were given to this memory and have not ended
	heldBytes  int64          // of the atoms held
	reserved   int64          // of these, what is not live here
	places     *evictorPlaces // nil: no storages share bytes here
	leaving    int64          // on its way to the host
	doomed     int64          // overwritten in another memory by tasks that still run, who may not have begun to write
	dooms      []doom

	waiting []platform.WorkerID // their tasks wait to be admitted, first come, first served
	last    Instance            // admitted last
	dropped []int32             // since the last flush
}

// atomState marks an atom.
type atomState uint8

const (
	isReserved atomState = 1 << iota
	isLeaving
)

// doom is an atom whose bytes go when a task ends.
type doom struct {
	task dag.TaskID
	atom int32
}

// makeEvictors gives an evictor to every memory that may overflow, the host's excepted.
func (r *residency) makeEvictors() {
	total := int64(0)
	for a := range r.valid {
		if r.valid[a] != everywhere {
			total += r.bytes(int32(a))
		}
	}
	n := len(r.valid)
	for m := range r.evictors {
		limit := r.p.Platform.Memories[m].CapacityBytes
		var places *evictorPlaces
		if r.p.layoutOf(platform.MemoryID(m)) != nil {
			limit = math.MaxInt64 // what lies apart fits
			if r.shared.any(platform.MemoryID(m)) {
				places = newEvictorPlaces(r, platform.MemoryID(m))
			}
		}
		if platform.MemoryID(m) == r.p.Platform.HostMemory() || places == nil && (limit == 0 || total <= limit) {
			continue
		}
		evictor := &evictor{r: r, memory: platform.MemoryID(m), capacity: limit, places: places,
			held: make([]int32, n), busy: make([]int32, n), state: make([]atomState, n), idle: newIdleAtoms(n)}
		for a, valid := range r.valid {
			if valid != everywhere && valid&(1<<m) != 0 {
				evictor.idle.put(int32(a))
				evictor.taken(int32(a))
			}
		}
		r.evictors[m] = evictor
	}
}

func (r *residency) bytes(atom int32) int64 { return r.p.Graph.AtomBytes(dag.AtomID(atom)) }

func (m *evictor) bit() uint64 { return 1 << m.memory }

func (m *evictor) valid(atom int32) bool { return m.r.valid[atom]&m.bit() != 0 }

func (m *evictor) live(atom int32) bool { return (m.r.valid[atom]|m.r.arriving[atom])&m.bit() != 0 }

// admit holds what a task names if it fits beside what is held already.
func (m *evictor) admit(i Instance) bool {
	if !m.places.admits(i.Task) {
		return false
	}
	m.places.hold(i.Task, 1)
	g := m.r.p.Graph
	for k := range g.Tasks[i.Task].Accesses {
		for _, a := range g.Atoms(i.Task, k) {
			if m.held[a]++; m.held[a] == 1 && m.r.valid[a] != everywhere {
				m.heldBytes += m.r.bytes(a)
			}
		}
	}
	if m.heldBytes > m.capacity {
		m.letGo(i.Task, func(int32) {})
		return false
	}
	for k := range g.Tasks[i.Task].Accesses {
		for _, a := range g.Atoms(i.Task, k) {
			m.keep(a)
		}
	}
	m.last = i
	return true
}

// keep takes a held atom off what may be evicted, and reserves its bytes if it is not here.
func (m *evictor) keep(a int32) {
	if m.r.valid[a] == everywhere {
		return
	}
	m.idle.remove(a)
	m.stay(a)
	if !m.live(a) && m.state[a]&isReserved == 0 {
		m.state[a] |= isReserved
		m.reserved += m.r.bytes(a)
	}
}

// stay calls off that an atom leaves.
func (m *evictor) stay(a int32) {
	if m.state[a]&isLeaving != 0 {
		m.state[a] &^= isLeaving
		m.leaving -= m.r.bytes(a)
	}
}

// release ends the hold of a task that has ended.
func (m *evictor) release(t dag.TaskID) { m.letGo(t, m.rest) }

// letGo takes a task's hold away and shows the atoms that nobody holds any more.
func (m *evictor) letGo(t dag.TaskID, free func(atom int32)) {
	m.places.hold(t, -1)
	g := m.r.p.Graph
	for k := range g.Tasks[t].Accesses {
		for _, a := range g.Atoms(t, k) {
			if m.held[a]--; m.held[a] == 0 && m.r.valid[a] != everywhere {
				m.heldBytes -= m.r.bytes(a)
				free(a)
			}
		}
	}
}

// rest is called when the last that needed an atom here has let it go. It was used just
// now, so it leaves after all others, unless it is leaving already.
func (m *evictor) rest(a int32) {
	switch {
	case m.held[a] > 0 || m.busy[a] > 0 || !m.valid(a):
	case m.state[a]&isLeaving == 0:
		m.idle.put(a)
	case m.r.valid[a] != m.bit():
		m.evict(a)
	}
}

// taken notes that an atom is live here from now on.
func (m *evictor) taken(a int32) {
	if m.state[a]&isReserved != 0 {
		m.state[a] &^= isReserved
		m.reserved -= m.r.bytes(a)
	}
	m.places.occupy(a, 1)
}

// gone notes that an atom is live here no longer.
func (m *evictor) gone(a int32) {
	m.places.occupy(a, -1)
	m.idle.remove(a)
	m.stay(a)
}

// arrived notes that a copy of an atom has come, early: for a task that is not admitted.
func (m *evictor) arrived(a int32, early bool) {
	if early && m.held[a] == 0 && m.busy[a] == 0 {
		m.idle.putUnused(a)
		return
	}
	m.rest(a)
}

// departs and departed bracket a copy of an atom from here.
func (m *evictor) departs(a int32) {
	m.busy[a]++
	m.idle.remove(a)
}

func (m *evictor) departed(a int32) {
	m.busy[a]--
	m.rest(a)
}

// doom counts an atom until a task ends. Its kernel, before whose start the bytes are not
// free, starts some time after it was commanded.
func (m *evictor) doom(t dag.TaskID, atom int32) {
	m.doomed += m.r.bytes(atom)
	m.places.occupy(atom, 1)
	m.dooms = append(m.dooms, doom{t, atom})
}

func (m *evictor) undoom(t dag.TaskID) {
	m.dooms = slices.DeleteFunc(m.dooms, func(d doom) bool {
		if d.task == t {
			m.doomed -= m.r.bytes(d.atom)
			m.places.occupy(d.atom, -1)
		}
		return d.task == t
	})
}

// name counts a task among those that were given to a worker of this memory (1) until it
// ends or another memory's takes it (-1).
func (m *evictor) name(t dag.TaskID, n int32) {
	m.places.name(t, n)
	g := m.r.p.Graph
	for k := range g.Tasks[t].Accesses {
		for _, a := range g.Atoms(t, k) {
			before := m.idle.named[a]
			m.idle.name(a, n)
			if (before == 0) != (m.idle.named[a] == 0) && m.r.valid[a] != everywhere {
				m.namedBytes += int64(n) * m.r.bytes(a)
			}
		}
	}
}

// crowded reports whether what the tasks given to this memory name and what another task
// does are more than it can hold.
func (m *evictor) crowded(t dag.TaskID) bool {
	if m.places != nil {
		return m.places.crowded(t)
	}
	g, bytes := m.r.p.Graph, m.namedBytes
	for k := range g.Tasks[t].Accesses {
		for _, a := range g.Atoms(t, k) {
			if m.idle.named[a] == 0 && m.r.valid[a] != everywhere {
				bytes += m.r.bytes(a)
			}
		}
	}
	return bytes > m.capacity
}

// makes estimates what it takes to make room for a task that waits for so many bytes to
// come: full is that there is no room now, and back the bytes to be written back first.
// Where it is crowded, that is as many as come, since what the tasks before it have left
// by then is not known.
func (m *evictor) makes(t dag.TaskID, come int64, crowded bool) (full bool, back int64) {
	g := m.r.p.Graph
	for k, access := range g.Tasks[t].Accesses {
		if access.Mode.Writes() && !access.Mode.Reads() {
			for _, a := range g.Atoms(t, k) {
				if !m.live(a) {
					come += m.r.bytes(a)
				}
			}
		}
	}
	switch {
	case come == 0:
		return false, 0
	case crowded:
		return true, come
	case m.places != nil:
		back = m.places.inTheWay(t)
		return back > 0, back
	}
	over := m.r.live[m.memory] + m.reserved - m.leaving + come - m.capacity
	if over <= 0 {
		return false, 0
	}
	for a, ok := m.idle.spare.first(); ok && over > 0; a, ok = m.idle.spare.after(a) {
		over -= m.r.bytes(a)
		if m.r.valid[a] == m.bit() {
			back += m.r.bytes(a)
		}
	}
	return true, back + max(0, over)
}

// free is the bytes that are neither live nor about to be freed.
func (m *evictor) free() int64 { return m.capacity - m.r.live[m.memory] - m.doomed }

// fits reports whether what an admitted task writes fits now.
func (m *evictor) fits(t dag.TaskID) bool {
	g, bytes := m.r.p.Graph, int64(0)
	for k, access := range g.Tasks[t].Accesses {
		if !access.Mode.Writes() {
			continue
		}
		if !m.clear(g.Storage(access.Buffer)) {
			return false
		}
		for _, a := range g.Atoms(t, k) {
			if !m.live(a) {
				bytes += m.r.bytes(a)
			}
		}
	}
	return bytes <= m.free()
}

// makeRoom evicts until what is reserved fits. It drops what is valid elsewhere and
// shows writeBack the rest, which leaves when it has been copied.
func (m *evictor) makeRoom(writeBack func(atom int32) error) error {
	for m.r.live[m.memory]+m.reserved-m.leaving > m.capacity {
		a, ok := m.idle.first()
		if !ok {
			break
		}
		if err := m.sendAway(a, writeBack); err != nil {
			return err
		}
	}
	return m.places.makeWay(m, writeBack)
}

// sendAway lets an idle atom go.
func (m *evictor) sendAway(a int32, writeBack func(atom int32) error) error {
	if m.r.valid[a] != m.bit() {
		m.evict(a)
		return nil
	}
	m.idle.remove(a)
	m.state[a] |= isLeaving
	m.leaving += m.r.bytes(a)
	if err := writeBack(a); err != nil {
		return fmt.Errorf("evict from memory %q: %w", m.r.p.Platform.Memories[m.memory].Name, err)
	}
	return nil
}

// evict drops an atom that is valid elsewhere too.
func (m *evictor) evict(a int32) {
	m.r.drop(a, m.bit())
	m.r.valid[a] &^= m.bit()
	m.dropped = append(m.dropped, a)
}

// flush hands over what was dropped, by storage.
func (m *evictor) flush(into []Eviction) []Eviction {
	first := len(into)
	for _, a := range m.dropped {
		storage := m.r.p.Graph.AtomStorage(dag.AtomID(a))
		k := first + slices.IndexFunc(into[first:], func(e Eviction) bool { return e.Buffer == storage })
		if k < first {
			k = len(into)
			into = append(into, Eviction{Buffer: storage, Memory: m.memory})
		}
		into[k].Atoms = append(into[k].Atoms, a)
		into[k].Bytes += m.r.bytes(a)
	}
	m.dropped = m.dropped[:0]
	return into
}
