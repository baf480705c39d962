package layout

import (
	"cmp"
	"math/bits"
	"slices"

	"dahl/dag"
)

// pair is two storages of which the users of the first come before the users of the second, in the same step or in the next one.
type pair struct{ x, y int }

// ends are the users of a storage that the graph puts after no other user, and before no other.
type ends struct{ first, last []dag.TaskID }

// findEnds finds the ends of storages. It sweeps over the tasks with 64 storages at a time, each a bit of the word
// of a task for all before or after it. A sweep goes from the first user of these storages to the last, which are near each other for
// storages with near first users.
func (l *lifetimes) findEnds(storages []int) []ends {
	found := make([]ends, len(l.users))
	words := l.sweepWords()
	uses, other := words[0], words[1]
	n := l.Links.NumTasks()
	near := slices.SortedFunc(slices.Values(storages), func(x, y int) int { return cmp.Compare(l.users[x][0], l.users[y][0]) })
	for group := range slices.Chunk(near, 64) {
		first, last := n-1, 0
		for _, x := range group {
			first, last = min(first, int(l.users[x][0])), max(last, int(l.users[x][len(l.users[x])-1]))
		}
		clear(uses[first : last+1])
		for bit, x := range group {
			for _, t := range l.users[x] {
				uses[t] |= 1 << bit
			}
		}
		for t := last; t >= first; t-- {
			other[t] = 0
			for _, s := range l.Links.Succs(dag.TaskID(t)) {
				if int(s) > last {
					break
				}
				other[t] |= other[s] | uses[s]
			}
			for end := uses[t] &^ other[t]; end != 0; end &= end - 1 {
				x := group[bits.TrailingZeros64(end)]
				found[x].last = append(found[x].last, dag.TaskID(t))
			}
		}
		for t := first; t <= last; t++ {
			other[t] = 0
			for _, p := range slices.Backward(l.Links.Preds(dag.TaskID(t))) {
				if int(p) < first {
					break
				}
				other[t] |= other[p] | uses[p]
			}
			for end := uses[t] &^ other[t]; end != 0; end &= end - 1 {
				x := group[bits.TrailingZeros64(end)]
				found[x].first = append(found[x].first, dag.TaskID(t))
			}
		}
	}
	return found
}

// sweepWords are words of each task that sweeps use in turn. The last one is zero between them.
func (o *orders) sweepWords() *[3][]uint64 {
	if o.words[0] == nil {
		for i := range o.words {
			o.words[i] = make([]uint64, o.Links.NumTasks())
		}
	}
	return &o.words
}

// mostSwept bounds the steps of sweeps. These find the orders that the graph implies already.
const mostSwept = 1 << 23

// connect puts the last users of the first storage of each pair before the first users of the second, where the graph does not do
// so already: in the same step, or with next into the next step. Where that takes too many steps to find out, it puts all.
func (l *lifetimes) connect(pairs []pair, found []ends, next bool) []dag.Edge {
	var edges []dag.Edge
	for _, p := range pairs {
		for _, from := range found[p.x].last {
			for _, to := range found[p.y].first {
				edges = append(edges, dag.Edge{From: from, To: to})
			}
		}
	}
	slices.SortFunc(edges, func(a, b dag.Edge) int { return cmp.Or(cmp.Compare(a.To, b.To), cmp.Compare(a.From, b.From)) })
	if edges = slices.Compact(edges); len(edges)/64*l.Links.NumTasks() <= mostSwept {
		edges = l.missing(edges, next)
	}
	return dag.SortEdges(edges)
}

// missing are the edges that the graph does not imply. They are sorted by their ends, of which a sweep over the tasks
// finds 64 at a time.
func (l *lifetimes) missing(edges []dag.Edge, next bool) (missing []dag.Edge) {
	n, words := l.Links.NumTasks(), l.sweepWords()
	here, across := words[0], words[1] // by task: the ends that come after it, in its step and in the next
	bit := words[2]                    // of each end; zero before and after
	for len(edges) > 0 {
		ends, taken := 0, 0
		for ; taken < len(edges); taken++ {
			if to := edges[taken].To; bit[to] == 0 {
				if ends == 64 {
					break
				}
				bit[to] = 1 << ends
				ends++
			}
		}
		first, last := n, edges[taken-1].To
		for _, e := range edges[:taken] {
			first = min(first, int(e.From))
		}
		if next {
			l.sweep(bit, here, 0, int(last))
			l.cross(bit, here, across, first, int(last))
		} else {
			l.sweep(bit, here, first, int(last))
		}
		known := here
		if next {
			known = across
		}
		for _, e := range edges[:taken] {
			if !next && e.From >= e.To || known[e.From]&bit[e.To] == 0 {
				missing = append(missing, e)
			}
		}
		for _, e := range edges[:taken] {
			bit[e.To] = 0
		}
		edges = edges[taken:]
	}
	return missing
}

// sweep finds the tasks with a bit that come after each task from first on in its step. The greatest task with a bit is last.
func (l *lifetimes) sweep(bit, here []uint64, first, last int) {
	for t := last; t >= first; t-- {
		here[t] = 0
		for _, s := range l.Links.Succs(dag.TaskID(t)) {
			if int(s) > last {
				break
			}
			here[t] |= here[s] | bit[s]
		}
	}
}

// cross finds the tasks with a bit that come in the next step after each task from first on. The greatest task with a bit is last.
func (l *lifetimes) cross(bit, here, across []uint64, first, last int) {
	for t := l.Links.NumTasks() - 1; t >= first; t-- {
		id := dag.TaskID(t)
		across[t] = 0
		for _, s := range l.Links.Succs(id) {
			across[t] |= across[s]
		}
		for _, links := range [2][]int32{l.Links.CarriedSuccs(id), l.Links.ReuseSuccs(id, 1)} {
			for _, s := range links {
				if int(s) > last {
					break
				}
				across[t] |= here[s] | bit[s]
			}
		}
	}
}
