package dahl_test

import (
	"context"
	"testing"

	"dahl/dag"
	"dahl/nn"
	"dahl/platform"
	"dahl/platforms"
	"dahl/schedule"
	"dahl/simulate"
)

// TestNetworksOnAnEmulatedGPU simulates real training steps on the built-in machine with
// an emulated GPU, with room for everything and with half of what is then used at most:
// every dynamic policy comes to the end of each run, evicts something only in the second,
// and stands up to Check.
func TestNetworksOnAnEmulatedGPU(t *testing.T) {
	src, err := platforms.Open("emulated")
	if err != nil {
		t.Fatal(err)
	}
	pl, err := platform.Parse(src, "emulated.toml")
	if err != nil {
		t.Fatal(err)
	}
	gpu, _ := pl.MemoryByName("vram")
	for _, model := range []string{"lenet5", "dahl-cnn"} {
		m, err := nn.ModelByName(model)
		if err != nil {
			t.Fatal(err)
		}
		tiles := dag.Lowering{Default: dag.LayerLowering{SampleTile: 32, GradSampleTile: 32, Accumulators: 3}}
		prog, err := nn.NewProgram(m, nn.ProgramOptions{Batch: 512, TrainSamples: 512, Epochs: 1, Type: dag.Float32, Lowering: tiles})
		if err != nil {
			t.Fatal(err)
		}
		costs, err := schedule.NewCosts(prog.Graphs[0], pl, schedule.CostOptions{})
		if err != nil {
			t.Fatal(err)
		}
		p := &schedule.Problem{Graph: prog.Graphs[0], Platform: pl, Costs: costs, Steps: 4}
		for _, info := range schedule.Policies() {
			if info.Dynamic == nil {
				continue
			}
			pl.Memories[gpu].CapacityBytes = 64e6
			roomy := simulateChecked(t, p, info)
			if len(roomy.Evictions) > 0 {
				t.Errorf("%s, %s: %d evictions from %d bytes, of which %d are used", model, info.Name, len(roomy.Evictions), int64(64e6), roomy.PeakBytes[gpu])
			}
			pl.Memories[gpu].CapacityBytes = roomy.PeakBytes[gpu] / 2
			tight := simulateChecked(t, p, info)
			if len(tight.Evictions) == 0 {
				t.Errorf("%s, %s: no evictions from half of the %d bytes that it would use", model, info.Name, roomy.PeakBytes[gpu])
			}
			t.Logf("%s, %s: %v in %d bytes, %v in %d", model, info.Name, roomy.Makespan, roomy.PeakBytes[gpu], tight.Makespan, tight.PeakBytes[gpu])
		}
	}
}

func simulateChecked(t *testing.T, p *schedule.Problem, info schedule.PolicyInfo) *schedule.Schedule {
	t.Helper()
	s, err := simulate.Run(context.Background(), p, simulate.Options{Policy: info.Dynamic(p), Name: info.Name})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Check(p); err != nil {
		t.Fatal(err)
	}
	return s
}
