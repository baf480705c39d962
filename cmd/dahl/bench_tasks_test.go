package main

import (
	"context"
	"testing"

	"dahl/execute"
)

// BenchmarkTasks builds, compiles and runs each graph of `dahl bench tasks` once; it
// is there to be profiled.
func BenchmarkTasks(b *testing.B) {
	p, err := execute.Detect()
	if err != nil {
		b.Fatal(err)
	}
	if p, err = withWorkers(p, 2); err != nil {
		b.Fatal(err)
	}
	for i := range taskShapes {
		for _, policy := range tasksPolicies {
			b.Run(taskShapes[i].name+"/"+policy, func(b *testing.B) {
				o := tasksOptions{tasks: 100_000, steps: 1}
				for b.Loop() {
					if _, _, _, err := o.measure(context.Background(), p, &taskShapes[i], policy); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
