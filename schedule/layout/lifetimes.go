package layout

import (
	"cmp"
	"iter"
	"math"
	"slices"

	"dahl/dag"
)

// lifetimes says which storages are never live together.
//
// Storage x is before y if every use of x comes before every use of y. Two
// storages share bytes in a loop if three orders hold: x before y in a step, y of one step before
// x of the next, and x of one step before y of the next. The graph or the plan gives the first.
// The second is added where the graph does not give it. The third follows: y of the next step
// waits for y of this step, which comes after x.
type lifetimes struct {
	*orders
	users         [][]dag.TaskID // by storage
	pinned        []bool         // by storage: shares with none
	firsts, lasts [][]dag.TaskID // by storage: the first and the last user on each chain that has some
	span          [][2]int32     // by storage: positions of the first and the last user in the order of the tasks
	main          int32          // the chain with the users of most storages
	// window, by storage: positions on the main chain. Its tasks before the first come before every user, and those behind the second after
	// every user.
	window [][2]int32
	onMain []bool // by storage: all its users are on the main chain
}

// orders knows the order of the tasks of a graph.
type orders struct {
	*Graph
	users    [][]dag.TaskID // by storage, in program order
	planned  *chains        // within a step, by the plan too if there is one
	position []int32        // by task, in an order of all that keeps planned
	words    [3][]uint64    // of sweeps, see sweepWords
}

// ordersOf finds the order of the tasks of each graph. Nil means that storages lie apart, or have too many chains.
func ordersOf(graphs []*Graph) ([]*orders, error) {
	all := make([]*orders, len(graphs))
	for i, g := range graphs {
		if g.Apart {
			continue
		}
		sorted, err := g.sorted()
		if err != nil {
			return nil, err
		}
		o := &orders{Graph: g, users: g.users(), planned: newChains(g.Links, g.Order, sorted), position: make([]int32, len(sorted))}
		if o.planned == nil {
			continue
		}
		for at, t := range sorted {
			o.position[t] = int32(at)
		}
		all[i] = o
	}
	return all, nil
}

// users are the tasks that use each storage, in program order.
func (g *Graph) users() [][]dag.TaskID {
	users := make([][]dag.TaskID, len(g.Buffers))
	for task := range dag.TaskID(g.Links.NumTasks()) {
		g.Each(task, func(storage dag.BufferID, _ dag.Mode, _ []int32, _ int32) {
			if u := users[storage]; len(u) == 0 || u[len(u)-1] != task {
				users[storage] = append(u, task)
			}
		})
	}
	return users
}

// newLifetimes returns nil where there are no orders.
func newLifetimes(o *orders, storages []dag.BufferID) *lifetimes {
	if o == nil {
		return nil
	}
	l := &lifetimes{orders: o, users: make([][]dag.TaskID, len(storages)), pinned: make([]bool, len(storages)), span: make([][2]int32, len(storages)),
		firsts: make([][]dag.TaskID, len(storages)), lasts: make([][]dag.TaskID, len(storages)), window: make([][2]int32, len(storages)), onMain: make([]bool, len(storages))}
	for k, id := range storages { // a storage without users may lie anywhere
		l.users[k] = o.users[id]
		l.pinned[k] = o.pinned(id, len(l.users[k]) > 0)
	}
	alone := make([]int, o.planned.count) // by chain: storages with all users there
	for k, users := range l.users {
		l.firsts[k], l.lasts[k] = o.planned.ends(users)
		l.span[k] = [2]int32{math.MaxInt32, -1}
		for _, t := range users {
			l.span[k] = [2]int32{min(l.span[k][0], o.position[t]), max(l.span[k][1], o.position[t])}
		}
		if len(l.firsts[k]) == 1 {
			alone[o.planned.chain[users[0]]]++
		}
	}
	for c, n := range alone {
		if n > alone[l.main] {
			l.main = int32(c)
		}
	}
	for k := range l.users {
		l.window[k] = l.planned.window(l.main, l.firsts[k], l.lasts[k])
		l.onMain[k] = len(l.firsts[k]) == 1 && l.planned.chain[l.firsts[k][0]] == l.main
	}
	return l
}

// ordered reports whether two storages may share bytes.
func (l *lifetimes) ordered(x, y int) bool { return l.before(x, y) || l.before(y, x) }

func (l *lifetimes) before(x, y int) bool {
	if l.pinned[x] || l.pinned[y] || l.span[x][1] >= l.span[y][0] { // the last is cheap, and mostly so
		return false
	}
	switch last, first := l.window[x][1], l.window[y][0]; {
	case last+1 < first: // a task of the main chain lies between
		return true
	case l.onMain[x] || l.onMain[y]:
		return last < first
	}
	for _, first := range l.firsts[y] {
		for _, last := range l.lasts[x] {
			if !l.planned.before(last, first) {
				return false
			}
		}
	}
	return true
}

// edges are the orders that the sharing needs and the graph does not give. Of
// the storages that share bytes with one, only its neighbours in the order of
// lifetimes matter: the others follow through them.
func (l *lifetimes) edges(extents []extent) (reuse, next []dag.Edge) {
	sorted := l.sharing(extents) // so that none is before an earlier one
	slices.SortFunc(sorted, func(x, y int) int { return cmp.Or(cmp.Compare(l.span[x][0], l.span[y][0]), cmp.Compare(x, y)) })
	var after, before []pair
	for i, x := range sorted {
		later := sorted[i+1:]
		if l.Order != nil {
			for _, y := range l.nearest(x, slices.Values(later), extents) {
				after = append(after, pair{x, y})
			}
		}
		farthest := func(yield func(int) bool) {
			for _, y := range slices.Backward(later) {
				if !yield(y) {
					return
				}
			}
		}
		for _, y := range l.nearest(x, farthest, extents) {
			before = append(before, pair{y, x})
		}
	}
	found := l.findEnds(sorted)
	return l.connect(after, found, false), l.connect(before, found, true)
}

// sharing are the storages of which some bytes may be another one's too.
func (l *lifetimes) sharing(extents []extent) (all []int) {
	byOffset := make([]int, 0, len(extents))
	for x := range extents {
		if !l.pinned[x] && len(l.users[x]) > 0 {
			byOffset = append(byOffset, x)
		}
	}
	slices.SortFunc(byOffset, func(x, y int) int { return cmp.Compare(extents[x].offset, extents[y].offset) })
	var end int64 // of those before
	for i, x := range byOffset {
		if extents[x].offset < end || i+1 < len(byOffset) && extents[byOffset[i+1]].offset < extents[x].end() {
			all = append(all, x)
		}
		end = max(end, extents[x].end())
	}
	return all
}

// nearest filters storages that share bytes with x and come after it. It leaves out a storage with bytes of an
// earlier one in the list.
func (l *lifetimes) nearest(x int, others iter.Seq[int], extents []extent) (found []int) {
	e := extents[x]
	var taken []extent // by those until now, apart from each other, by offset
	for y := range others {
		if !e.meets(extents[y]) || !l.before(x, y) {
			continue
		}
		var alone bool
		if taken, alone = unite(taken, extents[y]); alone {
			found = append(found, y)
		}
		if t := taken; len(t) == 1 && t[0].offset <= e.offset && t[0].end() >= e.end() {
			break // whatever else shares bytes with x does so with one of them
		}
	}
	return found
}

// unite adds an extent to some that are apart and lie by offset, and reports whether it meets none of them.
func unite(taken []extent, e extent) (all []extent, alone bool) {
	first, _ := slices.BinarySearchFunc(taken, e.offset, func(t extent, offset int64) int { return cmp.Compare(t.end(), offset) })
	after, alone := first, true
	for ; after < len(taken) && taken[after].offset <= e.end(); after++ {
		alone = alone && !taken[after].meets(e)
		offset := min(e.offset, taken[after].offset)
		e = extent{offset, max(e.end(), taken[after].end()) - offset}
	}
	return slices.Replace(taken, first, after, e), alone
}
