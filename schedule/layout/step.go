package layout

import (
	"cmp"
	"fmt"
	"slices"

	"dahl/dag"
)

// placeStep places the storages that share the step arena: those that a plan lists where
// it says, then the largest first, each at the lowest offset where it meets only storages
// that are never live together with it. Without lifetimes nothing shares bytes.
func (l *Layout) placeStep(g *Graph, storages []dag.BufferID, lives *lifetimes, listed *Listed) error {
	s := &stepPlacing{l: l, g: g, storages: storages, lives: lives}
	rest := make([]int, 0, len(storages)) // indices into storages that no plan lists
	for k, id := range storages {
		at, ok, err := listed.of(g.Buffers[id].Name, StepArena)
		if err != nil {
			return err
		}
		if !ok {
			rest = append(rest, k)
			continue
		}
		l.Offset[id] = at
		s.put(k)
	}
	if len(rest) == 0 {
		if err := s.checkListed(); err != nil {
			return err
		}
	}
	slices.SortFunc(rest, func(a, b int) int {
		x, y := &g.Buffers[storages[a]], &g.Buffers[storages[b]]
		return cmp.Or(cmp.Compare(g.bytes(storages[b]), g.bytes(storages[a])), cmp.Compare(y.Bytes(), x.Bytes()), cmp.Compare(x.Name, y.Name))
	})
	for _, k := range rest {
		l.Offset[storages[k]] = s.lowest(k)
		s.put(k)
	}
	l.ArenaBytes[StepArena] = s.end
	if lives == nil {
		return nil
	}
	l.SavedBytes = s.total - s.end
	l.Reuse, l.ReuseNext = lives.edges(s.overlap)
	return nil
}

// stepPlacing is the state of placing the storages of a step.
type stepPlacing struct {
	l          *Layout
	g          *Graph
	storages   []dag.BufferID
	lives      *lifetimes // nil: nothing shares bytes
	placed     []int      // indices into storages, by offset
	total, end int64
	gaps       []extent // of lowest
}

func (s *stepPlacing) extent(k int) extent {
	id := s.storages[k]
	return extent{s.l.Offset[id], s.g.bytes(id)}
}

// put notes a storage that has an offset.
func (s *stepPlacing) put(k int) {
	e := s.extent(k)
	s.total += e.bytes
	s.end = max(s.end, e.offset+e.bytes)
	if s.lives == nil {
		return
	}
	at, _ := slices.BinarySearchFunc(s.placed, e.offset, func(other int, offset int64) int {
		if s.l.Offset[s.storages[other]] <= offset {
			return -1
		}
		return 1
	})
	s.placed = slices.Insert(s.placed, at, k)
}

// lowest is the lowest offset at which a storage shares bytes only with storages that are
// never live together with it.
func (s *stepPlacing) lowest(k int) int64 {
	if s.lives == nil {
		return s.end
	}
	s.gaps = s.gaps[:0]
	for _, other := range s.placed {
		if !s.lives.ordered(k, other) {
			s.gaps = append(s.gaps, s.extent(other))
		}
	}
	return firstFit(s.gaps, s.extent(k).bytes)
}

func (s *stepPlacing) overlap(a, b int) bool {
	x, y := s.extent(a), s.extent(b)
	return x.offset < y.offset+y.bytes && y.offset < x.offset+x.bytes
}

// checkListed refuses places of a plan at which two storages in use at once share bytes.
func (s *stepPlacing) checkListed() error {
	name := func(k int) string { return s.g.Buffers[s.storages[k]].Name }
	if s.lives == nil {
		var all []placedExtent
		for k := range s.storages {
			all = append(all, placedExtent{s.extent(k), name(k)})
		}
		_, err := endOf(all)
		return err
	}
	for i, a := range s.placed {
		for _, b := range s.placed[i+1:] {
			if first := s.extent(a); s.l.Offset[s.storages[b]] >= first.offset+first.bytes {
				break
			}
			if s.overlap(a, b) && !s.lives.ordered(a, b) {
				return fmt.Errorf("the plan lets buffers %q and %q share bytes, and both are in use at once", name(a), name(b))
			}
		}
	}
	return nil
}

// extent is bytes in use.
type extent struct{ offset, bytes int64 }

// firstFit is the lowest offset at which size bytes meet none of the extents,
// which are ordered by offset.
func firstFit(used []extent, size int64) int64 {
	var at int64
	for _, u := range used {
		if at+size <= u.offset {
			return at
		}
		at = max(at, u.offset+u.bytes)
	}
	return at
}
