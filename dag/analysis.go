package dag

import (
	"fmt"
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
	var count []int
	for _, l := range g.Levels() {
		if int(l) >= len(count) {
			count = append(count, make([]int, int(l)+1-len(count))...)
		}
		count[l]++
	}
	if count == nil {
		return 0
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
		return b < 0 || end[a] > end[b] || end[a] == end[b] && g.rank[a] < g.rank[b]
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

// PeakLiveBytes is the largest sum of sizes of storages live at once when the tasks run one after
// the other in the given order; nil is program order. A storage is live as a whole from the first
// task that touches it to the last, both included. Carried storages and those that no task writes
// are always live. No layout of whole storages can do with less in this order. It panics unless
// the order names every task once.
func (g *Graph) PeakLiveBytes(order []TaskID) int64 {
	if order == nil {
		order = make([]TaskID, len(g.Tasks))
		for i := range order {
			order[i] = TaskID(i)
		}
	}
	first, last := g.lifetimes(order)
	change := make([]int64, len(order)+1) // bytes that appear (or go) before position i
	always := int64(0)
	for i := range g.Buffers {
		b := &g.Buffers[i]
		switch {
		case b.ViewOf != None:
		case g.isCarried[i] || first[i] < 0:
			always += b.Bytes()
		default:
			change[first[i]] += b.Bytes()
			change[last[i]+1] -= b.Bytes()
		}
	}
	live, peak := always, always
	for _, c := range change {
		live += c
		peak = max(peak, live)
	}
	return peak
}

// lifetimes returns the positions in the order of the first and last task that touch each
// storage; first is -1 for a storage that no task writes.
func (g *Graph) lifetimes(order []TaskID) (first, last []int) {
	first, last = make([]int, len(g.Buffers)), make([]int, len(g.Buffers))
	written := make([]bool, len(g.Buffers))
	for i := range first {
		first[i] = -1
	}
	seen := make([]bool, len(g.Tasks))
	if len(order) != len(g.Tasks) {
		panic(fmt.Sprintf("dag: an order of %d tasks for a graph of %d", len(order), len(g.Tasks)))
	}
	for at, t := range order {
		if seen[t] {
			panic("dag: task " + g.Tasks[t].Name + " is in the order twice")
		}
		seen[t] = true
		for _, a := range g.Tasks[t].Accesses {
			s := g.Storage(a.Buffer)
			if first[s] < 0 {
				first[s] = at
			}
			last[s] = at
			written[s] = written[s] || a.Mode.Writes()
		}
	}
	for i := range first {
		if !written[i] {
			first[i] = -1
		}
	}
	return first, last
}
