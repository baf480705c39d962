package schedule

import (
	"slices"

	"dahl/dag"
	"dahl/platform"
)

// evictorPlaces is the part of an evictor for a memory in which storages have fixed places and
// some of them share bytes. It counts how much of each storage is here and who needs it. A nil
// evictorPlaces means that no storages share bytes.
type evictorPlaces struct {
	r       *residency
	memory  platform.MemoryID
	present []int32        // by storage: number of its atoms that are live here or doomed
	bytes   []int64        // by storage: bytes of those atoms
	held    []int32        // by storage: number of accesses by admitted tasks
	named   []int32        // by storage: number of accesses by tasks given to the memory that have not ended
	claims  []dag.BufferID // held storages that share bytes, in the order in which they were claimed
}

func newEvictorPlaces(r *residency, m platform.MemoryID) *evictorPlaces {
	n := len(r.p.Graph.Buffers)
	return &evictorPlaces{r: r, memory: m, present: make([]int32, n), bytes: make([]int64, n), held: make([]int32, n), named: make([]int32, n)}
}

// occupy adds n to the atoms that are here.
func (p *evictorPlaces) occupy(atom, n int32) {
	if p != nil {
		s := p.r.p.Graph.AtomStorage(dag.AtomID(atom))
		p.present[s] += n
		p.bytes[s] += int64(n) * p.r.bytes(atom)
	}
}

// admits reports whether no storage of a task shares bytes with a held one.
func (p *evictorPlaces) admits(t dag.TaskID) bool {
	if p == nil {
		return true
	}
	g := p.r.p.Graph
	for _, a := range g.Tasks[t].Accesses {
		if p.claimed(g.Storage(a.Buffer)) {
			return false
		}
	}
	return true
}

// claimed reports whether a storage shares bytes with a held one.
func (p *evictorPlaces) claimed(storage dag.BufferID) bool {
	return slices.ContainsFunc(p.r.shared.of(p.memory, storage), func(other int32) bool { return p.held[other] > 0 })
}

// hold counts the accesses of a task that is admitted (1) or lets go (-1).
func (p *evictorPlaces) hold(t dag.TaskID, n int32) {
	if p == nil {
		return
	}
	g := p.r.p.Graph
	for _, a := range g.Tasks[t].Accesses {
		s := g.Storage(a.Buffer)
		before := p.held[s]
		p.held[s] += n
		switch {
		case len(p.r.shared.of(p.memory, s)) == 0:
		case before == 0:
			p.claims = append(p.claims, s)
		case p.held[s] == 0:
			p.claims = slices.DeleteFunc(p.claims, func(c dag.BufferID) bool { return c == s })
		}
	}
}

// name counts the accesses of a task that is given to the memory (1) or leaves it (-1).
func (p *evictorPlaces) name(t dag.TaskID, n int32) {
	if p == nil {
		return
	}
	for _, a := range p.r.p.Graph.Tasks[t].Accesses {
		p.named[p.r.p.Graph.Storage(a.Buffer)] += n
	}
}

// crowded reports whether a storage of a task shares bytes with a storage of the tasks given to
// the memory.
func (p *evictorPlaces) crowded(t dag.TaskID) bool {
	g := p.r.p.Graph
	for _, a := range g.Tasks[t].Accesses {
		for _, other := range p.r.shared.of(p.memory, g.Storage(a.Buffer)) {
			if p.named[other] > 0 {
				return true
			}
		}
	}
	return false
}

// inTheWay is the number of bytes here of storages that share bytes with those of a task. It also
// counts bytes that are valid elsewhere.
func (p *evictorPlaces) inTheWay(t dag.TaskID) (bytes int64) {
	g := p.r.p.Graph
	for _, a := range g.Tasks[t].Accesses {
		for _, other := range p.r.shared.of(p.memory, g.Storage(a.Buffer)) {
			bytes += p.bytes[other]
		}
	}
	return bytes
}

// makeWay sends away what shares bytes with held storages.
func (p *evictorPlaces) makeWay(m *evictor, writeBack func(atom int32) error) error {
	if p == nil {
		return nil
	}
	for _, s := range p.claims {
		for _, other := range p.r.shared.of(p.memory, s) {
			if p.present[other] == 0 {
				continue
			}
			first, end := p.r.p.Graph.StorageAtoms(dag.BufferID(other))
			for a := int32(first); a < int32(end); a++ {
				if !m.idle.has(a) {
					continue
				}
				if err := m.sendAway(a, writeBack); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// clear reports whether a storage has its bytes to itself: no storage that shares them has an
// atom here or a copy from or to here.
func (m *evictor) clear(storage dag.BufferID) bool {
	if m.places == nil {
		return true
	}
	for _, other := range m.r.shared.of(m.memory, storage) {
		if m.places.present[other] > 0 {
			return false
		}
	}
	return m.r.shared.still(m.memory, storage)
}

// claimed reports whether a storage shares bytes with one that an admitted task needs.
func (m *evictor) claimed(storage dag.BufferID) bool {
	return m.places != nil && m.places.claimed(storage)
}
