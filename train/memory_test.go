package train

import (
	"strings"
	"testing"

	"dahl/dag"
	"dahl/must"
	"dahl/platform"
	"dahl/train/budget"
)

// TestPlanNeeds: of 3 tasks 5 steps are 15 places of 700 bytes, 10,500, and files take 32 MiB, 33,554,432: 33,564,932 bytes in
// all, and with one less the plan is refused. Of a million steps no more than 2,000,000/3 = 666,666 are simulated.
func TestPlanNeeds(t *testing.T) {
	b := dag.NewBuilder("three")
	for _, name := range []string{"a", "b", "c"} {
		b.Task(dag.Task{Name: name})
	}
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	w := &Workload{Platform: &platform.Platform{}, Program: &dag.Program{Graphs: []*dag.Graph{g}, Order: []dag.Segment{{Graph: 0, Steps: 5}}}}
	if err := budget.Check(w.planNeeds(), budget.Limit{Bytes: 33_564_932, Of: "the machine"}); err != nil {
		t.Error(err)
	}
	err = budget.Check(w.planNeeds(), budget.Limit{Bytes: 33_564_931, Of: "the machine"})
	if err == nil || !strings.Contains(err.Error(), "the plan and the schedule of 15 tasks") {
		t.Errorf("error %v", err)
	}
	if err := w.AffordPlan(); err != nil { // of this machine, which runs the tests of trainings
		t.Error(err)
	}
	w.Program.Order[0].Steps = 1_000_000
	if got, want := budget.Sum(w.planNeeds()), int64(3*666_666*700+33_554_432); got != want {
		t.Errorf("%d bytes, want %d", got, want)
	}
}

// TestNoMemoryHoldsIt: with 12 bytes for a parameter of 5 and a state of 7, memories of 6 bytes and of 6 are enough, and of 6 and of 5 are not. One without
// a limit holds anything.
func TestNoMemoryHoldsIt(t *testing.T) {
	b := dag.NewBuilder("g")
	b.Buffer(dag.Buffer{Name: "w", Shape: []int{5}, Type: dag.Uint8, Role: dag.Parameter})
	b.Buffer(dag.Buffer{Name: "v", Shape: []int{7}, Type: dag.Uint8, Role: dag.State})
	b.Buffer(dag.Buffer{Name: "x", Shape: []int{1000}, Type: dag.Uint8})
	g := must.Get(b.Build())(t)
	for second, fits := range map[int64]bool{6: true, 5: false, 0: true} {
		p := &platform.Platform{Name: "p", Memories: []platform.Memory{{Name: "a", CapacityBytes: 6}, {Name: "b", CapacityBytes: second}}}
		w := &Workload{Platform: p, Program: &dag.Program{Graphs: []*dag.Graph{g}}}
		if err := w.holds(); (err == nil) != fits || err != nil && !strings.Contains(err.Error(), "needs 12 B for its parameters and the optimiser's state; all memories of platform \"p\" together have 11 B") {
			t.Errorf("%d bytes: %v", second, err)
		}
	}
}
