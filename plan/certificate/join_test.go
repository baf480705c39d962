package certificate

import (
	"testing"

	"dahl/dag"
	"dahl/must"
	"dahl/plan/problem"
	"dahl/platforms/testmachine"
	"dahl/schedule"
)

// A buffer of 16 bytes goes from the core to one of the GPUs. With one GPU it has to, over a link of a byte per ns. With two the reader has no memory of its own.
// A proof for both sets counts what both have to move.
func TestJoinedCrossing(t *testing.T) {
	p := testmachine.Node(t, testmachine.CPU(1, 1, 5), testmachine.GPU("g0", 2, 30), testmachine.GPU("g1", 2, 30))
	for i := range p.Links {
		p.Links[i].BandwidthBytesPerSec = 1e9
	}
	must.Do(t, p.Complete())
	b := dag.NewBuilder("sent")
	x := b.Buffer(dag.Buffer{Name: "x", Shape: []int{16}, Type: dag.Uint8, ViewOf: dag.None})
	for _, task := range []dag.Task{
		{Name: "write", Costs: []dag.Cost{{Key: "cpu", Ns: 1}}, Accesses: []dag.Access{{Region: dag.Region{Buffer: x}, Mode: dag.Write}}},
		{Name: "read", Costs: []dag.Cost{{Key: "g0", Ns: 1}, {Key: "g1", Ns: 1}}, Accesses: []dag.Access{{Region: dag.Region{Buffer: x}, Mode: dag.Read}}},
	} {
		task.Op = "op"
		b.Task(task)
	}
	g := must.Get(b.Build())(t)
	both := must.Get(schedule.Price(&dag.Program{Name: g.Name, Graphs: []*dag.Graph{g}}, p, schedule.Unbound))(t)
	one := must.Get(NewModel(must.Get(both.On("cpu,g0"))(t), problem.Time, false))(t)
	two := must.Get(NewModel(both, problem.Time, false))(t)
	joined := must.Get(Join(one, two))(t)
	if one.CrossingNanos != 16 || two.CrossingNanos != 0 || joined.CrossingNanos != 0 {
		t.Errorf("%d ns with one GPU, %d with two, %d for both; want 16, 0, 0", one.CrossingNanos, two.CrossingNanos, joined.CrossingNanos)
	}
}
