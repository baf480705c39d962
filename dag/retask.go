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
	ordered := false
	for t := range with.Tasks {
		task := &with.Tasks[t]
		before := len(task.After)
		change(TaskID(t), task)
		for _, p := range task.After {
			if p < 0 || int(p) >= t {
				return nil, fmt.Errorf("graph %q: task %q follows task %d, which is not before it", g.Name, task.Name, p)
			}
		}
		ordered = ordered || len(task.After) != before
	}
	if ordered {
		with.Links, with.isCarried, with.isWritten = with.Body().Link()
	}
	with.findLater() // anew, so that it does not keep the tasks before
	return with, nil
}
