package execute

import (
	"strings"
	"testing"

	"dahl/dag"
	"dahl/platform"
	"dahl/schedule"
)

// TestNullRunOfAFork: a (3 ns) before b (5 ns) and c (7 ns), dispatch 100 ns.
//
//	one core:  a 100–103, b 203–208, c 308–315
//	two cores: a 100–103 on core 0; b on core 0 203–208, c on core 1 203–210
func TestNullRunOfAFork(t *testing.T) {
	b := dag.NewBuilder("fork")
	cost := func(ns int64) []dag.Cost { return []dag.Cost{{Key: "cpu", Ns: ns}} }
	a := b.Task(dag.Task{Name: "a", Costs: cost(3)})
	b.Task(dag.Task{Name: "b", Costs: cost(5), After: []dag.TaskID{a}})
	b.Task(dag.Task{Name: "c", Costs: cost(7), After: []dag.TaskID{a}})
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	type run struct {
		name       string
		worker     platform.WorkerID
		start, end int64
	}
	for cores, want := range map[int][]run{
		1: {{"a", 0, 100, 103}, {"b", 0, 203, 208}, {"c", 0, 308, 315}},
		2: {{"a", 0, 100, 103}, {"b", 0, 203, 208}, {"c", 1, 203, 210}},
	} {
		p := &schedule.Problem{Graph: g, Platform: machine(t, cores), Steps: 1}
		if p.Costs, err = schedule.NewCosts(g, p.Platform, schedule.CostOptions{}); err != nil {
			t.Fatal(err)
		}
		info, err := schedule.PolicyByName("eager")
		if err != nil {
			t.Fatal(err)
		}
		s, err := NullRun(p, info.Dynamic(p))
		if err != nil {
			t.Fatal(err)
		}
		if len(s.Spans) != len(want) || s.World != schedule.Simulated {
			t.Fatalf("%d cores: %d spans in world %s", cores, len(s.Spans), s.World)
		}
		for i, sp := range s.Spans {
			if got := (run{g.Tasks[sp.Task].Name, sp.Worker, int64(sp.Start), int64(sp.End)}); got != want[i] {
				t.Errorf("%d cores: span %d is %v, want %v", cores, i, got, want[i])
			}
		}
	}
}

func TestNullRunRefusesTwoMemories(t *testing.T) {
	p := &schedule.Problem{Graph: trainGraph(t), Platform: &platform.Platform{Memories: make([]platform.Memory, 2)}, Steps: 1}
	if _, err := NullRun(p, nil); err == nil || !strings.Contains(err.Error(), "2 memories") {
		t.Errorf("error %v, want one about two memories", err)
	}
}
