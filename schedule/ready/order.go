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

// InOrder are the orders of lists, in which each task follows the one before it.
func InOrder(lists [][]dag.TaskID) (edges []dag.Edge) {
	for _, list := range lists {
		for k := 1; k < len(list); k++ {
			edges = append(edges, dag.Edge{From: list[k-1], To: list[k]})
		}
	}
	return edges
}

// Sort orders the tasks of one step by the graph and further orders. If these contradict each other
// it returns a task that can never start, else -1.
func Sort(g *dag.Links, orders []dag.Edge) (sorted []dag.TaskID, stuck dag.TaskID) {
	n := g.NumTasks()
	after, waits := dag.NewRows(n, orders), make([]int32, n)
	for t := range n {
		waits[t] = int32(len(g.Preds(dag.TaskID(t))))
	}
	for _, t := range after.All() {
		waits[t]++
	}
	sorted = make([]dag.TaskID, 0, n)
	for t := range waits {
		if waits[t] == 0 {
			sorted = append(sorted, dag.TaskID(t))
		}
	}
	for k := 0; k < len(sorted); k++ {
		for _, list := range [2][]int32{g.Succs(sorted[k]), after.Row(int32(sorted[k]))} {
			for _, t := range list {
				if waits[t]--; waits[t] == 0 {
					sorted = append(sorted, dag.TaskID(t))
				}
			}
		}
	}
	stuck = -1
	if len(sorted) < n {
		stuck = dag.TaskID(slices.IndexFunc(waits, func(left int32) bool { return left > 0 }))
	}
	return sorted, stuck
}
