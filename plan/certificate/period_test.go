package certificate

import (
	"math/rand/v2"
	"slices"
	"testing"

	"dahl/plan/problem"
)

// steadyModel is a model of tasks with times on equal units, and of edges.
func steadyModel(units int, nanos []int64, edges ...Edge) *Model {
	m := &Model{Objective: problem.Time, Steady: true, Devices: []Device{{Units: units}}, Memories: []Memory{{}}, Edges: edges}
	for _, n := range nanos {
		m.Tasks = append(m.Tasks, Task{[]Option{{Nanos: n, AwakeNanos: n}}})
	}
	m.link()
	m.number()
	return m
}

// row asks whether the model has the row that no step is so short.
func (m *Model) row(nanos int64, around ...int32) bool {
	_, err := m.Form(&Row{Family: Period, To: around[0], With: around[1:], Nanos: nanos})
	return err == nil
}

// The worked example: four tasks of 6 ns after one of 1 ns, which follows them a step later, and one of 5 ns, on four units.
// With 8 ns the four leave 3 ns in which not all units run them. With 9 they start from 0 to 2 after the one has
// ended, all run from 2 to 6, and leave 5 ns.
//
// Two halves: a task of 1 ns each, of 4 ns after that, and one of 2 ns after both of these, which both follow a step later. On one unit
// the work is 12 ns. On three, the cycle takes 1 + 4 + 2 = 7 ns.
//
// Three tasks of 5 ns, each of which follows one of 1 ns and comes before one of 1 ns, which that follows a step later, on two
// units: by work (15 + 2)/2 = 8.5 ns. Of three tasks one unit runs two, so that a step takes 1 + 10 + 1 ns; with less than 12, all
// three run for some time between their first and their last start.
//
// Two of 5 ns, then one of 4 ns, then two of 5 ns, which the first follow a step later: 14 ns on two units. Another of 3 ns comes before the
// first two. While the one of 4 ns runs, a unit has nothing to do, but it still has one of the last two before it, and the step
// of what it begins with is over. So a step takes 17 ns.
func TestPeriod(t *testing.T) {
	fork := []Edge{{From: 0, To: 1}, {From: 0, To: 2}, {From: 0, To: 3}, {From: 0, To: 4}, {From: 1, To: 0, Back: 1}, {From: 2, To: 0, Back: 1}, {From: 3, To: 0, Back: 1}, {From: 4, To: 0, Back: 1}}
	halves := []Edge{{From: 0, To: 2}, {From: 1, To: 3}, {From: 2, To: 4}, {From: 3, To: 4}, {From: 4, To: 0, Back: 1}, {From: 4, To: 1, Back: 1}}
	join := []Edge{{From: 0, To: 1}, {From: 0, To: 2}, {From: 0, To: 3}, {From: 1, To: 4}, {From: 2, To: 4}, {From: 3, To: 4}, {From: 4, To: 0, Back: 1}}
	steps := []Edge{{From: 0, To: 1}, {From: 0, To: 2}, {From: 1, To: 3}, {From: 2, To: 3}, {From: 3, To: 4}, {From: 3, To: 5}}
	for from := range int32(2) {
		steps = append(steps, Edge{From: 4 + from, To: 1, Back: 1}, Edge{From: 4 + from, To: 2, Back: 1})
	}
	for _, c := range []struct {
		name    string
		m       *Model
		around  []int32
		refuted int64 // the longest length
	}{
		{"four and one", steadyModel(4, []int64{1, 6, 6, 6, 6, 5}, fork...), []int32{0}, 8},
		{"from the four", steadyModel(4, []int64{1, 6, 6, 6, 6, 5}, fork...), []int32{1, 2, 3, 4}, 8},
		{"two halves on one unit", steadyModel(1, []int64{1, 1, 4, 4, 2}, halves...), []int32{4}, 11},
		{"two halves on three units", steadyModel(3, []int64{1, 1, 4, 4, 2}, halves...), []int32{2, 3}, 6},
		{"three on two units", steadyModel(2, []int64{1, 5, 5, 5, 1}, join...), []int32{0}, 11},
		{"step by step", steadyModel(2, []int64{3, 5, 5, 4, 5, 5}, steps...), []int32{3}, 16},
		{"a task longer than the length", steadyModel(9, []int64{7}), []int32{0}, 6},
	} {
		for length := int64(1); length < 20; length++ {
			if got := c.m.row(length, c.around...); got != (length <= c.refuted) {
				t.Errorf("%s: a step of %d ns is refuted: %v, want up to %d", c.name, length, got, c.refuted)
			}
		}
	}
	m := steadyModel(1, []int64{3})
	for _, r := range []Row{{Nanos: 0}, {Nanos: -1}, {Nanos: 2, To: 1}, {Nanos: 2, With: []int32{-1}}, {Nanos: mostLength + 1}, {Nanos: 1<<63 - 1}} {
		r.Family = Period
		if _, err := m.Form(&r); err == nil {
			t.Errorf("the model has %+v", r)
		}
	}
	m.Steady = false
	if m.row(2, 0) {
		t.Error("a step that runs alone has a period")
	}
}

// possible reports whether some plan has steps a length apart: tasks are given to units and ordered in all ways, and no
// cycle of the orders, those from the last task of a unit to its first in the next step included, takes more.
func (m *Model) possible(length int64, lists [][]int32, t int32) bool {
	if int(t) == len(m.Tasks) {
		return m.repeats(length, lists)
	}
	for u, list := range lists {
		for at := range len(list) + 1 {
			lists[u] = slices.Insert(slices.Clone(list), at, t)
			if m.possible(length, lists, t+1) {
				return true
			}
		}
		lists[u] = list
		if len(list) == 0 {
			return false // the other units are empty as well
		}
	}
	return false
}

// repeats reports whether starts fulfil all orders, by as many rounds of longest ways as there are tasks.
func (m *Model) repeats(length int64, lists [][]int32) bool {
	edges := slices.Clone(m.Edges)
	for _, list := range lists {
		for i, t := range list {
			next := Edge{From: t, To: list[(i+1)%len(list)]}
			if i+1 == len(list) {
				next.Back = 1
			}
			edges = append(edges, next)
		}
	}
	start := make([]int64, len(m.Tasks))
	for range len(m.Tasks) + 1 {
		moved := false
		for _, e := range edges {
			if at := start[e.From] + m.Tasks[e.From].Options[0].Nanos - int64(e.Back)*length; at > start[e.To] {
				start[e.To], moved = at, true
			}
		}
		if !moved {
			return true
		}
	}
	return false
}

// No length is refuted that a plan has, from any reference, and most others are from some.
func TestPeriodsBelowPossible(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 15))
	shorter, refuted := 0, 0
	for n := range 400 {
		tasks := int32(2 + r.IntN(4))
		nanos := make([]int64, tasks)
		var edges []Edge
		for to := range tasks {
			nanos[to] = int64(1 + r.IntN(7))
			for from := range tasks {
				if from < to && r.IntN(3) == 0 {
					edges = append(edges, Edge{From: from, To: to})
				}
				if from >= to && r.IntN(4) == 0 {
					edges = append(edges, Edge{From: from, To: to, Back: 1})
				}
			}
		}
		units := 1 + r.IntN(3)
		m := steadyModel(units, nanos, edges...)
		is := false
		for length := int64(1); length <= 20; length++ {
			is = is || m.possible(length, make([][]int32, units), 0)
			some := false
			for a := range tasks {
				for b := a; b < tasks; b++ {
					if m.row(length, slices.Compact([]int32{a, b})...) {
						if some = true; is {
							t.Errorf("graph %d, %d units: %v %+v: a step of %d ns is refuted from %d and %d, and a plan has it", n, units, nanos, edges, length, a, b)
						}
					}
				}
			}
			if !is {
				shorter++
				if some {
					refuted++
				}
			}
		}
	}
	if refuted < shorter*9/10 {
		t.Errorf("%d of %d lengths that no plan has are refuted", refuted, shorter)
	}
}
