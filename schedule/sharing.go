package schedule

import (
	"cmp"
	"slices"

	"dahl/dag"
	"dahl/platform"
)

// sharing is which storages have bytes in common in a memory, by the layouts of the
// problem, and what copies are under way.
//
// A copy may outlive the contents that it moves: what it was for ran elsewhere, or what
// leaves a memory for lack of room is written again before it has left. Its bytes come
// all the same. So that they never come upon newer ones, a task does not start to write
// what a copy that has started still reads or writes, in any memory, nor what shares
// bytes with it in the task's memory; nor does a copy start to write there. Whoever waits
// for that waits for copies that have started, which end whatever else happens.
type sharing struct {
	g       *dag.Graph
	with    [][][]int32 // by memory and storage: those that share bytes with it; nil: no layout
	touched [][]int32   // by memory and storage: copies from and to there that have started
	moving  []int32     // by atom: copies that have started, anywhere
}

func newSharing(p *Problem) *sharing {
	s := &sharing{g: p.Graph, with: make([][][]int32, len(p.Platform.Memories)),
		touched: make([][]int32, len(p.Platform.Memories)), moving: make([]int32, p.Graph.NumAtoms())}
	for m, l := range p.Layouts {
		if l != nil {
			s.with[m], s.touched[m] = l.sharing(p.Graph), make([]int32, len(p.Graph.Buffers))
		}
	}
	return s
}

// sharing lists for each storage the others that have bytes in common with it.
func (l *Layout) sharing(g *dag.Graph) [][]int32 {
	with := make([][]int32, len(g.Buffers))
	end := func(b int32) int64 { return l.Offset[b] + g.Buffers[b].Bytes() }
	var placed []int32
	for b := range g.Buffers {
		if g.Storage(dag.BufferID(b)) == dag.BufferID(b) && l.Offset[b] != Elsewhere {
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

// of lists those that share bytes with a storage in a memory.
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

// still reports whether no copy reads or writes bytes that a storage shares in a memory
// with others.
func (s *sharing) still(m platform.MemoryID, storage dag.BufferID) bool {
	for _, other := range s.of(m, storage) {
		if s.touched[m][other] > 0 {
			return false
		}
	}
	return true
}

// mayWrite reports whether no copy is in the way of what a task writes in a memory.
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
