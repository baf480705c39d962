package dahl_test

import (
	"fmt"
	"testing"

	"dahl/dag"
	"dahl/platform"
	"dahl/schedule"
	"dahl/schedule/layout"
)

// TestPoliciesOverDevices trains a convolutional network with every policy that decides at
// run time, on two cores and one or two emulated GPUs: with room for everything, and with
// half of it, so that storages share bytes and something has to leave. The weights are
// those of one core to the last bit; every schedule stands up to Check.
func TestPoliciesOverDevices(t *testing.T) {
	for i := range 2 {
		n := newNetwork(t, "digits-cnn", dag.Float32, 1)
		n.lower(t, []dag.Lowering{fixtureLowering(), n.mixedLowering()}[i])
		want := n.execute(t, how{platform: machine(t, 1), policy: "heft"}).hash()
		for _, info := range schedule.Policies() {
			if info.Dynamic == nil {
				continue
			}
			for gpus := 1; gpus <= 2; gpus++ {
				t.Run(fmt.Sprintf("mixed %v, %s, %d GPUs", i == 1, info.Name, gpus), func(t *testing.T) {
					p := emulatedNode(t, gpus)
					roomy := n.execute(t, how{platform: p, policy: info.Name})
					if roomy.hash() != want {
						t.Error("the weights differ from those of one core")
					}
					if left := roomy.evictions(); left > 0 {
						t.Errorf("%d evictions with room for everything", left)
					}
					p = emulatedNode(t, gpus)
					p.Devices[0].FlopsPerSec["float32"] = 1e6 // so that whoever estimates prefers a GPU
					for m := 1; m < len(p.Memories); m++ {
						p.Memories[m].CapacityBytes = leastBytes(roomy.decision, platform.MemoryID(m), 50)
					}
					tight := n.execute(t, how{platform: p, policy: info.Name})
					if tight.hash() != want {
						t.Error("in tight memories the weights differ from those of one core")
					}
					if info.Name == "dmda" && tight.evictions() == 0 { // eager gives a GPU what it happens to be idle for
						t.Error("nothing leaves tight memories")
					}
				})
			}
		}
	}
}

func (tr *training) evictions() (n int) {
	for _, r := range tr.runs {
		n += len(r.schedule.Evictions)
	}
	return n
}

// leastBytes is what a memory needs of data and workspace, and some percent of its step
// arena.
func leastBytes(d *schedule.Decision, m platform.MemoryID, percent int64) int64 {
	var fixed, step int64
	for i := range d.Graphs {
		l := d.Layouts(i)[m]
		fixed = max(fixed, l.ArenaBytes[layout.DataArena]+l.ArenaBytes[layout.ScratchArena])
		step = max(step, l.ArenaBytes[layout.StepArena])
	}
	return fixed + step*percent/100
}
