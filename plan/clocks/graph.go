package clocks

import (
	"cmp"
	"fmt"
	"slices"
)

// Graph is a plan whose clocks are open.
type Graph struct {
	Tasks []Task
	Waits []Wait
	Watts float64 // drawn at any time, whatever runs: of idle units, the host, links
}

// Task has the same work at several clocks.
type Task struct {
	Options []Option // one at least
}

// Option is the time and the joules of a task at a clock.
type Option struct {
	Nanos  int64
	Joules float64 // above an idle unit's
	Clock  int     // the caller's number
}

// Wait lets a task start no sooner than some time after the end of another one, in its step or some steps before.
type Wait struct {
	From, To int32
	Delay    int64
	Back     int32
}

// Step adds a task without work, for a step that runs alone: the tasks without a predecessor wait for it, and it waits for
// the tasks without a successor, a step later. It returns the number of the task.
func (g *Graph) Step() (id int32) {
	id = int32(len(g.Tasks))
	first, last := make([]bool, id), make([]bool, id)
	for t := range id {
		first[t], last[t] = true, true
	}
	for _, w := range g.Waits {
		if w.Back == 0 {
			first[w.To], last[w.From] = false, false
		}
	}
	g.Tasks = append(g.Tasks, Task{Options: []Option{{}}})
	for t := range id {
		if first[t] {
			g.Waits = append(g.Waits, Wait{From: id, To: t})
		}
		if last[t] {
			g.Waits = append(g.Waits, Wait{From: t, To: id, Back: 1})
		}
	}
	return id
}

// options keeps the options of a task that no other beats in time and joules, the fastest first.
func options(t *Task) (kept []Option) {
	sorted := slices.Clone(t.Options)
	slices.SortStableFunc(sorted, func(a, b Option) int { return cmp.Or(cmp.Compare(a.Nanos, b.Nanos), cmp.Compare(a.Joules, b.Joules)) })
	for _, o := range sorted {
		if n := len(kept); n == 0 || o.Joules < kept[n-1].Joules {
			kept = append(kept, o)
		}
	}
	return kept
}

// hull lists the options on the lower convex hull of time and joules.
func hull(of []Option) (at []int) {
	for i := range of {
		for len(at) > 1 {
			a, b := of[at[len(at)-2]], of[at[len(at)-1]]
			if slope(a, b) < slope(b, of[i]) {
				break
			}
			at = at[:len(at)-1]
		}
		at = append(at, i)
	}
	return at
}

// slope is how many joules more the slower one of two options takes for each nanosecond more.
func slope(a, b Option) float64 { return (b.Joules - a.Joules) / float64(b.Nanos-a.Nanos) }

// sorted orders the tasks: each comes after its predecessors of the same step.
func (g *Graph) sorted() (order []int32, err error) {
	left, after := make([]int32, len(g.Tasks)), make([][]int32, len(g.Tasks))
	for _, w := range g.Waits {
		if w.Back == 0 {
			left[w.To]++
			after[w.From] = append(after[w.From], w.To)
		}
	}
	for t, n := range left {
		if n == 0 {
			order = append(order, int32(t))
		}
	}
	for i := 0; i < len(order); i++ {
		for _, t := range after[order[i]] {
			if left[t]--; left[t] == 0 {
				order = append(order, t)
			}
		}
	}
	if len(order) < len(g.Tasks) {
		return nil, fmt.Errorf("tasks wait for each other in one step")
	}
	return order, nil
}
