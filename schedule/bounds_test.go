package schedule

import (
	"testing"
	"time"

	"dahl/dag"
)

// TestLowerBound derives each bound by hand on two cores and the two emulated
// devices of mixed.
func TestLowerBound(t *testing.T) {
	type task struct {
		name  string
		costs []dag.Cost
		after []dag.TaskID
	}
	cpu := func(ns int64) []dag.Cost { return []dag.Cost{{Key: "cpu", Ns: ns}} }
	for _, c := range []struct {
		words string
		tasks []task
		steps int
		want  time.Duration
	}{
		{"a chain of 3 and 4 (5 elsewhere): 7", []task{{"a", cpu(3), nil}, {"b", []dag.Cost{{Key: "cpu", Ns: 4}, {Key: "e0", Ns: 5}}, []dag.TaskID{0}}}, 1, 7},
		{"three tasks of 5 on two cores: 15/2, rounded up to 8", []task{{"a", cpu(5), nil}, {"b", cpu(5), nil}, {"c", cpu(5), nil}}, 1, 8},
		{"four steps of them: 60/2", []task{{"a", cpu(5), nil}, {"b", cpu(5), nil}, {"c", cpu(5), nil}}, 4, 30},
		{"two tasks of 6 that only e0 can run share it, whatever else is free: 12", []task{
			{"a", []dag.Cost{{Key: "e0", Ns: 6}}, nil}, {"b", []dag.Cost{{Key: "e0", Ns: 6}}, nil}, {"c", cpu(1), nil}}, 1, 12},
	} {
		b := dag.NewBuilder("bound")
		for _, x := range c.tasks {
			b.Task(dag.Task{Name: x.name, Costs: x.costs, After: x.after})
		}
		g, err := b.Build()
		if err != nil {
			t.Fatal(err)
		}
		p := mixed(t)
		costs, err := unboundCosts(g, p)
		if err != nil {
			t.Fatal(err)
		}
		if got := LowerBound(&Problem{Graph: g, Platform: p, Costs: costs, Steps: c.steps}); got != c.want {
			t.Errorf("%s: %d", c.words, got)
		}
	}
}
