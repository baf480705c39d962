package dag

import (
	"cmp"
	"slices"
)

// Edge is an order between two tasks: To starts after From has ended.
type Edge struct{ From, To TaskID }

// SortEdges sorts edges and leaves each once.
func SortEdges(edges []Edge) []Edge {
	if !slices.IsSortedFunc(edges, func(a, b Edge) int { return cmp.Compare(a.key(), b.key()) }) {
		keys := make([]uint64, len(edges)) // sorted faster than pairs
		for i, e := range edges {
			keys[i] = e.key()
		}
		slices.Sort(keys)
		for i, k := range keys {
			edges[i] = Edge{TaskID(k >> 32), TaskID(uint32(k))}
		}
	}
	return slices.Compact(edges)
}

// key orders edges by their first task, then by the second.
func (e Edge) key() uint64 { return uint64(uint32(e.From))<<32 | uint64(uint32(e.To)) }

// Turn returns the edges in the opposite direction.
func Turn(edges []Edge) []Edge {
	back := make([]Edge, len(edges))
	for i, e := range edges {
		back[i] = Edge{e.To, e.From}
	}
	return back
}

// Rows are small lists in compressed form, such as one for each task: list i is
// to[start[i]:start[i+1]]. Without any there are no starts.
type Rows struct{ start, to []int32 }

// NewRows lists the To of every From, of n tasks.
func NewRows(n int, edges []Edge) Rows {
	if len(edges) == 0 {
		return Rows{}
	}
	r := Rows{make([]int32, n+1), make([]int32, len(edges))}
	for _, e := range edges {
		r.start[e.From+1]++
	}
	for i := range n {
		r.start[i+1] += r.start[i]
	}
	next := slices.Clone(r.start[:n])
	for _, e := range edges {
		r.to[next[e.From]] = int32(e.To)
		next[e.From]++
	}
	return r
}

// Row is one of the lists.
func (r Rows) Row(i int32) []int32 {
	if len(r.to) == 0 {
		return nil
	}
	return r.to[r.start[i]:r.start[i+1]]
}

// All are the lists, one after the other.
func (r Rows) All() []int32 { return r.to }

// fit returns the rows without what growing left over.
func (r Rows) fit() Rows {
	if len(r.to) == 0 {
		return Rows{}
	}
	return Rows{r.start, fit(r.to)}
}

// transpose returns the rows turned round, for n rows.
func (r Rows) transpose(n int) Rows {
	if len(r.to) == 0 {
		return Rows{}
	}
	t := Rows{start: make([]int32, n+1), to: make([]int32, len(r.to))}
	for _, v := range r.to {
		t.start[v]++
	}
	end := int32(0)
	for i, count := range t.start { // where each row ends: filling it from its end makes that its start
		end += count
		t.start[i] = end
	}
	for i := len(r.start) - 2; i >= 0; i-- {
		for _, v := range r.Row(int32(i)) {
			t.start[v]--
			t.to[t.start[v]] = int32(i)
		}
	}
	return t
}

// closeRow ends a row whose entries were appended: it keeps each once, in ascending order.
func (r *Rows) closeRow() {
	begin := int(r.start[len(r.start)-1])
	if row := r.to[begin:]; len(row) > 1 {
		slices.Sort(row)
		r.to = r.to[:begin+len(slices.Compact(row))]
	}
	r.start = append(r.start, int32(len(r.to)))
}
