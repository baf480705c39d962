package schedule

import (
	"fmt"
	"math"
	"slices"

	"dahl/dag"
	"dahl/platform"
)

// evictor decides what leaves a memory that cannot hold everything its tasks may want. It
// lets contents go that nobody needs now, in the order of [idleAtoms].
//
// A task of a worker of this memory is *admitted* when its atoms fit together with the atoms
// of the tasks admitted before it. Until then it waits its turn. From admission to its end its
// atoms are *held*: those that are here stay, and those that are missing have bytes *reserved*.
// An atom that is neither held nor being copied from here is *idle* and may be evicted. It is
// dropped where another memory has it too; else it is first copied to the host's memory. The
// host's memory evicts nothing.
//
// Every run comes to an end. It would not if the operands of one task could be evicted for
// another one while both tasks wait for the rest of their operands.
//
//  1. The atoms that an admitted task holds only grow towards those that it needs, since a held
//     atom is never evicted.
//  2. An admitted task gets all of them. The held atoms of all admitted tasks fit together, and
//     everything else leaves without waiting for these tasks: an idle atom is dropped or copied
//     to the host, which has room or fails the run with an error; a copy in progress ends; an
//     atom that a running task overwrites in another memory goes when that task ends. A copy
//     takes all its engines at once and waits for nothing once it has started. Copies for
//     admitted tasks and for evictions come before early ones.
//  3. So every admitted task runs and ends: its worker is free, or runs a task that it had taken
//     before, which ends. The first task in turn is admitted at the latest when no other one is:
//     NewEngine lets no task near a memory that is smaller than the task's operands.
//  4. Early copies use only bytes that are neither live nor reserved, their atoms may be evicted,
//     and each task asks for them once. So they cost finitely many copies.
//
// The order in which idle atoms leave does not matter for this.
//
// Where storages share bytes (places), atoms "fit together" if no two of their storages share
// any. An admitted task then waits until nothing is left of the storages that share bytes with
// its own; the sum of all bytes does not matter. The same proof holds, since nothing of those
// storages is held and so all of it goes.
type evictor struct {
	r        *residency
	memory   platform.MemoryID
	capacity int64

	held  []int32     // by atom: number of admitted tasks that name it
	busy  []int32     // by atom: number of copies of it from here in progress
	state []atomState // by atom
	idle  idleAtoms   // valid, not held, not busy, not leaving

	namedBytes int64          // bytes of the atoms named by tasks that were given to this memory and have not ended
	heldBytes  int64          // bytes of the held atoms
	reserved   int64          // bytes of the held atoms that are not live here
	places     *evictorPlaces // nil: no storages share bytes here
	leaving    int64          // bytes on their way to the host
	doomed     int64          // bytes here that running tasks overwrite in other memories; not free until those tasks end
	dooms      []doom

	waiting []platform.WorkerID // workers whose tasks wait to be admitted, first come, first served
	last    dag.Instance        // the instance admitted last
	dropped []int32             // atoms dropped since the last flush
}

// atomState marks an atom.
type atomState uint8

const (
	isReserved atomState = 1 << iota
	isLeaving
)

// doom marks an atom whose bytes go when a task ends.
type doom struct {
	task dag.TaskID
	atom int32
}

// makeEvictors gives an evictor to every memory that may overflow. The host's memory has none.
func (r *residency) makeEvictors() {
	total, n := int64(0), len(r.uses)
	before := r.valid[:n] // further copies hold nothing before the first step, and are never at such a memory
	for a, valid := range before {
		if valid != everywhere {
			total += r.bytes(int32(a))
		}
	}
	for m := range r.evictors {
		limit := r.p.Platform.Memories[m].CapacityBytes
		var places *evictorPlaces
		if r.p.layoutOf(platform.MemoryID(m)) != nil {
			limit = math.MaxInt64 // storages with places of their own fit
			if r.shared.any(platform.MemoryID(m)) {
				places = newEvictorPlaces(r, platform.MemoryID(m))
			}
		}
		if platform.MemoryID(m) == r.p.Platform.HostMemory() || places == nil && (limit == 0 || total <= limit) {
			continue
		}
		evictor := &evictor{r: r, memory: platform.MemoryID(m), capacity: limit, places: places,
			held: make([]int32, n), busy: make([]int32, n), state: make([]atomState, n), idle: newIdleAtoms(n)}
		for a, valid := range before {
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

// admit holds the atoms of a task if they fit beside the atoms that are held already.
func (m *evictor) admit(i dag.Instance) bool {
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

// keep makes a held atom safe from eviction and reserves its bytes if it is not here.
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

// stay calls off the departure of an atom.
func (m *evictor) stay(a int32) {
	if m.state[a]&isLeaving != 0 {
		m.state[a] &^= isLeaving
		m.leaving -= m.r.bytes(a)
	}
}

// release ends the hold of a task that has ended.
func (m *evictor) release(t dag.TaskID) { m.letGo(t, m.rest) }

// letGo ends the hold of a task and passes the atoms that no task holds any more to free.
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

// rest is called when nobody needs an atom here any more. The atom was used just now, so it
// leaves after all others, unless it is leaving already.
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

// arrived notes that a copy of an atom has come. An early copy is for a task that is not
// admitted.
func (m *evictor) arrived(a int32, early bool) {
	if early && m.held[a] == 0 && m.busy[a] == 0 {
		m.idle.putUnused(a)
		return
	}
	m.rest(a)
}

// departs and departed bracket a copy of an atom from here to another memory.
func (m *evictor) departs(a int32) {
	m.busy[a]++
	m.idle.remove(a)
}

func (m *evictor) departed(a int32) {
	m.busy[a]--
	m.rest(a)
}

// doom counts an atom until a task ends. The bytes are not free before the task's kernel starts,
// and the kernel starts some time after its command.
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

// name counts a task among those given to a worker of this memory (1), until it ends or a worker
// of another memory takes it (-1).
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

// crowded reports whether the memory is too small for the operands of a task together with those
// of all tasks given to it.
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

// makes estimates how to make room for a task that waits for come bytes. full says that there is
// no room now; back is the number of bytes to be written back first. In a crowded memory back
// equals come, since nobody knows what the tasks before this one will have left.
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

// fits reports whether the results of an admitted task fit now.
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

// makeRoom evicts until the reserved bytes fit. It drops an atom that another memory has too. It
// passes any other atom to writeBack; that atom leaves when it has been copied.
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

// sendAway drops an idle atom, or has it copied home first where no other memory has it.
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

// evict drops an atom that another memory has too.
func (m *evictor) evict(a int32) {
	m.r.drop(a, m.bit())
	m.r.valid[a] &^= m.bit()
	m.dropped = append(m.dropped, a)
}

// flush appends the dropped atoms as evictions, one for each storage.
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
