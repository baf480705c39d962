package calibrate

import (
	"context"
	"reflect"
	"testing"
	"time"

	"dahl/dag"
	"dahl/must"
	"dahl/platform"
)

// TestCalibrateEmulated measures a core and two emulated GPUs end to end. On a loaded
// computer everything may take longer, and nothing less: a copy no less than its link, a
// call no less than the device's speed.
func TestCalibrateEmulated(t *testing.T) {
	p := node(t, 1, 2)
	before := *copyOf(p)
	g := layers(t)
	c := must.Get(Run(context.Background(), []*dag.Graph{g}, Options{Platform: p, Variants: []string{"ref"}, MaxTime: 30 * time.Millisecond}))(t)
	if len(c.Devices) != 2 {
		t.Fatalf("%d devices were measured, want both GPUs", len(c.Devices))
	}
	for i, d := range c.Devices {
		dev := c.Platform.Devices[i+1]
		checkEmulated(t, c.Platform, &dev, &d)
		if was := before.Devices[i+1]; dev.FlopsPerSec["float32"] != was.FlopsPerSec["float32"] || !reflect.DeepEqual(c.Platform.Links[i], before.Links[i]) ||
			c.Platform.Memories[i+1] != before.Memories[i+1] || !d.LinksKept {
			t.Errorf("calibrating changed what %s is", dev.Name)
		}
	}
	models := map[string]int{}
	for _, m := range c.Platform.Models {
		models[m.Device]++
	}
	if models["gpu0"] != models["cpu"] || models["gpu0"] != models["gpu1"] || models["cpu"] == 0 {
		t.Errorf("models by device: %v, want as many of each", models)
	}
}

// Devices with clocks, changes of them, sleep, a cap and powers can be measured in pairs.
func TestPairOf(t *testing.T) {
	p := node(t, 2, 1)
	p.CapWatts = 90
	for i := range p.Devices {
		d := &p.Devices[i]
		d.IdleWatts, d.Busy, d.PowerSource, d.CapWatts, d.MayBeOff, d.OffWatts = 2, platform.BusyPower{UnitWatts: 5}, platform.Guess, 20, true, 1
		d.Clocks = []platform.Clock{{Name: "own", Scale: 1, Idle: 2, Busy: d.Busy}, {Name: "slow", Scale: 0.5, Idle: 1, Busy: d.Busy}}
		d.AtClock, d.UnitClocks, d.Switch = 1, true, platform.Transition{Takes: time.Millisecond, Joules: 1}
		d.Sleeps = []platform.SleepState{{Name: "deep", Watts: 1, After: time.Millisecond}}
	}
	must.Do(t, p.Complete())
	pair, err := pairOf(p, 1)
	if err != nil || len(pair.Workers) != 2 || pair.HasStates() || len(pair.Devices[0].Clocks)+len(pair.Devices[1].Clocks) > 0 {
		t.Errorf("%v, %+v; want one core and one GPU that never change", err, pair)
	}
}

// checkEmulated checks lower bounds that follow from what the device is: a link of 1 µs and
// 1 GB/s.
func checkEmulated(t *testing.T, p *platform.Platform, dev *platform.Device, d *Device) {
	t.Helper()
	for i, n := range d.Copies.Sizes {
		if least := time.Microsecond + time.Duration(n); d.Copies.In[i] < least || d.Copies.Out[i] < least {
			t.Errorf("%s: copies of %d bytes take %v in and %v out, the link %v", dev.Name, n, d.Copies.In[i], d.Copies.Out[i], least)
		}
	}
	if len(d.Copies.Sizes) < 3 || d.Copies.BothWays <= 0 || d.Copies.Strided <= 0 || d.Crowded <= 0 {
		t.Errorf("%s: copies %+v, beside others %g", dev.Name, d.Copies, d.Crowded)
	}
	l := d.Launches
	if l.Tiny <= 0 || l.Chain <= 0 || l.RoundTrip <= 0 || l.ToDevice <= 0 || l.ToHost <= 0 || dev.Dispatch != l.Gap {
		t.Errorf("%s: launches %+v, dispatch %v", dev.Name, l, dev.Dispatch)
	}
	if d.BytesPerSec <= 0 || d.BytesPerSec > 1e11 || d.FlopsPerSec["float32"] <= 0 || d.FlopsPerSec["float32"] > 1e10 {
		t.Errorf("%s: %g B/s and %v F/s of a device of 1e11 B/s and 1e10 F/s", dev.Name, d.BytesPerSec, d.FlopsPerSec)
	}
	for _, m := range p.Models {
		if m.Device == dev.Name && (m.Flops/m.MedianNs > 10*(1+1e-9) || m.Count == 0 || m.Active != 1) {
			t.Errorf("%s: model %+v", dev.Name, m)
		}
	}
}
