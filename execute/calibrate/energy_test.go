package calibrate

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"dahl/dag"
	"dahl/energy/meter"
	"dahl/must"
	"dahl/platform"
)

// TestClassesOf: of two variants each is the fastest at some shape, "slow" at none; a class
// has the longest of the shapes at which it is the fastest.
func TestClassesOf(t *testing.T) {
	model := func(device, variant, shape string, ns float64) platform.Model {
		return platform.Model{Op: "dense", Variant: variant, Type: "float32", Device: device, Shape: shape, Active: 1, Count: 3, MedianNs: ns}
	}
	models := []platform.Model{
		model("gpu", "a", "2", 10), model("gpu", "a", "3", 30), model("gpu", "a", "5", 90),
		model("gpu", "b", "2", 20), model("gpu", "b", "3", 40), model("gpu", "b", "5", 50),
		model("gpu", "slow", "2", 70), model("cpu", "a", "7", 1000),
	}
	var got []string
	for _, c := range classesOf(models, "gpu") {
		got = append(got, c.Variant+c.Shape)
	}
	if !slices.Equal(got, []string{"a3", "b5"}) {
		t.Errorf("%v", got)
	}
	// 20 W over 10, 30 and 90 ns; below idle is nothing.
	class := classesOf(models, "gpu")[0]
	putJoules(models, class, 20)
	for i, want := range []float64{200e-9, 600e-9, 1800e-9, 0} {
		if !nearly(models[i].Joules+1, want+1, 1e-15) {
			t.Errorf("model %d: %g J, want %g", i, models[i].Joules, want)
		}
	}
	if putJoules(models, class, -3); models[0].Joules != 0 {
		t.Errorf("%g J of a device that draws less than idle", models[0].Joules)
	}
}

// TestCalibrateEnergy: a meter that shows 30 W with calls and 12 without gives the device
// these powers, and each call of a measured class 18 W times its median. Devices without a
// meter keep theirs.
func TestCalibrateEnergy(t *testing.T) {
	p := node(t, 1, 2)
	p.Devices[2].IdleWatts, p.Devices[2].Busy.UnitWatts, p.Devices[2].PowerSource = 5, 7, platform.Guess
	asked := map[string]int{}
	opt := Options{Platform: p, Variants: []string{"ref"}, MaxTime: 20 * time.Millisecond, Units: map[string]int{"gpu0": 1, "gpu1": 1}}
	opt.Energy = func(_ context.Context, device string, calls func() (int, error)) (meter.CallEnergy, bool, error) {
		asked[device]++
		n, err := calls()
		if n < 1 && err == nil {
			err = fmt.Errorf("%d calls", n)
		}
		return meter.CallEnergy{Watts: 30, IdleWatts: 12}, device == "gpu0", err
	}
	c := must.Get(Run(context.Background(), []*dag.Graph{layers(t)}, opt))(t)
	d, other := c.Platform.Devices[1], c.Platform.Devices[2]
	if d.IdleWatts != 12 || d.Busy.UnitWatts != 30 || d.PowerSource != platform.Measured {
		t.Errorf("gpu0: idle %g W, busy %+v, %s", d.IdleWatts, d.Busy, d.PowerSource)
	}
	if other.IdleWatts != 5 || other.Busy.UnitWatts != 7 || other.PowerSource != platform.Guess || asked["gpu1"] != 1 || c.Devices[1].Energy != nil {
		t.Errorf("gpu1 without a meter, which was asked for %d times: %+v", asked["gpu1"], other)
	}
	models := 0
	for _, m := range c.Platform.Models {
		want := 0.0
		if m.Device == "gpu0" {
			want = 18 * m.MedianNs / 1e9
			models++
		}
		if m.Device == "cpu" || m.Joules != want && !nearly(m.Joules, want, 1e-12) {
			t.Errorf("model %+v, want %g J", m, want)
		}
	}
	if models == 0 || asked["gpu0"] < 2 {
		t.Errorf("%d models, %d classes", models, asked["gpu0"]-1)
	}
}
