package layout

import (
	"fmt"
	"maps"
	"slices"

	"dahl/dag"
	"dahl/platform"
)

// sharedStorages are the places of the storages that all graphs have in common.
type sharedStorages struct {
	bytes [NumArenas]int64
	place map[string]sharedPlace
}

type sharedPlace struct {
	arena         Arena
	offset, bytes int64
	listed        bool // by a plan, at offset
}

func placeShared(m platform.MemoryID, graphs []*Graph) (*sharedStorages, error) {
	s := &sharedStorages{place: map[string]sharedPlace{}}
	if !slices.ContainsFunc(graphs, func(g *Graph) bool { return len(g.in[m]) > 0 }) {
		return s, nil
	}
	written := map[string]bool{} // by input: a task of some graph writes it
	for _, g := range graphs {
		for _, id := range g.in[m] {
			if b := &g.Buffers[id]; b.Role == dag.Input && b.ViewOf == dag.None {
				written[b.Name] = false
			}
		}
	}
	for _, g := range graphs {
		for _, id := range g.in[m] {
			if _, input := written[g.Buffers[id].Name]; input && g.storage(id) == id && g.Written[id] {
				written[g.Buffers[id].Name] = true
			}
		}
	}
	for _, g := range graphs {
		for _, id := range g.in[m] {
			b := &g.Buffers[id]
			p := sharedPlace{bytes: b.Bytes()}
			switch {
			case b.ViewOf != dag.None:
				continue
			case b.Role == dag.Parameter || b.Role == dag.State:
				p.arena = NetworkArena
			case b.Role == dag.Input && !written[b.Name]:
				p.arena = DataArena
			default:
				continue
			}
			if err := s.add(b, p, g.Listed[m], g.Name); err != nil {
				return nil, err
			}
		}
	}
	return s, s.pack()
}

// add enters a storage of one graph, which may be in others too.
func (s *sharedStorages) add(b *dag.Buffer, p sharedPlace, listed *Listed, graph string) error {
	at, ok, err := listed.offsetOf(b.Name, p.arena)
	if err != nil {
		return err
	}
	p.offset, p.listed = at, ok
	other, known := s.place[b.Name]
	if known && p.arena == NetworkArena && other.arena == NetworkArena { // graphs may have other rows of it
		p.bytes = max(p.bytes, other.bytes)
		other.bytes = p.bytes
		s.place[b.Name] = other
	}
	switch {
	case known && (other.bytes != p.bytes || other.arena != p.arena):
		return fmt.Errorf("buffer %q has %d bytes as %s in graph %q, and something else in another graph", b.Name, p.bytes, b.Role, graph)
	case known && other.listed && p.listed && other.offset != p.offset:
		return fmt.Errorf("the plans of two graphs put buffer %q at %d and at %d of arena %q", b.Name, other.offset, p.offset, p.arena)
	case !known || p.listed:
		s.place[b.Name] = p
	}
	return nil
}

// pack puts storages that no plan lists one behind the other, in the order of names, behind the listed ones.
func (s *sharedStorages) pack() error {
	names := slices.Sorted(maps.Keys(s.place))
	var listed [NumArenas][]placedExtent
	for _, name := range names {
		if p := s.place[name]; p.listed {
			listed[p.arena] = append(listed[p.arena], placedExtent{extent{p.offset, Align(p.bytes)}, name})
		}
	}
	for a := range listed {
		var err error
		if s.bytes[a], err = endOf(listed[a]); err != nil {
			return fmt.Errorf("arena %q: %w", Arena(a), err)
		}
	}
	for _, name := range names {
		p := s.place[name]
		if p.listed {
			continue
		}
		p.offset = s.bytes[p.arena]
		s.bytes[p.arena] += Align(p.bytes)
		s.place[name] = p
	}
	return nil
}
