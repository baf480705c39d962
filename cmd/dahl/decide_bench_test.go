package main

import (
	"testing"

	"dahl/schedule"
)

// BenchmarkDecide decides again on what is priced already, as a planner does: by HEFT, and
// by a plan that says where tasks run and nothing else.
func BenchmarkDecide(b *testing.B) {
	for _, machine := range []string{"server", "manycore"} {
		for _, model := range []string{"lenet5", "cifar-cnn"} {
			w, err := simulatedWorkload(b.Context(), &options{Platform: machine, Model: model, DType: "float32", Policy: "heft", Precision: "full", Steps: 1})
			if err != nil {
				b.Fatal(err)
			}
			priced := w.Decision.Priced
			order := &schedule.Plan{Order: w.Decision.Graphs[0].Plan.Order}
			for _, by := range []struct {
				name   string
				choice schedule.Choice
			}{{"heft", schedule.Choice{}}, {"plan", schedule.Choice{Plans: []*schedule.Plan{order}}}} {
				b.Run(machine+"/"+model+"/"+by.name, func(b *testing.B) {
					for b.Loop() {
						if _, err := priced.Decide(by.choice); err != nil {
							b.Fatal(err)
						}
					}
					b.ReportMetric(float64(len(priced.Program.Graphs[0].Tasks)), "tasks")
				})
			}
		}
	}
}
