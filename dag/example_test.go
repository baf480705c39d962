package dag_test

import (
	"fmt"

	"dahl/dag"
)

// Two tasks fill the halves of y and a third one reads its middle, so that it follows both.
// Nobody says so: it follows from the regions.
func ExampleBuilder() {
	b := dag.NewBuilder("halves")
	y := b.Buffer(dag.Buffer{Name: "y", Type: dag.Float32, Shape: []int{6}, Role: dag.Activation})
	over := func(lo, hi int, mode dag.Mode) []dag.Access {
		return []dag.Access{{Region: dag.Region{Buffer: y, Box: dag.Box{{Lo: lo, Hi: hi}}}, Mode: mode}}
	}
	b.Task(dag.Task{Name: "left", Accesses: over(0, 3, dag.Write)})
	b.Task(dag.Task{Name: "right", Accesses: over(3, 6, dag.Write)})
	middle := b.Task(dag.Task{Name: "middle", Accesses: over(2, 5, dag.Read)})
	g, err := b.Build()
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, t := range g.Preds(middle) {
		fmt.Println("middle follows", g.Tasks[t].Name)
	}
	// Output:
	// middle follows left
	// middle follows right
}
