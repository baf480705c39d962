package conformance

import (
	"fmt"
	"testing"

	"dahl/dag"
	"dahl/schedule/policy"
)

// TestPoliciesOverDevices trains a convolutional network by the plan of every policy that decides at
// run time in one memory, on two cores and one or two emulated GPUs. The weights are
// those of one core to the last bit; every schedule stands up to Check.
func TestPoliciesOverDevices(t *testing.T) {
	for i := range 2 {
		n := newNetwork(t, "digits-cnn", dag.Float32, 1)
		n.lower(t, []dag.Lowering{fixtureLowering(), n.mixedLowering()}[i])
		want := n.execute(t, how{platform: machine(t, 1), policy: "heft"}).hash()
		for _, info := range policy.All() {
			if _, online := info.(policy.Online); !online {
				continue
			}
			for gpus := 1; gpus <= 2; gpus++ {
				t.Run(fmt.Sprintf("mixed %v, %s, %d GPUs", i == 1, info.Doc().Name, gpus), func(t *testing.T) {
					p := emulatedNode(t, gpus)
					roomy := n.execute(t, how{platform: p, policy: info.Doc().Name})
					if roomy.hash() != want {
						t.Error("the weights differ from those of one core")
					}
					if left := roomy.evictions(); left > 0 {
						t.Errorf("%d evictions with room for everything", left)
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
