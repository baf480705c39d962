package layout

import (
	"fmt"

	"dahl/dag"
	"dahl/schedule/ready"
)

// sorted is an order of all tasks that keeps the dependences and the lists of a plan.
func (g *Graph) sorted() ([]dag.TaskID, error) {
	all := make([]dag.TaskID, g.Links.NumTasks())
	for t := range all {
		all[t] = dag.TaskID(t)
	}
	if g.Order == nil {
		return all, nil
	}
	all, stuck := ready.Sort(g.Links, nil, g.Order)
	if stuck >= 0 {
		return nil, fmt.Errorf("layout of graph %q: the plan's order contradicts the dependences: task %q could never start", g.Name, g.TaskName(stuck))
	}
	return all, nil
}

// LeastBytes is by memory how many bytes [Memories] gives the storages of a graph at least: those that are live at once in one order of the
// tasks share none. It is found without a layout.
func (g *Graph) LeastBytes(memories int) ([]int64, error) {
	sorted, err := g.sorted()
	if err != nil {
		return nil, err
	}
	last := make([]int32, len(g.Buffers)) // by storage: the position of its last user
	for at, task := range sorted {
		g.Each(task, func(storage dag.BufferID, _ dag.Mode, _ []int32, _ int32) { last[storage] = int32(at) })
	}
	live, most := make([]int64, memories), make([]int64, memories)
	begun := make([]bool, len(g.Buffers))
	for at, task := range sorted {
		for first := range 2 { // the last use of one storage and the first of another one are at once
			g.Each(task, func(storage dag.BufferID, _ dag.Mode, _ []int32, _ int32) {
				m := g.Memory[storage]
				switch {
				case first == 0 && !begun[storage]:
					begun[storage] = true
					live[m] += g.bytes(storage)
					most[m] = max(most[m], live[m])
				case first == 1 && last[storage] == int32(at) && !g.pinned(storage, true):
					last[storage] = -1
					live[m] -= g.bytes(storage)
				}
			})
		}
	}
	for m := range most {
		if g.ScratchBytes != nil {
			most[m] += Align(g.ScratchBytes[m])
		}
	}
	return most, nil
}

// pinned reports whether a storage shares bytes with no other.
func (g *Graph) pinned(storage dag.BufferID, used bool) bool {
	return used && (g.Carried[storage] || !g.Written[storage]) || g.versions(storage) > 1 || g.Keeps != nil && g.Keeps[storage]
}
