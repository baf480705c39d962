package execute

import (
	"cmp"
	"fmt"

	"dahl/dag"
	"dahl/execute/host"
	"dahl/platform"
	"dahl/schedule/layout"
)

const (
	// poison is NaN in both float types and -1 as an index, so a read before the first write
	// shows.
	poison = 0xFF
	// maxArenaBytes bounds the request to the system where the platform does not say how much
	// memory there is.
	maxArenaBytes = 1 << 46
)

// arenas are the memory of a runner, by layout.Arena. Each slice is as long as
// its arena, with a guard of host.GuardBytes up to its capacity.
type arenas [layout.NumArenas][]byte

// newArenas allocates every arena at its greatest size over the layouts, since the step and the
// scratch arena serve one graph at a time. It refuses arenas that the memory cannot hold.
func newArenas(layouts []*layout.Layout, m *platform.Memory) (*arenas, error) {
	var size [layout.NumArenas]int64
	total := int64(0)
	for i := range size {
		for _, l := range layouts {
			size[i] = max(size[i], l.ArenaBytes[i])
		}
		total += min(size[i], maxArenaBytes)
	}
	limit := cmp.Or(m.CapacityBytes, maxArenaBytes)
	if total > limit {
		return nil, fmt.Errorf("%d bytes (network %d, data %d, step %d, scratch %d) do not fit memory %q of %d bytes: %d too many",
			total, size[0], size[1], size[2], size[3], m.Name, limit, total-limit)
	}
	var a arenas
	for i := range a {
		a[i] = host.AlignedBytes(size[i])
	}
	return &a, nil
}

// touch writes to every page of one of several equal parts of all arenas. So no step waits for
// the system to find and clear pages, and they lie near the worker that touches them.
func (a *arenas) touch(part, parts int) {
	for _, b := range a {
		first, end := pagesOf(b, part, parts)
		for ; first < end; first += host.PageBytes {
			b[first] = 0
		}
	}
}

// poison fills one of several equal parts of all arenas, guards included, with the pattern.
func (a *arenas) poison(part, parts int) {
	for _, b := range a {
		b = b[:cap(b)]
		first, end := pagesOf(b, part, parts)
		if b = b[first:min(end, len(b))]; len(b) == 0 {
			continue
		}
		b[0] = poison
		for done := 1; done < len(b); done *= 2 {
			copy(b[done:], b[:done])
		}
	}
}

// pagesOf divides memory into parts at pages; end may exceed the last byte.
func pagesOf(b []byte, part, parts int) (first, end int) {
	pages := (len(b) + host.PageBytes - 1) / host.PageBytes
	return pages * part / parts * host.PageBytes, pages * (part + 1) / parts * host.PageBytes
}

// written is one past the last byte that does not hold the pattern.
func written(b []byte) int64 {
	n := len(b)
	for n > 0 && b[n-1] == poison {
		n--
	}
	return int64(n)
}

// offsetOf is where the copy of a buffer lies in its arena that a step uses.
func offsetOf(l *layout.Layout, g *dag.Graph, b dag.BufferID, step int32) int64 {
	return l.Offset(b) + int64(step%g.Versions(b))*layout.Align(g.Buffers[b].Bytes())
}

// storage is the bytes of a buffer in a step.
func (a *arenas) storage(l *layout.Layout, g *dag.Graph, b dag.BufferID, step int32) []byte {
	first := offsetOf(l, g, b, step)
	end := first + g.Buffers[b].Bytes()
	return a[l.Arena(b)][first:end:end]
}

// checkShared verifies that buffers of one name in the network and data arenas lie at one place
// in all graphs.
func checkShared(prog *dag.Program, layouts []*layout.Layout) error {
	type place struct {
		graph  string
		arena  layout.Arena
		offset int64
		bytes  int64
	}
	seen := map[string]place{}
	for i, g := range prog.Graphs {
		l := layouts[i]
		for b := range dag.BufferID(len(g.Buffers)) {
			if l.Arena(b) >= layout.StepArena || l.Offset(b) < 0 { // negative in another memory
				continue
			}
			buf := &g.Buffers[b]
			here := place{g.Name, l.Arena(b), l.Offset(b), buf.Bytes()}
			there, ok := seen[buf.Name]
			if !ok {
				seen[buf.Name] = here
			} else if there.arena != here.arena || there.offset != here.offset || there.bytes != here.bytes {
				return fmt.Errorf("buffer %q: %d bytes of arena %d from %d in graph %q, %d bytes of arena %d from %d in %q",
					buf.Name, there.bytes, there.arena, there.offset, there.graph, here.bytes, here.arena, here.offset, g.Name)
			}
		}
	}
	return nil
}
