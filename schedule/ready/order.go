package ready

import (
	"math"
	"slices"

	"dahl/dag"
)

// ByPriority lists the tasks by priority, highest first, then by name.
func ByPriority(g *dag.Graph) []dag.TaskID {
	keys := make([]uint64, len(g.Tasks)) // by rank: 2^32 less the priority, then the rank
	tasks := make([]dag.TaskID, len(g.Tasks))
	for t := range g.Tasks {
		rank := g.Rank(dag.TaskID(t))
		keys[rank] = uint64(math.MaxInt32-int64(g.Tasks[t].Priority))<<32 | uint64(rank)
		tasks[rank] = dag.TaskID(t)
	}
	if slices.IsSorted(keys) {
		return tasks
	}
	slices.Sort(keys)
	order := make([]dag.TaskID, len(keys))
	for i, k := range keys {
		order[i] = tasks[uint32(k)]
	}
	return order
}

// lagged are the orders of tasks that a plan runs in one period, each some steps behind others. A task is stuck if it has to follow
// one of a later period, else stuck is -1.
func lagged(g *dag.Links, lags []int32) (within []dag.Edge, stuck dag.TaskID) {
	for t := range int32(g.NumTasks()) {
		for back := range g.Reach() + 1 {
			for _, preds := range g.PredsBack(dag.TaskID(t), back) {
				for _, before := range preds {
					switch periods := back + lags[t] - lags[before]; {
					case periods < 0:
						return nil, dag.TaskID(t)
					case periods == 0:
						within = append(within, dag.Edge{From: dag.TaskID(before), To: dag.TaskID(t)})
					}
				}
			}
		}
	}
	return within, -1
}

// Sort orders the tasks of one step by the graph, the reuse edges and the order of each worker. If
// they contradict each other it returns a task that can never start, else -1.
func Sort(g *dag.Links, reuse []dag.Edge, order [][]dag.TaskID) (sorted []dag.TaskID, stuck dag.TaskID) {
	n := g.NumTasks()
	preds := func(t dag.TaskID) int { return len(g.Preds(t)) }
	return sort(n, preds, g.Succs, reuse, order)
}

// SortPeriod is Sort for the tasks of a period of a plan with lags.
func SortPeriod(g *dag.Links, lags []int32, order [][]dag.TaskID) (sorted []dag.TaskID, stuck dag.TaskID) {
	within, stuck := lagged(g, lags)
	if stuck >= 0 {
		return nil, stuck
	}
	none := func(dag.TaskID) []int32 { return nil }
	return sort(g.NumTasks(), func(dag.TaskID) int { return 0 }, none, within, order)
}

// sort is Sort for tasks with some numbers of predecessors, and successors.
func sort(n int, preds func(dag.TaskID) int, succs func(dag.TaskID) []int32, reuse []dag.Edge, order [][]dag.TaskID) (sorted []dag.TaskID, stuck dag.TaskID) {
	after, next, waits := dag.NewRows(n, reuse), make([]int32, n), make([]int32, n)
	for t := range n {
		waits[t], next[t] = int32(preds(dag.TaskID(t))), -1
	}
	for _, e := range reuse {
		waits[e.To]++
	}
	for _, list := range order {
		for k := 1; k < len(list); k++ {
			next[list[k-1]] = int32(list[k])
			waits[list[k]]++
		}
	}
	sorted = make([]dag.TaskID, 0, n)
	for t := range waits {
		if waits[t] == 0 {
			sorted = append(sorted, dag.TaskID(t))
		}
	}
	for k := 0; k < len(sorted); k++ {
		id := sorted[k]
		for _, list := range [3][]int32{succs(id), after.Row(int32(id)), next[id : id+1]} {
			for _, t := range list {
				if t < 0 {
					continue // the last one of its worker
				}
				if waits[t]--; waits[t] == 0 {
					sorted = append(sorted, dag.TaskID(t))
				}
			}
		}
	}
	if len(sorted) == n {
		return sorted, -1
	}
	return sorted, dag.TaskID(slices.IndexFunc(waits, func(left int32) bool { return left > 0 }))
}
