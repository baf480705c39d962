package main

import (
	"strings"
	"testing"

	"dahl/cmd/cli"
	"dahl/cmd/dahl/flags"
	"dahl/must"
	"dahl/platform"
)

// A machine is detected with its processors; for what they are not it says what there is.
func TestDetectedDevices(t *testing.T) {
	p, err := flags.ThisMachine(&flags.Options{Devices: "cpu:1"})
	if err != nil || len(p.Workers) != 1 {
		t.Errorf("one core: %+v, %v", p, err)
	}
	if _, err = flags.ThisMachine(&flags.Options{Devices: "cpu,fpga"}); err == nil || !strings.Contains(err.Error(), `no device or kind "fpga"; it has cpu`) || strings.Contains(err.Error(), "\n") {
		t.Errorf("an unknown kind: %v", err)
	}
}

// --workers counts cores, wherever a platform file has its processor.
func TestWorkersAreCores(t *testing.T) {
	p := &platform.Platform{Name: "gpu first", Memories: []platform.Memory{{Name: "vram"}, {Name: "ram"}},
		Devices: []platform.Device{{Name: "gpu", Kind: "emulated", Count: 1, Unreachable: true, PowerSource: platform.Guess},
			{Name: "cpu", Kind: "cpu", Count: 1, Memory: 1, PowerSource: platform.Guess}}}
	q, err := cli.WithWorkers(p, 3)
	if err != nil || q.Devices[0].Count != 1 || q.Devices[1].Count != 3 || len(q.Workers) != 4 {
		t.Errorf("%+v, %v", q, err)
	}
	if p.Devices[1].Count != 1 {
		t.Error("the platform that was given has changed")
	}
	// Of two cores that draw 0.5 W each idle, 6 W with one busy and 10 W with both, and a host of 10 W: one core that
	// draws 5.5 W busy, beside a host with an idle one of 10.5 W.
	p = must.Get(cli.LoadPlatform("emulated"))(t)
	if q, err = cli.WithWorkers(p, 1); err != nil || len(q.Workers) != 2 || q.Devices[0].Watts(q.Devices[0].AtClock, 1) != 5.5 || q.HostPower.Value != 10.5 {
		t.Errorf("one of two cores: %+v, %v", q, err)
	}
}
