package layout

import (
	"cmp"
	"fmt"
	"iter"
	"math"
	"slices"

	"dahl/dag"
	"dahl/schedule/ready"
)

// MaxTasks is the largest number of tasks, and of storages, for which sharing is looked
// for: three relations keep a set of tasks for each task, 8 MiB per relation at this size. The
// storages of larger graphs get bytes of their own.
const MaxTasks = 1 << 13

// lifetimes says which storages are never live together.
//
// Storage x is before y if every use of x comes before every use of y. Two
// storages share bytes in a loop if three orders hold: x before y in a step, y of one step before
// x of the next, and x of one step before y of the next. The graph or the plan gives the first.
// The second is added where the graph does not give it. The third follows: y of the next step
// waits for y of this step, which comes after x.
type lifetimes struct {
	*orders
	users  [][]dag.TaskID // by storage
	pinned []bool         // by storage: shares with none
	common []bitset       // by storage: tasks that come after every user, plan included
	span   [][2]int32     // by storage: positions of the first and the last user in the order of the tasks

	first, last [][]dag.TaskID // by storage: users that the graph puts before, after no other
}

// bitset is a set of tasks; relation a set for each task.
type (
	bitset   []uint64
	relation []bitset
)

func (b bitset) has(t dag.TaskID) bool { return b[t/64]&(1<<(t%64)) != 0 }
func (b bitset) add(t dag.TaskID)      { b[t/64] |= 1 << (t % 64) }
func (b bitset) or(c bitset) {
	for i, w := range c {
		b[i] |= w
	}
}
func (b bitset) and(c bitset) {
	for i, w := range c {
		b[i] &= w
	}
}

func newRelation(rows, tasks int) relation {
	words := (tasks + 63) / 64
	slab := make(bitset, rows*words)
	r := make(relation, rows)
	for i := range r {
		r[i] = slab[i*words : (i+1)*words : (i+1)*words]
	}
	return r
}

// orders knows the order of the tasks of a graph.
type orders struct {
	*Graph
	users    [][]dag.TaskID // by storage, in program order
	inGraph  relation       // by the graph alone, within a step
	across   relation       // by the graph alone, into the next step
	planned  relation       // within a step, by the plan too if there is one
	position []int32        // by task, in an order of all that keeps planned
}

// ordersOf finds the order of the tasks of each graph. Nil means that the graph is too large.
func ordersOf(graphs []*Graph) ([]*orders, error) {
	all := make([]*orders, len(graphs))
	for i, g := range graphs {
		if g.Links.NumTasks() > MaxTasks {
			continue
		}
		o := &orders{Graph: g, users: g.users(), inGraph: reachable(g.Links, nil, nil)}
		o.across = o.reachableNext()
		o.planned, o.position = o.inGraph, make([]int32, g.Links.NumTasks())
		for t := range o.position {
			o.position[t] = int32(t)
		}
		if g.Order != nil {
			sorted, stuck := ready.Sort(g.Links, nil, g.Order)
			if stuck >= 0 {
				return nil, fmt.Errorf("layout of graph %q: the plan's order contradicts the dependences: task %q could never start", g.Name, g.TaskName(stuck))
			}
			o.planned = reachable(g.Links, g.Order, sorted)
			for at, t := range sorted {
				o.position[t] = int32(at)
			}
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

// newLifetimes returns nil where there are too many storages, or no orders. keeps names further
// storages whose contents are needed later.
func newLifetimes(o *orders, storages []dag.BufferID, keeps func(dag.BufferID) bool) *lifetimes {
	if o == nil || len(storages) > MaxTasks {
		return nil
	}
	l := &lifetimes{orders: o, users: make([][]dag.TaskID, len(storages)), pinned: make([]bool, len(storages)), span: make([][2]int32, len(storages))}
	for k, id := range storages { // a storage without users may lie anywhere
		l.users[k] = o.users[id]
		l.pinned[k] = (o.Carried[id] || !o.Written[id]) && len(l.users[k]) > 0 || o.versions(id) > 1 || keeps(id)
	}
	l.common = newRelation(len(storages), o.Links.NumTasks())
	for k, users := range l.users {
		for i := range l.common[k] {
			l.common[k][i] = ^uint64(0)
		}
		l.span[k] = [2]int32{math.MaxInt32, -1}
		for _, t := range users {
			l.common[k].and(o.planned[t])
			l.span[k] = [2]int32{min(l.span[k][0], o.position[t]), max(l.span[k][1], o.position[t])}
		}
	}
	return l
}

// reachable is the tasks after each task in the same step, by the graph and the
// order of the workers' lists. sorted is a topological order. Nil means program order.
func reachable(g *dag.Links, lists [][]dag.TaskID, sorted []dag.TaskID) relation {
	n := g.NumTasks()
	if sorted == nil {
		sorted = make([]dag.TaskID, n)
		for t := range sorted {
			sorted[t] = dag.TaskID(t)
		}
	}
	nextOnWorker := slices.Repeat([]dag.TaskID{-1}, n)
	for _, list := range lists {
		for k := 1; k < len(list); k++ {
			nextOnWorker[list[k-1]] = list[k]
		}
	}
	r := newRelation(n, n)
	follow := func(t, s dag.TaskID) {
		if !r[t].has(s) { // else it has all that comes after s too
			r[t].add(s)
			r[t].or(r[s])
		}
	}
	for _, t := range slices.Backward(sorted) {
		for _, s := range g.Succs(t) {
			follow(t, dag.TaskID(s))
		}
		if s := nextOnWorker[t]; s >= 0 {
			follow(t, s)
		}
	}
	return r
}

// reachableNext is the tasks of the next step after each task of this one.
func (o *orders) reachableNext() relation {
	g, n := o.Links, o.Links.NumTasks()
	r := newRelation(n, n)
	for t := n - 1; t >= 0; t-- {
		id := dag.TaskID(t)
		for _, s := range g.Succs(id) {
			r[t].or(r[s])
		}
		for _, next := range [2][]int32{g.CarriedSuccs(id), g.ReuseSuccs(id, 1)} {
			for _, s := range next {
				r[t].add(dag.TaskID(s))
				r[t].or(o.inGraph[s])
			}
		}
	}
	return r
}

// ordered reports whether two storages may share bytes.
func (l *lifetimes) ordered(x, y int) bool { return l.before(x, y) || l.before(y, x) }

func (l *lifetimes) before(x, y int) bool {
	if l.pinned[x] || l.pinned[y] || l.span[x][1] >= l.span[y][0] { // the last is cheap, and mostly so
		return false
	}
	for _, t := range l.users[y] {
		if !l.common[x].has(t) {
			return false
		}
	}
	return true
}

// edges are the orders that the sharing needs and the graph does not give. Of
// the storages that share bytes with one, only its neighbours in the order of
// lifetimes matter: the others follow through them.
func (l *lifetimes) edges(extents []extent) (reuse, next []dag.Edge) {
	l.first, l.last = make([][]dag.TaskID, len(l.users)), make([][]dag.TaskID, len(l.users))
	var sorted []int // so that none is before an earlier one
	for x := range l.users {
		if !l.pinned[x] && len(l.users[x]) > 0 {
			sorted = append(sorted, x)
		}
	}
	slices.SortFunc(sorted, func(x, y int) int { return cmp.Or(cmp.Compare(l.span[x][0], l.span[y][0]), cmp.Compare(x, y)) })
	for i, x := range sorted {
		later := sorted[i+1:]
		if l.Order != nil {
			for _, y := range l.nearest(x, slices.Values(later), extents) {
				reuse = l.connect(reuse, x, y, l.inGraph)
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
			next = l.connect(next, y, x, l.across)
		}
	}
	return dag.SortEdges(reuse), dag.SortEdges(next)
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

// connect puts the last users of one storage before the first users of another,
// where a relation does not do so already.
func (l *lifetimes) connect(edges []dag.Edge, x, y int, known relation) []dag.Edge {
	l.findEnds(x)
	l.findEnds(y)
	for _, from := range l.last[x] {
		for _, to := range l.first[y] {
			if !known[from].has(to) {
				edges = append(edges, dag.Edge{From: from, To: to})
			}
		}
	}
	return edges
}

// findEnds finds the users of a storage without an earlier user of it, and the ones without a later user.
func (l *lifetimes) findEnds(x int) {
	if l.first[x] != nil {
		return
	}
	users := l.users[x]
	for i, t := range users { // the graph puts none before an earlier one
		if !slices.ContainsFunc(users[i+1:], l.inGraph[t].has) {
			l.last[x] = append(l.last[x], t)
		}
		if !slices.ContainsFunc(users[:i], func(earlier dag.TaskID) bool { return l.inGraph[earlier].has(t) }) {
			l.first[x] = append(l.first[x], t)
		}
	}
}
