package train

import (
	"fmt"
	"testing"

	"dahl/dag"
	"dahl/must"
	"dahl/nn"
	"dahl/platform"
)

// TestNextPiece cuts segments of graphs of 1,000 tasks. 4,000,000 spans may be kept at once:
// those of 4,000 steps.
func TestNextPiece(t *testing.T) {
	big := dag.NewBuilder(nn.GraphTrain)
	for i := range 1000 {
		big.Task(dag.Task{Name: fmt.Sprint(i)})
	}
	train := must.Get(big.Build())(t)
	cpu := []platform.Device{{Kind: platform.CPU}}
	gpu := []platform.Device{cpu[0], {Kind: platform.CUDA, Memory: 1}}
	for _, c := range []struct {
		name          string
		devices       []platform.Device
		record, every int
		done          int // recorded steps of the epoch
		left          int
		want          int
		recorded      bool
	}{
		{"all on a processor", cpu, 0, 0, 4, 17_000, 4000, true},
		{"what is left", cpu, 0, 0, 4, 3, 3, true},
		{"the first ones", cpu, 3, 0, 0, 17, 3, true},
		{"the rest of the first ones", cpu, 7, 0, 5, 17, 2, true},
		{"the others", cpu, 7, 0, 7, 17, 17, false},
		{"by default on a GPU", gpu, 0, 0, 8, 17, 2, true},
		{"the others by default", gpu, 0, 0, 10, 17, 17, false},
		{"kept after every 2", cpu, 0, 2, 0, 17, 2, true},
		{"recorded before kept", cpu, 1, 2, 0, 17, 1, true},
		{"others kept after every 5", cpu, 1, 5, 1, 17, 5, false},
	} {
		tr := &Trainer{Leg: Leg{Workload: &Workload{Options: Options{Record: c.record, KeepEvery: c.every},
			Platform: &platform.Platform{Devices: c.devices}, Program: &dag.Program{Graphs: []*dag.Graph{train}}}}, recorded: []int{c.done}}
		if p := tr.nextPiece(dag.Segment{Steps: c.left}); p.Steps != c.want || p.Recorded != c.recorded {
			t.Errorf("%s: %d steps, recorded %v; want %d, %v", c.name, p.Steps, p.Recorded, c.want, c.recorded)
		}
	}
}
