package dag

import (
	"slices"
	"time"
)

// Levels gives every task the length, in tasks, of the longest chain of predecessors before it: 0
// for a task without predecessors.
func (g *Graph) Levels() []int32 {
	level := make([]int32, len(g.Tasks))
	for t := range g.Tasks {
		for _, p := range g.Preds(TaskID(t)) {
			level[t] = max(level[t], level[p]+1)
		}
	}
	return level
}

// Width is the largest number of tasks on one of the Levels. They are
// independent of each other, so the largest antichain is at least as large; it
// may be larger.
func (g *Graph) Width() int {
	count := make([]int, len(g.Tasks)+1)
	for _, l := range g.Levels() {
		count[l]++
	}
	return slices.Max(count)
}

// CriticalPath returns the length of the longest path through one step and its tasks from first
// to last. A task takes cost and an edge nothing. Of equal paths it returns the one whose names
// come first.
func (g *Graph) CriticalPath(cost func(TaskID) time.Duration) (time.Duration, []TaskID) {
	end := make([]time.Duration, len(g.Tasks))
	before := make([]TaskID, len(g.Tasks)) // the predecessor that ends last, -1: none
	last := TaskID(-1)
	later := func(a, b TaskID) bool { // a ends after b, or with b and its name comes first
		return b < 0 || end[a] > end[b] || end[a] == end[b] && g.Rank(a) < g.Rank(b)
	}
	for i := range g.Tasks {
		t := TaskID(i)
		before[t] = -1
		for _, p := range g.Preds(t) {
			if later(TaskID(p), before[t]) {
				before[t] = TaskID(p)
			}
		}
		end[t] = cost(t)
		if before[t] >= 0 {
			end[t] += end[before[t]]
		}
		if later(t, last) {
			last = t
		}
	}
	if last < 0 {
		return 0, nil
	}
	var path []TaskID
	for t := last; t >= 0; t = before[t] {
		path = append(path, t)
	}
	slices.Reverse(path)
	return end[last], path
}

// TotalFlops is the floating-point operations of one step.
func (g *Graph) TotalFlops() float64 {
	total := 0.0
	for t := range g.Tasks {
		total += g.Tasks[t].Flops
	}
	return total
}

// TotalBytes is the bytes that the tasks of one step read plus write.
func (g *Graph) TotalBytes() int64 {
	total := int64(0)
	for t := range g.Tasks {
		total += g.Tasks[t].MovedBytes
	}
	return total
}
