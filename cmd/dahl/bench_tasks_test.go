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

// BenchmarkSteadyTasks runs steps of each compiled graph, under every policy.
func BenchmarkSteadyTasks(b *testing.B) {
	p, err := execute.Detect()
	if err != nil {
		b.Fatal(err)
	}
	if p, err = withWorkers(p, 2); err != nil {
		b.Fatal(err)
	}
	for i := range taskShapes {
		for _, policy := range []string{"eager", "dmda", "heft"} {
			b.Run(taskShapes[i].name+"/"+policy, func(b *testing.B) {
				prog, err := buildTasks(&taskShapes[i], 100_000)
				if err != nil {
					b.Fatal(err)
				}
				r, err := execute.New(prog, execute.Options{Platform: p, Policy: policy})
				if err != nil {
					b.Fatal(err)
				}
				defer r.Close()
				b.ResetTimer()
				if _, err := r.Run(context.Background(), 0, b.N, false); err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(prog.Graphs[0].NumTasks()), "ns/task")
			})
		}
	}
}
