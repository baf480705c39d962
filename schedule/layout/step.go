package layout

import (
	"cmp"
	"fmt"
	"slices"

	"dahl/dag"
)

// placeStep places the storages of the step arena. Listed places come first. Then the largest storage goes first,
// each to the lowest offset where it meets only storages that are never live together with it. Behind [MaxShared] of them the others lie apart.
// Without lifetimes nothing shares bytes.
func (l *Layout) placeStep(g *Graph, storages []dag.BufferID, lives *lifetimes, listed *Listed) error {
	s := &stepPlacing{l: l, g: g, storages: storages, lives: lives, extents: make([]extent, len(storages))}
	for k, id := range storages {
		s.extents[k].bytes = g.bytes(id)
	}
	rest := make([]int, 0, len(storages)) // indices into storages that no plan lists
	for k, id := range storages {
		at, ok, err := listed.offsetOf(g.Buffers[id].Name, StepArena)
		if err != nil {
			return err
		}
		if !ok {
			rest = append(rest, k)
			continue
		}
		s.put(k, at)
	}
	if len(rest) == 0 {
		if err := s.checkListed(); err != nil {
			return err
		}
	}
	slices.SortFunc(rest, func(a, b int) int {
		x, y := &g.Buffers[storages[a]], &g.Buffers[storages[b]]
		return cmp.Or(cmp.Compare(s.extents[b].bytes, s.extents[a].bytes), cmp.Compare(y.Bytes(), x.Bytes()), cmp.Compare(x.Name, y.Name))
	})
	for i, k := range rest {
		if i < MaxShared {
			s.put(k, s.lowest(k))
		} else {
			s.append(k)
		}
	}
	l.ArenaBytes[StepArena] = s.end
	if lives == nil {
		return nil
	}
	l.SavedBytes = s.total - s.end
	l.orders = func() (reuse, next []dag.Edge) { return lives.edges(s.extents) }
	return nil
}

// stepPlacing is the state of placing the storages of a step.
type stepPlacing struct {
	l          *Layout
	g          *Graph
	storages   []dag.BufferID
	lives      *lifetimes // nil means that nothing shares bytes
	extents    []extent   // by index into storages; the offset counts of those that are placed
	placed     []int      // indices into storages, by offset
	total, end int64
}

// append puts a storage behind all others.
func (s *stepPlacing) append(k int) {
	s.l.put(s.storages[k], StepArena, s.end)
	s.extents[k].offset = s.end
	s.total += s.extents[k].bytes
	s.end += s.extents[k].bytes
}

// put gives a storage its offset.
func (s *stepPlacing) put(k int, offset int64) {
	s.l.put(s.storages[k], StepArena, offset)
	s.extents[k].offset = offset
	e := s.extents[k]
	s.total += e.bytes
	s.end = max(s.end, e.end())
	if s.lives == nil {
		return
	}
	at, _ := slices.BinarySearchFunc(s.placed, e.offset, func(other int, offset int64) int {
		if s.extents[other].offset <= offset {
			return -1
		}
		return 1
	})
	s.placed = slices.Insert(s.placed, at, k)
}

// lowest is the lowest offset at which a storage shares bytes only with storages never live together with it.
func (s *stepPlacing) lowest(k int) (at int64) {
	if s.lives == nil {
		return s.end
	}
	for _, other := range s.placed {
		e := s.extents[other]
		if at+s.extents[k].bytes <= e.offset {
			break
		}
		if e.end() > at && !s.lives.ordered(k, other) {
			at = e.end()
		}
	}
	return at
}

// checkListed refuses places of a plan at which two storages in use at once share bytes.
func (s *stepPlacing) checkListed() error {
	name := func(k int) string { return s.g.Buffers[s.storages[k]].Name }
	if s.lives == nil {
		var all []placedExtent
		for k := range s.storages {
			all = append(all, placedExtent{s.extents[k], name(k)})
		}
		_, err := endOf(all)
		return err
	}
	for i, a := range s.placed {
		for _, b := range s.placed[i+1:] {
			if s.extents[b].offset >= s.extents[a].end() {
				break
			}
			if s.extents[a].meets(s.extents[b]) && !s.lives.ordered(a, b) {
				return fmt.Errorf("the plan lets buffers %q and %q share bytes, and both are in use at once", name(a), name(b))
			}
		}
	}
	return nil
}

// extent is bytes in use.
type extent struct{ offset, bytes int64 }

func (e extent) end() int64 { return e.offset + e.bytes }

func (e extent) meets(o extent) bool { return e.offset < o.end() && o.offset < e.end() }
