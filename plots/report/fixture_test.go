package report

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"dahl/dag"
	"dahl/energy"
	"dahl/must"
	"dahl/plan"
	"dahl/platform"
	"dahl/platforms/testmachine"
	"dahl/plots"
	"dahl/schedule"
	"dahl/schedule/policy"
	"dahl/simulate"
)

// unlike is a number of cores and a GPU with a memory of its own.
func unlike(t *testing.T, cores int) *platform.Platform {
	t.Helper()
	gpu := testmachine.GPU("g0", 3, 7)
	gpu.CopyEnginesIn, gpu.CopyEnginesOut = 1, 1
	p := testmachine.Node(t, testmachine.CPU(cores, 2, 5), gpu)
	p.HostPower = testmachine.Watts(1)
	return p
}

// randomGraph is layers of tasks that each read two buffers of the layer before, and last any time
// up to 100 us.
func randomGraph(layers, tiles int) string {
	random := rand.New(rand.NewPCG(7, 11))
	var buffers, tasks []string
	for l := range layers {
		for i := range tiles {
			buffers = append(buffers, fmt.Sprintf(`{"name": "x%d_%d", "shape": [503], "type": "float32"}`, l, i))
			reads := ""
			if l > 0 {
				reads = fmt.Sprintf(`, "reads": ["x%d_%d", "x%d_%d"]`, l-1, i, l-1, (i+1+random.IntN(tiles-1))%tiles)
			}
			tasks = append(tasks, fmt.Sprintf(`{"name": "layer%d.forward[%d:%d,007]", "op": "op%d", "shape": "s%d", "labels": {"layer": "layer%d"}, "writes": ["x%d_%d"]%s, "ns": {"*": %d}}`,
				l, i, i+1, l%3, l, l, l, i, reads, 1+random.IntN(100_000)))
		}
	}
	return `{"format": "dahl-graph 1", "name": "random", "buffers": [` + strings.Join(buffers, ",\n") + `], "tasks": [` + strings.Join(tasks, ",\n") + `]}`
}

// simulated is a run of a graph on some cores and a GPU.
func simulated(t *testing.T, graph string, cores, steps int) Run {
	t.Helper()
	g := must.Get(dag.ReadJSON(strings.NewReader(graph), "graph.json"))(t)
	p := unlike(t, cores)
	prog := &dag.Program{Name: "p", Graphs: []*dag.Graph{g}, Order: []dag.Segment{{Graph: 0, Steps: 1}}}
	d := must.Get(plan.Decide(prog, p, schedule.Unbound, schedule.Choice{Policy: policy.HEFT}))(t)
	s := must.Get(plan.Simulate(t.Context(), d, 0, steps, simulate.Options{}))(t)
	problem := d.Problem(0, s.Steps, false)
	r := Run{Name: "random", Provenance: []Fact{{"seed", "7"}}, Shown: &plots.Run{Problem: problem, Schedule: s}, Waits: []*plan.Waits{plan.WaitsOf(problem, s)}, Kernels: plan.Kernels(problem, s, s)}
	r.Energy = must.Get(energy.FromSchedule(s, problem))(t)
	r.Shown.Power = must.Get(energy.Traces(s, problem))(t)
	return r
}
