package dag

import (
	"fmt"
	"slices"
)

// Retask is the graph with other labels, placements and priorities of its tasks, and with further tasks that some of them follow. It calls change for each task, in program order.
// Names, operations and accesses have to stay, and so the atoms do.
func (g *Graph) Retask(change func(t TaskID, task *Task)) (*Graph, error) {
	with := new(Graph)
	*with = *g
	with.Tasks = slices.Clone(g.Tasks)
	return with, with.Change(change)
}

// Change is [Graph.Retask] of a graph that nobody else has yet.
func (g *Graph) Change(change func(t TaskID, task *Task)) error {
	ordered := false
	for t := range g.Tasks {
		task := &g.Tasks[t]
		before := len(task.After)
		change(TaskID(t), task)
		for _, p := range task.After {
			if p < 0 || int(p) >= t {
				return fmt.Errorf("graph %q: task %q follows task %d, which is not before it", g.Name, task.Name, p)
			}
		}
		ordered = ordered || len(task.After) != before
	}
	if ordered {
		g.Links, g.isCarried, g.isWritten = g.Body().Link()
	}
	g.findLater() // anew, so that it does not keep the tasks before
	return nil
}
