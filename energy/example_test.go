package energy_test

import (
	"context"
	"fmt"
	"strings"

	"dahl/dag"
	"dahl/energy"
	"dahl/plan"
	"dahl/platforms"
	"dahl/schedule"
	"dahl/schedule/policy"
	"dahl/simulate"
)

// With one core busy the processor of this machine draws 5 W, and the rest of it 6 W.
func ExampleFromSchedule() {
	g, err := dag.ReadJSON(strings.NewReader(`{"format": "dahl-graph 1", "tasks": [{"name": "a", "ns": {"cpu": 1000000000}}]}`), "graph.json")
	if err != nil {
		fmt.Println(err)
		return
	}
	p, err := platforms.Load("laptop")
	if err != nil {
		fmt.Println(err)
		return
	}
	prog := &dag.Program{Graphs: []*dag.Graph{g}, Order: []dag.Segment{{Steps: 1}}}
	d, err := plan.Decide(prog, p, schedule.Unbound, schedule.Choice{Policy: policy.HEFT})
	if err != nil {
		fmt.Println(err)
		return
	}
	s, err := plan.Simulate(context.Background(), d, 0, 1, simulate.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	report, err := energy.FromSchedule(s, d.Problem(0, 1, false))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%.2f W for %.2f s, %s\n", report.MeanWatts, report.MakespanSeconds, report.Grounds())
	// Output:
	// 11.00 W for 1.00 s, modelled, watts guessed
}
