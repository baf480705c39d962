package schedule

import (
	"cmp"
	"slices"

	"dahl/dag"
	"dahl/platform"
	"dahl/schedule/layout"
)

// sharing knows which storages have bytes in common in a memory, by the layouts of the problem,
// and which copies are moving.
//
// A copy may outlive the contents that it moves: its task ran elsewhere, or an evicted atom is
// written again before it has left. The bytes of the copy still arrive. They must not land on
// newer ones. So a task does not start to write an atom that a started copy reads or writes in
// any memory, nor bytes that share a place with it in the task's memory. A copy does not start to
// write there either. This wait is always for started copies, which end whatever else happens.
type sharing struct {
	g       *dag.Graph
	with    [][][]int32 // by memory and storage: the storages that share bytes with it; nil: no layout
	touched [][]int32   // by memory and storage: number of started copies from and to there
	moving  []int32     // by atom: number of started copies in any memory
}

func newSharing(p *Problem) *sharing {
	s := &sharing{g: p.Graph, with: make([][][]int32, len(p.Platform.Memories)),
		touched: make([][]int32, len(p.Platform.Memories)), moving: make([]int32, p.Graph.NumAtoms())}
	for m, l := range p.Layouts {
		if l != nil {
			s.with[m], s.touched[m] = sharesWith(l, p.Graph), make([]int32, len(p.Graph.Buffers))
		}
	}
	return s
}

// sharesWith lists for each storage the others that have bytes in common with it.
func sharesWith(l *layout.Layout, g *dag.Graph) [][]int32 {
	with := make([][]int32, len(g.Buffers))
	end := func(b int32) int64 { return l.Offset[b] + g.Buffers[b].Bytes() }
	var placed []int32
	for b := range g.Buffers {
		if g.Storage(dag.BufferID(b)) == dag.BufferID(b) && l.Offset[b] != layout.Elsewhere {
			placed = append(placed, int32(b))
		}
	}
	slices.SortFunc(placed, func(a, b int32) int {
		return cmp.Or(cmp.Compare(l.Arena[a], l.Arena[b]), cmp.Compare(l.Offset[a], l.Offset[b]), cmp.Compare(a, b))
	})
	for i, x := range placed {
		for _, y := range placed[i+1:] {
			if l.Arena[y] != l.Arena[x] || l.Offset[y] >= end(x) {
				break
			}
			if end(y) > l.Offset[y] { // not empty
				with[x], with[y] = append(with[x], y), append(with[y], x)
			}
		}
	}
	return with
}

// of lists the storages that share bytes with one in a memory.
func (s *sharing) of(m platform.MemoryID, storage dag.BufferID) []int32 {
	if s.with[m] == nil {
		return nil
	}
	return s.with[m][storage]
}

// any reports whether storages share bytes in a memory.
func (s *sharing) any(m platform.MemoryID) bool {
	for _, with := range s.with[m] {
		if len(with) > 0 {
			return true
		}
	}
	return false
}

// touch notes that a copy starts (1) or ends (-1).
func (s *sharing) touch(f *flight, n int32) {
	for _, a := range f.Atoms {
		s.moving[a] += n
	}
	for _, m := range [2]platform.MemoryID{f.From, f.To} {
		if s.touched[m] != nil {
			s.touched[m][f.Buffer] += n
		}
	}
}

// still reports whether no copy reads or writes storages that share bytes with one in a memory.
func (s *sharing) still(m platform.MemoryID, storage dag.BufferID) bool {
	for _, other := range s.of(m, storage) {
		if s.touched[m][other] > 0 {
			return false
		}
	}
	return true
}

// mayWrite reports whether no copy is in the way of a task's results in a memory.
func (s *sharing) mayWrite(t dag.TaskID, m platform.MemoryID) bool {
	for k, access := range s.g.Tasks[t].Accesses {
		if !access.Mode.Writes() {
			continue
		}
		for _, a := range s.g.Atoms(t, k) {
			if s.moving[a] > 0 {
				return false
			}
		}
		if !s.still(m, s.g.Storage(access.Buffer)) {
			return false
		}
	}
	return true
}
