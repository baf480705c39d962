package plan

import (
	"strings"
	"testing"

	"dahl/dag"
	"dahl/must"
	"dahl/platform"
	"dahl/platforms/testmachine"
	"dahl/schedule"
	"dahl/schedule/policy"
	"dahl/simulate"
)

// unlike is a processor and a GPU with memories of their own.
func unlike(t *testing.T) *platform.Platform {
	t.Helper()
	p := testmachine.Node(t, testmachine.CPU(1, 2, 5), testmachine.GPU("g0", 3, 7))
	p.HostPower = testmachine.Watts(1)
	return p
}

// parsed is a program of a graph without its format.
func parsed(t *testing.T, graph string) *dag.Program {
	t.Helper()
	g := must.Get(dag.ReadJSON(strings.NewReader(`{"format": "dahl-graph 1", `+graph+`}`), "graph.json"))(t)
	return &dag.Program{Name: "p", Graphs: []*dag.Graph{g}, Order: []dag.Segment{{Graph: 0, Steps: 1}}}
}

// decided is a graph on the unlike devices, planned by HEFT.
func decided(t *testing.T, graph string) *schedule.Decision {
	t.Helper()
	return must.Get(Decide(parsed(t, graph), unlike(t), schedule.Unbound, schedule.Choice{Policy: policy.HEFT}))(t)
}

func simulated(t *testing.T, d *schedule.Decision, steps int, opt simulate.Options) *schedule.Schedule {
	t.Helper()
	return must.Get(Simulate(t.Context(), d, 0, steps, opt))(t)
}
