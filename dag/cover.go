package dag

import (
	"fmt"
	"slices"
)

// span is a part of Graph.atomLists.
type span struct{ first, end int32 }

// coverage lists the atoms of every access. Tasks that follow each other often name the same
// region, such as the input of all filters of one sample tile, and many name a whole buffer. Such
// accesses share one list.
type coverage struct {
	*Graph
	grids  []*grid // by storage
	whole  []span  // by storage: all its atoms, once listed
	visits int     // lengths of the lists of all accesses
}

func (g *Graph) countAccesses() int {
	n := 0
	for t := range g.Tasks {
		n += len(g.Tasks[t].Accesses)
	}
	return n
}

// coverAccesses fills access, covers and atomLists.
func (g *Graph) coverAccesses(grids []*grid, only []bool) error {
	c := coverage{Graph: g, grids: grids, whole: make([]span, len(g.Buffers))}
	accesses := g.countAccesses()
	if accesses > maxAtomVisits {
		return fmt.Errorf("%d accesses; at most %d can be analysed", accesses, maxAtomVisits)
	}
	g.access = make([]int32, len(g.Tasks)+1)
	g.covers = make([]Covered, 0, accesses)
	for t := range g.Tasks {
		for i, a := range g.Tasks[t].Accesses {
			of := Covered{Storage: g.Storage(a.Buffer), Mode: a.Mode}
			if g.covers = append(g.covers, of); only != nil && !only[of.Storage] {
				continue
			}
			s, err := c.list(t, i)
			if err != nil {
				return fmt.Errorf("task %q: %w", g.Tasks[t].Name, err)
			}
			if c.visits += int(s.end - s.first); c.visits > maxAtomVisits {
				return fmt.Errorf("task %q: the accesses so far cover more than %d pieces of their buffers; use fewer or coarser splits", g.Tasks[t].Name, maxAtomVisits)
			}
			g.covers[len(g.covers)-1].span = s
		}
		g.access[t+1] = int32(len(g.covers))
	}
	g.atomLists = fit(g.atomLists)
	return nil
}

// list returns the atoms of an access. It lists them anew only if it has to.
func (c *coverage) list(t, i int) (span, error) {
	a := &c.Tasks[t].Accesses[i]
	storage := c.Storage(a.Buffer)
	first, end := c.StorageAtoms(a.Buffer)
	begin := int32(len(c.atomLists))
	if a.Box == nil || end-first == 1 {
		if c.whole[storage].end == 0 {
			for atom := first; atom < end; atom++ {
				c.atomLists = append(c.atomLists, int32(atom))
			}
			c.whole[storage] = span{begin, int32(len(c.atomLists))}
		}
		return c.whole[storage], nil
	}
	if t > 0 && i < len(c.Tasks[t-1].Accesses) {
		if b := &c.Tasks[t-1].Accesses[i]; b.Buffer == a.Buffer && slices.Equal(a.Box, b.Box) {
			return c.covers[int(c.access[t-1])+i].span, nil
		}
	}
	boxes, err := c.grids[storage].boxesOf(c.Buffers[a.Buffer].Shape, a.Box)
	if err != nil {
		return span{}, err
	}
	for _, box := range boxes {
		c.atomLists = c.grids[storage].appendAtoms(c.atomLists, box)
	}
	return span{begin, int32(len(c.atomLists))}, nil
}
