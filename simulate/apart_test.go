package simulate

import (
	"testing"
	"time"

	"dahl/dag"
	"dahl/must"
	"dahl/platform"
	"dahl/platforms/testmachine"
	"dahl/schedule"
	"dahl/schedule/policy"
)

// TestApart: u changes w, in 100 ns on the gpu. Before it l loads x, and after it m reads y, in 20 ns each on a core and 10 on the gpu. A copy of
// x or y takes 10 ns of latency and 40 for its bytes. With all on the gpu, as HEFT has it, a step takes 120 ns. With l on a core and m on another one
// l and its copy are done 70 ns after l began, and m 70 ns after u has ended: a step takes no more than u. One core does the steps one
// after the other, and u then waits for the copy of y, m, l and the copy of x: 100 + 50 + 20 + 20 + 50 ns. Without an update nothing is
// aside, and the plan is HEFT's.
func TestApart(t *testing.T) {
	loop := func(role dag.Role) *dag.Graph {
		b := dag.NewBuilder("loop")
		buffer := func(name string, role dag.Role) dag.BufferID {
			return b.Buffer(dag.Buffer{Name: name, Shape: []int{10}, Type: dag.Float32, Role: role})
		}
		x, y, z, w := buffer("x", dag.Activation), buffer("y", dag.Activation), buffer("z", dag.Activation), buffer("w", role)
		anywhere := []dag.Cost{{Key: "cpu", Ns: 20}, {Key: "gpu", Ns: 10}}
		b.Task(dag.Task{Name: "l", Costs: anywhere, Accesses: []dag.Access{whole(x, dag.Write)}})
		b.Task(dag.Task{Name: "u", Costs: []dag.Cost{{Key: "gpu", Ns: 100}}, Accesses: []dag.Access{whole(x, dag.Read), whole(y, dag.Write), whole(w, dag.Write)}})
		b.Task(dag.Task{Name: "m", Costs: anywhere, Accesses: []dag.Access{whole(y, dag.Read), whole(z, dag.Write)}})
		return must.Get(b.Build())(t)
	}
	machine := func(cores int) *platform.Platform {
		p := testmachine.Node(t, testmachine.CPU(cores), testmachine.GPU("gpu"))
		p.Links[0].Latency, p.Links[0].Sharing = 10, platform.Duplex
		must.Do(t, p.Complete())
		return p
	}
	for _, c := range []struct {
		by    schedule.Policy
		cores int
		role  dag.Role
		takes time.Duration
	}{
		{policy.HEFT, 2, dag.Parameter, 120},
		{policy.Apart, 2, dag.Parameter, 100},
		{policy.Apart, 1, dag.Parameter, 240},
		{policy.Apart, 2, dag.Activation, 120},
	} {
		g := loop(c.role)
		priced := must.Get(schedule.Price(&dag.Program{Name: g.Name, Graphs: []*dag.Graph{g}}, machine(c.cores), schedule.Unbound))(t)
		d := must.Get(priced.Decide(schedule.Choice{Policy: c.by}))(t)
		span := func(steps int) time.Duration { return must.Get(Run(t.Context(), d, 0, steps, Options{}))(t).Makespan }
		if got := (span(20) - span(10)) / 10; got != c.takes {
			t.Errorf("%s with %d cores, %s: a steady step takes %d ns, want %d", c.by.Doc().Name, c.cores, c.role, got, c.takes)
		}
	}
}
