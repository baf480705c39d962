package schedule

import (
	"slices"

	"dahl/dag"
	"dahl/platform"
)

// evictorPlaces is the part of an evictor in which storages have fixed places and some of them
// share bytes: how much there is of each, and which of them are needed. A nil one shares
// nothing.
type evictorPlaces struct {
	r       *residency
	memory  platform.MemoryID
	present []int32        // by storage: atoms of it that are live here or doomed
	bytes   []int64        // by storage: of these
	held    []int32        // by storage: accesses of admitted tasks
	named   []int32        // by storage: accesses of tasks given to the memory that have not ended
	claims  []dag.BufferID // storages that are held and share bytes, as they were claimed
}

func newEvictorPlaces(r *residency, m platform.MemoryID) *evictorPlaces {
	n := len(r.p.Graph.Buffers)
	return &evictorPlaces{r: r, memory: m, present: make([]int32, n), bytes: make([]int64, n), held: make([]int32, n), named: make([]int32, n)}
}

// occupy notes that one atom more, or less, is here.
func (p *evictorPlaces) occupy(atom, n int32) {
	if p != nil {
		s := p.r.p.Graph.AtomStorage(dag.AtomID(atom))
		p.present[s] += n
		p.bytes[s] += int64(n) * p.r.bytes(atom)
	}
}

// admits reports whether a task names no storage that shares bytes with one that is held.
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

// claimed reports whether a storage shares bytes with one that is held.
func (p *evictorPlaces) claimed(storage dag.BufferID) bool {
	return slices.ContainsFunc(p.r.shared.of(p.memory, storage), func(other int32) bool { return p.held[other] > 0 })
}

// hold counts the accesses of a task that was admitted (1) or lets go (-1).
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

// name counts the accesses of a task that was given to the memory (1) or is there no
// longer (-1).
func (p *evictorPlaces) name(t dag.TaskID, n int32) {
	if p == nil {
		return
	}
	for _, a := range p.r.p.Graph.Tasks[t].Accesses {
		p.named[p.r.p.Graph.Storage(a.Buffer)] += n
	}
}

// crowded reports whether a task names a storage that shares bytes with one that the tasks
// given to the memory name.
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

// inTheWay is the bytes that are here of storages that share bytes with what a task names.
// Which of them are valid elsewhere too is not looked up.
func (p *evictorPlaces) inTheWay(t dag.TaskID) (bytes int64) {
	g := p.r.p.Graph
	for _, a := range g.Tasks[t].Accesses {
		for _, other := range p.r.shared.of(p.memory, g.Storage(a.Buffer)) {
			bytes += p.bytes[other]
		}
	}
	return bytes
}

// makeWay lets go what shares bytes with the storages that are held.
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

// clear reports whether nothing is here of what shares bytes with a storage, nor on its
// way from or to here.
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
