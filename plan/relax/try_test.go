package relax

import (
	"context"
	"fmt"
	"testing"
	"time"

	"dahl/dag"
	"dahl/execute"
	"dahl/nn"
	"dahl/plan/certificate"
	"dahl/platforms"
	"dahl/schedule"
	"dahl/simulate"
	"dahl/energy"
)

func TestTry(t *testing.T) {
	for _, name := range []string{"laptop", "emulated", "manycore:cpu:16", "server:gpu0"} {
		for _, model := range []string{"dahl-cnn", "mlp", "lenet5"} {
			var on string
			pn := name
			for i := range name {
				if name[i] == ':' {
					pn, on = name[:i], name[i+1:]
					break
				}
			}
			p, err := platforms.Load(pn)
			if err != nil {
				t.Fatal(err)
			}
			for i := range p.Devices {
				p.Devices[i].Clocks = nil
			}
			m, err := nn.ModelByName(model)
			if err != nil {
				t.Fatal(err)
			}
			prog, err := nn.NewProgram(m, nn.ProgramOptions{Batch: 64, TrainSamples: 64, Epochs: 1, Type: dag.Float32, Lowering: nn.DefaultLowering(m, 64, 1<<20, dag.Float32)})
			if err != nil {
				t.Fatal(err)
			}
			priced, err := schedule.Price(prog, p, execute.Target{})
			if err == nil && on != "" {
				priced, err = priced.On(on)
			}
			if err != nil {
				t.Fatal(err)
			}
			d, err := priced.Decide(schedule.Choice{})
			if err != nil {
				t.Fatal(err)
			}
			s, err := simulate.Run(context.Background(), d, 0, 1, simulate.Options{})
			if err != nil {
				t.Fatal(err)
			}
			report, _ := energy.FromSchedule(s, d.Problem(0, 1, false))
			for _, o := range []certificate.Objective{certificate.Time, certificate.Energy} {
				value := float64(s.Makespan)
				if o == certificate.Energy {
					value = report.TotalJoules * 1e9
				}
				begin := time.Now()
				model, err := certificate.NewModel(priced, 0, o)
				if err != nil {
					t.Fatal(err)
				}
				proof, err := Bound(context.Background(), model, value, 100000)
				if err != nil {
					t.Fatal(err)
				}
				took := time.Since(begin)
				b, err := proof.Bound(model)
				fmt.Println(name, m.Name, o, len(model.Tasks), "tasks; value", value, "bound", b, "gap", value/b-1, "rows", len(proof.Rows), took, time.Since(begin), err, priced.LowerBound(0, 1))
			}
		}
	}
}
