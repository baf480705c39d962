package conformance

import (
	"testing"

	"dahl/schedule"
	"dahl/schedule/policy"
)

// BenchmarkDecide decides again on what is priced already, as a planner does: by HEFT, and
// by a plan that says where tasks run and nothing else.
func BenchmarkDecide(b *testing.B) {
	for _, machine := range []string{"server", "manycore"} {
		for model, batch := range map[string]int{"lenet5": 32, "cifar-cnn": 64} {
			p := shipped(b, machine)
			d := decided(b, program(trainingStep(b, model, batch, p)), how{platform: p})
			order := &schedule.Plan{Order: d.Graphs[0].Plan.Order}
			for _, by := range []struct {
				name   string
				choice schedule.Choice
			}{{"heft", schedule.Choice{Policy: policy.HEFT}}, {"plan", schedule.Choice{Plans: []*schedule.Plan{order}}}} {
				b.Run(machine+"/"+model+"/"+by.name, func(b *testing.B) {
					for b.Loop() {
						if _, err := d.Priced.Decide(by.choice); err != nil {
							b.Fatal(err)
						}
					}
					b.ReportMetric(float64(d.Priced.Program.Graphs[0].NumTasks()), "tasks")
				})
			}
		}
	}
}
