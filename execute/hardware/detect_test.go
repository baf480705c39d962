package hardware

import (
	"slices"
	"testing"

	"dahl/execute/host"
	"dahl/must"
	"dahl/platform"
	"dahl/platforms/testmachine"
)

func TestDetect(t *testing.T) {
	p := must.Get(Detect())(t)
	if err := p.Check(); err != nil {
		t.Error(err)
	}
	d := p.Devices[0]
	if n := len(host.CPUs()); d.Count < 1 || d.Count > n || len(p.Workers) != d.Count {
		t.Errorf("%d cores and %d workers of %d allowed CPUs", d.Count, len(p.Workers), n)
	}
	if d.Kind != "cpu" || d.PowerSource != platform.Guess || p.HostPower.Source != platform.Guess || d.IdleWatts <= 0 || d.Busy.UnitWatts <= 0 {
		t.Errorf("device %+v, host %+v: powers must be positive guesses", d, p.HostPower)
	}
}

// The CPUs of a processor's units are those to which its workers are pinned, with their siblings.
// A second processor has the CPUs that follow.
func TestCPUsOf(t *testing.T) {
	cpus := host.CPUs()
	p := testmachine.Shared(t, testmachine.CPU(1, 2, 5))
	p.Devices = append(p.Devices, platform.Device{Name: "more", Kind: platform.CPU, Count: len(cpus)})
	must.Do(t, p.Complete())
	for d, pinned := range [][]int{cpus[:1], append(slices.Clone(cpus[1:]), cpus[0])} {
		var want []int
		for _, cpu := range pinned {
			want = append(append(want, cpu), host.Siblings(cpu)...)
		}
		slices.Sort(want)
		if got := CPUsOf(p, platform.DeviceID(d)); !slices.Equal(got, slices.Compact(want)) {
			t.Errorf("device %d runs on %v, want %v", d, got, want)
		}
	}
}
