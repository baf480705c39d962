package schedule

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"dahl/dag"
	"dahl/platform"
	"dahl/schedule/layout"
)

// presence is one version of an atom in a memory, from the start of its arrival until it is gone.
type presence struct {
	atom dag.AtomID
	stay
}

// leftAt notes that the current version was evicted.
func (a *atomAudit) leftAt(m platform.MemoryID, at time.Duration) {
	for i := len(a.presence) - 1; i >= 0; i-- {
		if p := &a.presence[i]; p.atom == a.id && p.memory == m {
			p.to = at
			return
		}
	}
}

// places verifies that no two storages that share bytes were in a memory at once. One may come at
// the moment at which the other goes.
func (c *audit) places() error {
	slices.SortFunc(c.presence, func(a, b presence) int { return cmp.Compare(a.from, b.from) })
	g := c.p.Graph
	for m, l := range c.p.Layouts {
		if l == nil {
			continue
		}
		until := make([]time.Duration, len(g.Buffers)) // by storage: the time at which its last version that came is gone
		for _, p := range c.presence {
			if p.memory != platform.MemoryID(m) || p.from == p.to {
				continue
			}
			x := g.AtomStorage(p.atom)
			if l.Offset[x] == layout.Elsewhere {
				return fmt.Errorf("buffer %q is in memory %q at %v and has no place there", g.Buffers[x].Name, c.p.Platform.Memories[m].Name, p.from)
			}
			for y := range until {
				if dag.BufferID(y) != x && until[y] > p.from && l.Arena[x] == l.Arena[y] &&
					l.Offset[x] < l.Offset[y]+g.Buffers[y].Bytes() && l.Offset[y] < l.Offset[x]+g.Buffers[x].Bytes() {
					return fmt.Errorf("buffer %q comes to memory %q at %v, where buffer %q, which shares bytes with it, is until %v",
						g.Buffers[x].Name, c.p.Platform.Memories[m].Name, p.from, g.Buffers[y].Name, until[y])
				}
			}
			until[x] = max(until[x], p.to)
		}
	}
	return nil
}
