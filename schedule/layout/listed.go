package layout

import (
	"cmp"
	"fmt"
	"slices"
)

// Listed is the plan's places of a graph's storages in one memory, and its sizes of the arenas. Nil means that it
// lists none.
type Listed struct {
	Places     map[string]Place // by name of the buffer
	ArenaBytes [NumArenas]int64
}

// Place is the place of a storage.
type Place struct {
	Arena  Arena
	Offset int64
}

// offsetOf is the offset of a storage in the arena to which it belongs; ok is false where
// nothing is listed at all.
func (p *Listed) offsetOf(name string, arena Arena) (offset int64, ok bool, err error) {
	if p == nil {
		return 0, false, nil
	}
	at, ok := p.Places[name]
	switch {
	case !ok:
		return 0, false, fmt.Errorf("the plan places buffers and leaves out %q", name)
	case at.Arena != arena:
		return 0, false, fmt.Errorf("the plan puts buffer %q into arena %q; it belongs to %q", name, at.Arena, arena)
	case at.Offset < 0 || at.Offset%Alignment != 0:
		return 0, false, fmt.Errorf("the plan puts buffer %q at %d, which is not aligned to %d", name, at.Offset, Alignment)
	}
	return at.Offset, true, nil
}

// reserve makes the arenas of a layout as large as the plan says. It refuses too small ones.
func (p *Listed) reserve(l *Layout) error {
	if p == nil {
		return nil
	}
	for a, bytes := range p.ArenaBytes {
		if Arena(a) == StepArena && bytes < l.ArenaBytes[a] {
			return fmt.Errorf("the plan reserves %d bytes for arena %q and puts buffers into %d", bytes, Arena(a), l.ArenaBytes[a])
		}
		l.ArenaBytes[a] = max(l.ArenaBytes[a], bytes)
	}
	return nil
}

// placedExtent is the bytes of a buffer.
type placedExtent struct {
	extent
	name string
}

// endOf is the end of the last of some buffers. It refuses two that share a byte.
func endOf(all []placedExtent) (end int64, err error) {
	slices.SortFunc(all, func(a, b placedExtent) int { return cmp.Compare(a.offset, b.offset) })
	for i, e := range all {
		if e.bytes > 0 && e.offset < end {
			return 0, fmt.Errorf("the plan lets buffers %q and %q share bytes, and both are in use at once", all[i-1].name, e.name)
		}
		end = max(end, e.offset+e.bytes)
	}
	return end, nil
}
