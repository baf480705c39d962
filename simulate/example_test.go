package simulate_test

import (
	"context"
	"fmt"
	"strings"

	"dahl/dag"
	"dahl/platforms"
	"dahl/schedule"
	"dahl/schedule/policy"
	"dahl/simulate"
)

// Each task takes its time and 0.3 us before it, in which the core is given it.
func ExampleRun() {
	g, err := dag.ReadJSON(strings.NewReader(`{"format": "dahl-graph 1", "buffers": [{"name": "x", "bytes": 3}], "tasks": [
		{"name": "make", "writes": ["x"], "ns": {"cpu": 70000}},
		{"name": "use", "reads": ["x"], "ns": {"cpu": 50000}}]}`), "graph.json")
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
	priced, err := schedule.Price(prog, p, schedule.Unbound)
	if err != nil {
		fmt.Println(err)
		return
	}
	d, err := priced.Decide(schedule.Choice{Policy: policy.HEFT})
	if err != nil {
		fmt.Println(err)
		return
	}
	s, err := simulate.Run(context.Background(), d, 0, 1, simulate.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, span := range s.Spans {
		fmt.Println(g.Tasks[span.Task].Name, span.Start, "to", span.End)
	}
	// Output:
	// make 300ns to 70.3µs
	// use 70.6µs to 120.6µs
}
