package schedule

import (
	"strings"
	"testing"

	"dahl/dag"
	"dahl/platform"
)

// TestCheckGiven: a cost is for a device of the platform, for a kind, or for any device.
func TestCheckGiven(t *testing.T) {
	p := &platform.Platform{Name: "node", Devices: []platform.Device{{Name: "big", Kind: "cpu"}}}
	for key, want := range map[string]string{
		"big": "", "big/go@1GHz": "", "cpu": "", "cuda/cublas": "", "*": "",
		"bigg": `task "t" has a cost for "bigg", which is neither a device of platform "node" nor a kind of devices; there are *, big, cpu, cuda, emulated`,
		"Cpu":  `a cost for "Cpu"`,
	} {
		err := CheckGiven(&dag.Graph{Tasks: []dag.Task{{Name: "s"}, {Name: "t", Costs: []dag.Cost{{Key: "*"}, {Key: key}}}}}, p)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", key, err, want)
		}
	}
}
