package relax

import (
	"fmt"
	"testing"

	"dahl/dag"
	"dahl/must"
	"dahl/plan/certificate"
	"dahl/plan/problem"
	"dahl/platforms/testmachine"
	"dahl/schedule"
)

// The worked example of certificate's period.go: four tasks of 6 ns after one of 1 ns, which follows them a step later, and one
// of 5 ns, on four units. By work a step takes 7.5 ns, by its longest cycle 7, and 8 ns are too short. With 1 W
// of the host and 3 W more for each busy unit no step draws less than 8·1 + 3·30 nJ.
func TestBoundByPeriod(t *testing.T) {
	p := testmachine.Node(t, testmachine.CPU(4, 0, 3))
	p.HostPower = testmachine.Watts(1)
	b := dag.NewBuilder("fork")
	buffer := func(name string, mode dag.Role) dag.BufferID {
		return b.Buffer(dag.Buffer{Name: name, Shape: []int{4}, Type: dag.Float32, Role: mode, ViewOf: dag.None})
	}
	task := func(name string, ns int64, accesses ...dag.Access) {
		b.Task(dag.Task{Name: name, Op: "op", Costs: []dag.Cost{{Key: "cpu", Ns: ns}}, Accesses: accesses})
	}
	weight := buffer("w", dag.Parameter)
	one := []dag.Access{{Region: dag.Region{Buffer: weight}, Mode: dag.Write}}
	var others []dag.BufferID
	for i := range 4 {
		others = append(others, buffer(fmt.Sprint("x", i), dag.State))
		one = append(one, dag.Access{Region: dag.Region{Buffer: others[i]}, Mode: dag.Read})
	}
	task("one", 1, one...)
	for i, other := range others {
		task(fmt.Sprint("of four", i), 6, dag.Access{Region: dag.Region{Buffer: weight}, Mode: dag.Read}, dag.Access{Region: dag.Region{Buffer: other}, Mode: dag.Write})
	}
	task("free", 5)
	g := must.Get(b.Build())(t)
	priced := must.Get(schedule.Price(&dag.Program{Name: g.Name, Graphs: []*dag.Graph{g}}, p, schedule.Unbound))(t)
	for _, c := range []struct {
		objective    problem.Objective
		value, least float64
	}{{problem.Time, 12, 8}, {problem.Energy, 110, 98}} {
		m := must.Get(certificate.NewModel(priced, c.objective, true))(t)
		proof := must.Get(Bound(t.Context(), m, c.value))(t)
		if bound, err := proof.Bound(m); err != nil || bound < c.least*(1-1e-6) || bound > c.least*(1+1e-6) {
			t.Errorf("%s: %v, %v, want %v", c.objective, bound, err, c.least)
		}
	}
}
