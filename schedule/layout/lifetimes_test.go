package layout

import (
	"iter"
	"math/rand/v2"
	"slices"
	"testing"

	"dahl/dag"
	"dahl/must"
)

// placedLives are the lifetimes of the storages of a graph that lie in the step arena, and where they lie.
func placedLives(t *testing.T, g *dag.Graph, order [][]dag.TaskID) (*lifetimes, []extent) {
	t.Helper()
	l := must.Get(layOutByPlan(g, order))(t)
	in := inOneMemory(g)
	in.Order = order
	o := must.Get(ordersOf([]*Graph{in}))(t)
	var ids []dag.BufferID
	var extents []extent
	for i := range g.Buffers {
		if b := dag.BufferID(i); l.Arena(b) == StepArena && in.storage(b) == b {
			ids, extents = append(ids, b), append(extents, extent{l.Offset(b), in.bytes(b)})
		}
	}
	return newLifetimes(o[0], ids), extents
}

// reachable says for each task of a graph which tasks of its step come after it, by the graph and by lists.
func reachable(g *dag.Graph, lists [][]dag.TaskID) [][]bool {
	n := len(g.Tasks)
	r := make([][]bool, n)
	for t := range r {
		r[t] = make([]bool, n)
		for _, s := range g.Succs(dag.TaskID(t)) {
			r[t][s] = true
		}
	}
	for _, list := range lists {
		for k := 1; k < len(list); k++ {
			r[list[k-1]][list[k]] = true
		}
	}
	for via := range r { // Warshall
		for from := range r {
			for to := range r {
				r[from][to] = r[from][to] || r[from][via] && r[via][to]
			}
		}
	}
	return r
}

// reachableNext says which tasks of the next step come after each task. here is the same for the task's own step.
func reachableNext(g *dag.Graph, here [][]bool) [][]bool {
	n := len(g.Tasks)
	r := make([][]bool, n)
	for t := range r {
		r[t] = make([]bool, n)
		for last := range n {
			if last != t && !here[t][last] {
				continue
			}
			for _, s := range slices.Concat(g.CarriedSuccs(dag.TaskID(last)), g.ReuseSuccs(dag.TaskID(last), 1)) {
				for to := range n {
					r[t][to] = r[t][to] || to == int(s) || here[s][to]
				}
			}
		}
	}
	return r
}

// joined are the edges from the last users of one storage to the first of another one that a relation lacks. first and last are by the
// relation of a step.
func joined(lives *lifetimes, x, y int, step, known [][]bool) (edges []dag.Edge) {
	for i, from := range lives.users[x] {
		for j, to := range lives.users[y] {
			later := slices.ContainsFunc(lives.users[x][i+1:], func(t dag.TaskID) bool { return step[from][t] })
			earlier := slices.ContainsFunc(lives.users[y][:j], func(t dag.TaskID) bool { return step[t][to] })
			if !later && !earlier && !known[from][to] {
				edges = append(edges, dag.Edge{From: from, To: to})
			}
		}
	}
	return edges
}

// TestChainsAreTheOrder compares the order that chains give with all paths, for graphs alone and with lists of a plan that hold
// all tasks or some. Only lists and paths make chains, of which there are as many as there are tasks at most.
func TestChainsAreTheOrder(t *testing.T) {
	ordered := 0
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 9))
		g := randomLoop(t, r)
		sorted := make([]dag.TaskID, len(g.Tasks))
		for i := range sorted {
			sorted[i] = dag.TaskID(i)
		}
		all := randomOrder(r, g)
		for _, lists := range [][][]dag.TaskID{nil, all, all[:1]} {
			c := newChains(g.Links, lists, sorted)
			want := reachable(g, lists)
			for from := range want {
				for to := range want {
					if got := c.before(dag.TaskID(from), dag.TaskID(to)); got != want[from][to] {
						t.Fatalf("seed %d, %d lists: task %d before %d: %v, want %v", seed, len(lists), from, to, got, want[from][to])
					}
					if want[from][to] {
						ordered++
					}
				}
			}
		}
	}
	if ordered < 1000 {
		t.Errorf("only %d pairs of tasks have an order", ordered)
	}
}

// TestEdgesJoinNeighbours compares the edges with their definition, which looks at every three storages: x is put before y
// where both share bytes and no third that shares bytes with both lies between them in a step. Into the next step y is put
// before x where no third that shares bytes with both comes after y.
func TestEdgesJoinNeighbours(t *testing.T) {
	pairs := 0
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 8))
		g := randomLoop(t, r)
		for _, order := range [][][]dag.TaskID{nil, randomOrder(r, g)} {
			lives, extents := placedLives(t, g, order)
			reuse, next := lives.edges(extents)
			inGraph := reachable(g, nil)
			across := reachableNext(g, inGraph)
			share := func(x, y int) bool {
				return x != y && len(lives.users[x]) > 0 && len(lives.users[y]) > 0 && extents[x].meets(extents[y])
			}
			var wantReuse, wantNext []dag.Edge
			for x := range extents {
				for y := range extents {
					if !share(x, y) || !lives.before(x, y) {
						continue
					}
					between, beyond := false, false
					for z := range extents {
						third := share(x, z) && share(z, y) && lives.before(x, z)
						between = between || third && lives.before(z, y)
						beyond = beyond || third && lives.before(y, z)
					}
					if pairs++; order != nil && !between {
						wantReuse = append(wantReuse, joined(lives, x, y, inGraph, inGraph)...)
					}
					if !beyond {
						wantNext = append(wantNext, joined(lives, y, x, inGraph, across)...)
					}
				}
			}
			if !slices.Equal(reuse, dag.SortEdges(wantReuse)) || !slices.Equal(next, dag.SortEdges(wantNext)) {
				t.Fatalf("seed %d: edges %v and %v, want %v and %v", seed, reuse, next, wantReuse, wantNext)
			}
		}
	}
	if pairs < 1000 {
		t.Errorf("only %d pairs share bytes", pairs)
	}
}

// TestNeighboursAreFoundAtOnce: in a chain of storages of equal size only two neighbours are live at once. So they take two
// places in turn, and of those that come after a storage the second shares bytes with it, as does one of the last two. No
// more than these are looked at, however long the chain is.
func TestNeighboursAreFoundAtOnce(t *testing.T) {
	const n = 500
	lives, extents := placedLives(t, chainGraph(t, slices.Repeat([]int{64}, n)...), nil)
	if len(extents) != n {
		t.Fatalf("%d storages, want %d", len(extents), n)
	}
	looked := 0
	counted := func(list iter.Seq2[int, int]) iter.Seq[int] {
		return func(yield func(int) bool) {
			for _, y := range list {
				if looked++; !yield(y) {
					return
				}
			}
		}
	}
	all := make([]int, n) // x0, x1, …, which the chain uses in this order
	for k := range all {
		all[k] = k
	}
	for x := range n - 2 {
		later := all[x+1:]
		near, far := lives.nearest(x, counted(slices.All(later)), extents), lives.nearest(x, counted(slices.Backward(later)), extents)
		if last := n - 1 - (n-1-x)%2; !slices.Equal(near, []int{x + 2}) || !slices.Equal(far, []int{last}) {
			t.Fatalf("of %d: nearest %v, farthest %v, want %d and %d", x, near, far, x+2, last)
		}
	}
	if most := 4 * (n - 2); looked > most {
		t.Errorf("%d storages are looked at, want at most %d", looked, most)
	}
}
