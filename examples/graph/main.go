// Graph schedules tasks that no network made. Nobody writes a dependence down: a task follows the
// tasks that wrote its inputs.
package main

import (
	"context"
	"fmt"
	"log"

	"dahl/dag"
	"dahl/plan"
	"dahl/platform"
	"dahl/schedule"
	"dahl/schedule/policy"
	"dahl/simulate"
)

const twoCores = `[[memory]]
name = "ram"
[[device]]
name = "cpu"
kind = "cpu"
count = 2
memory = "ram"
`

func main() {
	b := dag.NewBuilder("four parts")
	x := b.Buffer(dag.Buffer{Name: "x", Shape: []int{4}, Type: dag.Float32})
	ms := func(n int64) []dag.Cost { return []dag.Cost{{Key: "cpu", Ns: n * 1e6}} }
	for i := range 4 { // each writes an element
		part := dag.Region{Buffer: x, Box: dag.Box{{Lo: i, Hi: i + 1}}}
		b.Task(dag.Task{Name: fmt.Sprint("part ", i), Costs: ms(3), Accesses: []dag.Access{{Region: part, Mode: dag.Write}}})
	}
	b.Task(dag.Task{Name: "sum", Costs: ms(2), Accesses: []dag.Access{{Region: dag.Region{Buffer: x}, Mode: dag.Read}}}) // reads all
	g := must(b.Build())
	machine := must(platform.Parse([]byte(twoCores), "two cores"))
	prog := &dag.Program{Graphs: []*dag.Graph{g}, Order: []dag.Segment{{Steps: 1}}}
	d := must(plan.Decide(prog, machine, schedule.Unbound, schedule.Choice{Policy: policy.HEFT}))
	s := must(plan.Simulate(context.Background(), d, 0, 1, simulate.Options{}))
	for _, span := range s.Spans {
		fmt.Printf("%-6s %4v to %4v on %s\n", g.Tasks[span.Task].Name, span.Start, span.End, machine.Workers[span.Worker].Name)
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return v
}
