package layout

import (
	"cmp"
	"fmt"
	"slices"

	"dahl/dag"
)

// mostCompared bounds the places that storages of a graph in a memory are compared with. The storages left then get bytes of their own.
const mostCompared = 1 << 29

// placeStep places the storages of the step arena. Listed places come first. Then the largest storage goes first,
// each to the lowest offset where it meets only storages that are never live together with it. Behind [mostCompared] comparisons the others lie apart.
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
	for _, k := range rest {
		if lives == nil || s.compared > mostCompared {
			s.put(k, s.end)
			continue
		}
		s.put(k, s.lowest(k))
		s.join(k)
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
	slots      []slot     // by offset
	compared   int        // slots looked at
	total, end int64
}

// slot is a place with the storages that lie just there. Only lifetimes make storages share bytes, so that these are one after the other.
type slot struct {
	extent
	pinned bool
	lives  []int    // indices into storages with users, in the order of their lifetimes
	span   [2]int32 // from the first user of the first of them to the last one of the last
	window [2]int32 // likewise, of positions on the main chain
}

// put gives a storage its offset.
func (s *stepPlacing) put(k int, offset int64) {
	s.l.put(s.storages[k], StepArena, offset)
	s.extents[k].offset = offset
	s.total += s.extents[k].bytes
	s.end = max(s.end, s.extents[k].end())
}

// lowest is the lowest offset at which a storage shares bytes only with storages never live together with it.
func (s *stepPlacing) lowest(k int) (at int64) {
	pinned := s.lives.pinned[k]
	for i := range s.slots {
		other := &s.slots[i]
		if at+s.extents[k].bytes <= other.offset {
			break
		}
		s.compared++
		if end := other.end(); end > at && (other.pinned || pinned || s.meets(other, k)) {
			at = end
		}
	}
	return at
}

// meets reports whether a storage may be live together with one of a slot, if neither is pinned.
func (s *stepPlacing) meets(o *slot, k int) bool {
	span, n := s.lives.span[k], len(o.lives)
	switch {
	case n == 0:
		return false
	case o.span[1] < span[0]: // as mostly
		return o.window[1]+1 >= s.lives.window[k][0] && !s.lives.before(o.lives[n-1], k)
	case span[1] < o.span[0]:
		return len(s.lives.users[k]) > 0 && !s.lives.before(k, o.lives[0])
	case n == 1:
		return true
	}
	i := s.behind(o, k)
	return i > 0 && !s.lives.before(o.lives[i-1], k) || i < n && !s.lives.before(k, o.lives[i])
}

// behind is the number of storages of a slot whose last user has a position before the first user of another one.
func (s *stepPlacing) behind(o *slot, k int) int {
	first := s.lives.span[k][0]
	i, _ := slices.BinarySearchFunc(o.lives, first, func(x int, first int32) int {
		if s.lives.span[x][1] < first {
			return -1
		}
		return 1
	})
	return i
}

// join adds a storage to the slot where it lies.
func (s *stepPlacing) join(k int) {
	e := s.extents[k]
	i, found := slices.BinarySearchFunc(s.slots, e, func(o slot, e extent) int {
		return cmp.Or(cmp.Compare(o.offset, e.offset), cmp.Compare(o.bytes, e.bytes))
	})
	if !found {
		s.slots = slices.Insert(s.slots, i, slot{extent: e})
	}
	o := &s.slots[i]
	o.pinned = o.pinned || s.lives.pinned[k]
	if len(s.lives.users[k]) > 0 {
		o.lives = slices.Insert(o.lives, s.behind(o, k), k)
		first, last := o.lives[0], o.lives[len(o.lives)-1]
		o.span = [2]int32{s.lives.span[first][0], s.lives.span[last][1]}
		o.window = [2]int32{s.lives.window[first][0], s.lives.window[last][1]}
	}
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
	placed := make([]int, len(s.storages)) // by offset
	for k := range placed {
		placed[k] = k
	}
	slices.SortStableFunc(placed, func(a, b int) int { return cmp.Compare(s.extents[a].offset, s.extents[b].offset) })
	for i, a := range placed {
		for _, b := range placed[i+1:] {
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
