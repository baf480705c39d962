package improve

import (
	"testing"
	"time"

	"dahl/dag"
	"dahl/platform"
	"dahl/schedule"
)

// Three tasks that wait for nothing take 6, 4 and 2 ns on either of two units. The best makespan is 6 ns:
// half of the 12 ns of all, with 6 on one unit and 4 and 2 on the other. All on one unit take 12.
func TestThreeTasks(t *testing.T) {
	p := &platform.Platform{Name: "p", Memories: []platform.Memory{{Name: "ram"}}, Devices: []platform.Device{{Name: "cpu", Kind: "cpu", Count: 2}}}
	if err := p.Complete(); err != nil {
		t.Fatal(err)
	}
	b := dag.NewBuilder("three")
	for i, ns := range []int64{6, 4, 2} {
		b.Task(dag.Task{Name: string(rune('a' + i)), Op: "op", Costs: []dag.Cost{{Key: "cpu", Ns: ns}}})
	}
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	priced, err := schedule.Price(&dag.Program{Name: "three", Graphs: []*dag.Graph{g}}, p, schedule.Unbound)
	if err != nil {
		t.Fatal(err)
	}
	one := &schedule.Plan{Order: [][]dag.TaskID{{0, 1, 2}, nil}}
	r, err := Search(t.Context(), priced, one, Options{Objective: func(span time.Duration, _ float64) float64 { return span.Seconds() }, Moves: 200})
	if err != nil {
		t.Fatal(err)
	}
	if r.Step != 6 || r.Value != 6e-9 {
		t.Errorf("the step takes %d ns (value %g), want 6", r.Step, r.Value)
	}
}
