package execute

import (
	"fmt"
	"testing"

	"dahl/schedule/policy"
)

// dynamicPolicies are the names of those that decide at run time.
func dynamicPolicies() (names []string) {
	for _, info := range policy.All() {
		if _, online := info.(policy.Online); online {
			names = append(names, info.Doc().Name)
		}
	}
	return names
}

// TestPoliciesOnDevicesGiveTheBitsOfTheCPU trains by the plan of every policy that decides at run
// time in one memory, over cores and emulated GPUs. The truth is one core in program order.
func TestPoliciesOnDevicesGiveTheBitsOfTheCPU(t *testing.T) {
	const steps = 7
	prog := testProgram(t)
	want := trained(t, prog, how{Platform: machine(t, 1), Policy: "heft", Variant: "go"}, steps)
	for _, policy := range dynamicPolicies() {
		for _, gpus := range []int{1, 2} {
			for _, cores := range []int{1, 2} {
				t.Run(fmt.Sprintf("%s, %d cores, %d GPUs", policy, cores, gpus), func(t *testing.T) {
					if got := trained(t, prog, how{Platform: node(t, cores, gpus), Policy: policy, Variant: "go"}, steps); got != want {
						t.Error("the weights differ from those of one core")
					}
				})
			}
		}
	}
}
