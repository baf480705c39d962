package simulate

import (
	"testing"
	"time"

	"dahl/dag"
	"dahl/platform"
	"dahl/platforms/testmachine"
	"dahl/schedule/audit"
)

// TestHandOffs: a on core 0, b and c on core 1, d on core 0 again, each after the one
// before; dispatch 100 ns, a hand-off 10 more, a wake-up 1000 more after 500 ns.
//
//	a (3 ns)     100 – 103
//	b (5 ns)     core 1 has waited 103 ns: 103 + 110 = 213 – 218
//	c (600 ns)   core 1 did not wait: 218 + 100 = 318 – 918
//	d (7 ns)     core 0 has waited 918 − 103 = 815 ns: 918 + 1100 = 2018 – 2025
//
// With all durations doubled a ends at 106, b is 216 – 226, c 326 – 1526, d 2626 – 2640.
func TestHandOffs(t *testing.T) {
	p := testmachine.Node(t, testmachine.CPU(2))
	d := &p.Devices[0]
	d.Dispatch, d.Handoff, d.WakeAfter, d.Wake = 100, 10, 500, 1000
	b := dag.NewBuilder("relay")
	for i, task := range []struct {
		name, on string
		ns       int64
	}{{"a", "cpu.0", 3}, {"b", "cpu.1", 5}, {"c", "cpu.1", 600}, {"d", "cpu.0", 7}} {
		x := dag.Task{Name: task.name, Costs: []dag.Cost{{Key: "cpu", Ns: task.ns}}, Placement: &dag.Placement{Device: task.on}}
		if i > 0 {
			x.After = []dag.TaskID{dag.TaskID(i - 1)}
		}
		b.Task(x)
	}
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	for scale, want := range map[float64][4][2]time.Duration{
		1: {{100, 103}, {213, 218}, {318, 918}, {2018, 2025}},
		2: {{100, 106}, {216, 226}, {326, 1526}, {2626, 2640}},
	} {
		prob := problem(t, g, p, 1)
		s, err := run(prob, how{policy: dynamic(t, "eager"),
			Options: Options{Scale: func(dag.Instance, platform.WorkerID) float64 { return scale }}})
		if err != nil {
			t.Fatal(err)
		}
		if err := audit.Check(s, prob); err != nil {
			t.Error(err)
		}
		for i, span := range s.Spans {
			if got := [2]time.Duration{span.Start, span.End}; got != want[i] {
				t.Errorf("scale %g: %s %v, want %v", scale, g.Tasks[span.Task].Name, got, want[i])
			}
		}
	}
}
