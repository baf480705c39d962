package plan

import (
	"strings"
	"testing"

	"dahl/dag"
	"dahl/must"
	"dahl/platform"
	"dahl/schedule"
	"dahl/schedule/policy"
	"dahl/simulate"
)

// unlikePlatform is a processor and a GPU with memories of their own.
const unlikePlatform = `host_power = "1 W"
[[memory]]
name = "ram"
[[memory]]
name = "own"
[[device]]
name = "cpu"
kind = "cpu"
memory = "ram"
power = { idle = "2 W", busy = "5 W" }
[[device]]
name = "g0"
kind = "emulated"
memory = "own"
power = { idle = "3 W", busy = "7 W" }
[[link]]
name = "bus"
bandwidth = "1 GB/s"
[[route]]
from = "ram"
to = "own"
links = ["bus"]
`

// parsed is a graph without its format and a machine.
func parsed(t *testing.T, graph, machine string) (*dag.Program, *platform.Platform) {
	t.Helper()
	g := must.Get(dag.ReadJSON(strings.NewReader(`{"format": "dahl-graph 1", `+graph+`}`), "graph.json"))(t)
	p := must.Get(platform.Parse([]byte(machine), "machine.toml"))(t)
	return &dag.Program{Name: "p", Graphs: []*dag.Graph{g}, Order: []dag.Segment{{Graph: 0, Steps: 1}}}, p
}

// decided is a graph on the unlike devices, planned by HEFT.
func decided(t *testing.T, graph string) *schedule.Decision {
	t.Helper()
	prog, p := parsed(t, graph, unlikePlatform)
	return must.Get(Decide(prog, p, schedule.Unbound, schedule.Choice{Policy: policy.HEFT}))(t)
}

func simulated(t *testing.T, d *schedule.Decision, steps int, opt simulate.Options) *schedule.Schedule {
	t.Helper()
	return must.Get(Simulate(t.Context(), d, 0, steps, opt))(t)
}
