package dahl_test

import (
	"testing"

	"dahl/dag"
	"dahl/nn"
	"dahl/schedule"
)

// TestNetworksOnAnEmulatedGPU simulates real training steps on the built-in machine with
// an emulated GPU, with room for everything and with half of the step arena that it takes:
// every dynamic policy comes to the end of each run, evicts something only in the second,
// and stands up to Check.
func TestNetworksOnAnEmulatedGPU(t *testing.T) {
	pl := shipped(t, "emulated")
	gpu, _ := pl.MemoryByName("vram")
	for _, model := range []string{"lenet5", "digits-cnn"} {
		m, err := nn.ModelByName(model)
		if err != nil {
			t.Fatal(err)
		}
		tiles := dag.Lowering{Default: dag.LayerLowering{Forward: dag.Cut{Samples: 32}, WeightGradient: dag.Cut{Samples: 32, Accumulators: 3}}}
		prog, err := nn.NewProgram(m, nn.ProgramOptions{Batch: 512, TrainSamples: 512, Epochs: 1, Type: dag.Float32, Lowering: tiles})
		if err != nil {
			t.Fatal(err)
		}
		for _, info := range schedule.Policies() {
			if info.Dynamic == nil {
				continue
			}
			pl.Memories[gpu].CapacityBytes = 0 // any number
			d := decided(t, prog, how{platform: pl, policy: info.Name})
			roomy := simulated(t, d, 0, 4)
			if len(roomy.Evictions) > 0 {
				t.Errorf("%s, %s: %d evictions with room for everything", model, info.Name, len(roomy.Evictions))
			}
			pl.Memories[gpu].CapacityBytes = leastBytes(d, gpu, 50)
			tight := simulated(t, decided(t, prog, how{platform: pl, policy: info.Name}), 0, 4)
			if len(tight.Evictions) == 0 {
				t.Errorf("%s, %s: no evictions from %d bytes, half of what has a place", model, info.Name, pl.Memories[gpu].CapacityBytes)
			}
			t.Logf("%s, %s: %v in %d bytes, %v in %d", model, info.Name, roomy.Makespan, roomy.PeakBytes[gpu], tight.Makespan, tight.PeakBytes[gpu])
		}
	}
}
