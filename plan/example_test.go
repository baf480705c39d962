package plan_test

import (
	"context"
	"fmt"

	"dahl/dag"
	"dahl/execute/hardware"
	"dahl/nn"
	"dahl/nn/models"
	"dahl/plan"
	"dahl/platforms"
	"dahl/schedule"
	"dahl/schedule/policy"
)

// lenet5 is a training step of a network, as all of a machine runs it.
func lenet5(machine string) (*schedule.Decision, error) {
	m, err := models.ByName("lenet5")
	if err != nil {
		return nil, err
	}
	p, err := platforms.Load(machine)
	if err != nil {
		return nil, err
	}
	prog, err := nn.NewProgram(m, nn.ProgramOptions{Batch: 64, TrainSamples: 64, Type: dag.Float32, Lowering: nn.DefaultLowering(m, 64, int(p.Devices[0].L2Bytes), dag.Float32)})
	if err != nil {
		return nil, err
	}
	return plan.Decide(prog, p, hardware.Target{}, schedule.Choice{Policy: policy.HEFT})
}

func ExamplePredict() {
	d, err := lenet5("laptop")
	if err != nil {
		fmt.Println(err)
		return
	}
	ten := []plan.Piece{{Segment: dag.Segment{Steps: 10}, Recorded: true, First: true, Samples: 64}}
	o, err := plan.Predict(context.Background(), d, ten, false)
	if err != nil {
		fmt.Println(err)
		return
	}
	bound := d.Priced.LowerBound(0, 10)
	fmt.Println("10 steps take longer than the bound:", o.Run >= bound)
	fmt.Println("the watts are", o.Report.Grounds())
	// Output:
	// 10 steps take longer than the bound: true
	// the watts are modelled, watts guessed
}

// Each kind of devices alone and all. Beside the GPU one core stays, for
// what the program itself does.
func ExampleDeviceSets() {
	d, err := lenet5("emulated")
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, set := range plan.DeviceSets(d.Priced.Platform) {
		some, err := d.Priced.Platform.Select(set)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(set, "has", len(some.Workers), "workers")
	}
	// Output:
	// cpu:2 has 2 workers
	// gpu has 2 workers
	// cpu:2,gpu has 3 workers
}
