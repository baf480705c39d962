package calibrate

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"testing"

	"dahl/energy/meter"
	"dahl/platform"
)

// powerMeter shows idle and busy watts in turn, and runs the calls once.
func powerMeter(t *testing.T, shown [][2]float64) func(context.Context, string, func() (int, error)) (meter.CallEnergy, bool, error) {
	return func(_ context.Context, device string, calls func() (int, error)) (meter.CallEnergy, bool, error) {
		n, err := calls()
		if n < 1 || err != nil || device != "cpu" || len(shown) == 0 {
			t.Errorf("%d calls on %q with %d powers left: %v", n, device, len(shown), err)
			return meter.CallEnergy{}, false, err
		}
		e := meter.CallEnergy{IdleWatts: shown[0][0], Watts: shown[0][1], Meter: "RAPL (2 packages)"}
		shown = shown[1:]
		return e, true, nil
	}
}

// Two cores, one busy and both, three times. The meter shows 20, 20, 22, 22, 21 and 21 W idle, of
// which the (upper) median is 21. Above idle one core draws 20, 24 and 22 W, median 22, and both
// draw 50, 52 and 51 W. So the processor draws 21, 43 and 72 W, and a core 10.5 W idle. The spreads
// are 2/21, 4/43 and 2/72. Beside a processor of three cores, which has three fifths of the idle
// watts, it draws 8.4, 30.4 and 59.4 W. A single core is measured three times: 20, 20 and 22 W idle
// and 20, 50 and 24 W above, medians 20 and 24, with a spread of 30/44.
func TestMeasurePower(t *testing.T) {
	shown := [][2]float64{{20, 40}, {20, 70}, {22, 46}, {22, 74}, {21, 43}, {21, 72}}
	for _, c := range []struct {
		words             string
		cores, others     int
		idle, first, all  float64
		perCore, spreadIs float64
	}{
		{"two cores", 2, 0, 21, 43, 72, 10.5, 2.0 / 21},
		{"of two processors", 2, 3, 8.4, 30.4, 59.4, 4.2, 2.0 / 21},
		{"one core", 1, 0, 20, 44, 44, 20, 30.0 / 44},
	} {
		p := machine(t, c.cores)
		if c.others > 0 {
			p.Devices = append(p.Devices, platform.Device{Name: "other", Kind: "cpu", Count: c.others})
		}
		p.Devices[0].Clocks = []platform.Clock{{Name: "own", Scale: 1}, {Name: "slow", Scale: 0.5}}
		saved := 0
		k := &calibrator{ctx: t.Context(), platform: p, cpu: &p.Devices[0], cores: c.cores}
		k.opt.Energy, k.opt.Save = powerMeter(t, slices.Clone(shown)), func(*platform.Platform) error { saved++; return nil }
		if err := k.measurePower(); err != nil || len(k.result.Powers) != 1 || saved != 1 {
			t.Fatalf("%s: %v, powers %+v, saved %d times", c.words, err, k.result.Powers, saved)
		}
		d, got := k.cpu, k.result.Powers[0]
		near := func(a, b float64) bool { return nearly(a, b, 1e-12) }
		if !near(got.IdleWatts, c.idle) || !near(got.OneWatts, c.first) || !near(got.AllWatts, c.all) || !near(got.Spread, c.spreadIs) || got.Meter != "RAPL (2 packages)" {
			t.Errorf("%s: %+v, want %+v", c.words, got, c)
		}
		if !near(d.IdleWatts, c.perCore) || d.PowerSource != platform.Measured || d.PowerMeter != got.Meter || d.PowerSpread != got.Spread ||
			!near(p.Devices[0].Watts(p.Devices[0].AtClock, 1), c.first) || !near(p.Devices[0].Watts(p.Devices[0].AtClock, c.cores), c.all) || !near(p.Devices[0].Watts(p.Devices[0].AtClock, 0), c.idle) {
			t.Errorf("%s: the device is %+v", c.words, d)
		}
		if d.Clocks[0].Idle != d.IdleWatts || d.Clocks[0].Busy != d.Busy || d.Clocks[1].Idle != 0 {
			t.Errorf("%s: clocks %+v", c.words, d.Clocks)
		}
	}
}

// The meter shows what it does in TestMeasurePower, after the processor was set to its clock that
// says a frequency. The three cores beside it draw 4 W each of the 21 W idle, so that it draws 9 W,
// and with 22 and 51 W above idle 31 and 60 W. Where its own power is not measured, or there is no
// meter, nothing is set.
func TestCalibrateClocks(t *testing.T) {
	for _, source := range []platform.Source{platform.Measured, platform.Guess, ""} {
		p := machine(t, 2)
		d := &p.Devices[0]
		d.IdleWatts, d.Busy, d.PowerSource = 5, platform.BusyPower{UnitWatts: 7}, cmp.Or(source, platform.Measured)
		d.Clocks = []platform.Clock{{Name: "own", Scale: 1, Idle: 5, Busy: d.Busy}, {Name: "vague", Scale: 0.7, Idle: 5}, {Name: "slow", Scale: 0.5, FrequencyHz: 1e9}}
		p.Devices = append(p.Devices, platform.Device{Name: "other", Kind: "cpu", Count: 3, IdleWatts: 4})
		was, sets, saved := slices.Clone(d.Clocks), 0, 0
		o := Options{Platform: p, Resume: true, Save: func(*platform.Platform) error { saved++; return nil }}
		if source != "" {
			o.Energy = powerMeter(t, [][2]float64{{20, 40}, {20, 70}, {22, 46}, {22, 74}, {21, 43}, {21, 72}})
		}
		c, err := Clocks(t.Context(), o, func(d platform.DeviceID, clock platform.ClockID) error {
			if sets++; d != 0 || clock != 2 {
				t.Errorf("device %d is set to its clock %d", d, clock)
			}
			return nil
		})
		if !slices.Equal(p.Devices[0].Clocks, was) {
			t.Error("the platform that was given has changed")
		}
		if source != platform.Measured {
			if err != nil || sets+saved+len(c.Powers) != 0 || !slices.Equal(c.Platform.Devices[0].Clocks, was) {
				t.Errorf("%q: %v, %d clocks set, %d saved, %+v", source, err, sets, saved, c.Powers)
			}
			continue
		}
		want := was
		want[2].Idle, want[2].Busy = 4.5, platform.BusyPower{FirstWatts: 31, AllWatts: 60, WholeDevice: true}
		if err != nil || sets != 1 || saved != 1 || !slices.Equal(c.Platform.Devices[0].Clocks, want) {
			t.Errorf("%v, %d clocks set, %d saved: %+v, want %+v", err, sets, saved, c.Platform.Devices[0].Clocks, want)
		}
		if len(c.Powers) != 1 || c.Powers[0].Clock != "slow" || c.Powers[0].IdleWatts != 9 || c.Powers[0].OneWatts != 31 || c.Powers[0].AllWatts != 60 {
			t.Errorf("powers %+v", c.Powers)
		}
	}
}

// The power stays where no meter shows it, where some cores are left out, where it has been
// measured, and where a meter shows less when the cores are busy.
func TestPowerStays(t *testing.T) {
	falling := func() [][2]float64 { return slices.Repeat([][2]float64{{20, 19}}, 2*PowerRepeats) }
	for words, change := range map[string]func(c *calibrator){
		"no meter":          func(c *calibrator) { c.opt.Energy = nil },
		"units left out":    func(c *calibrator) { c.cores = 1 },
		"smaller platform":  func(c *calibrator) { c.cpu.Whole = 4 },
		"measured before":   func(c *calibrator) { c.opt.Resume, c.cpu.PowerSource = true, platform.Measured },
		"less when busy":    func(c *calibrator) { c.opt.Energy = powerMeter(t, falling()) },
		"no meter of cores": func(c *calibrator) { c.opt.Energy = noMeter },
	} {
		p := machine(t, 2)
		c := &calibrator{ctx: t.Context(), platform: p, cpu: &p.Devices[0], cores: 2}
		c.opt.Energy = powerMeter(t, nil) // not asked
		c.cpu.IdleWatts, c.cpu.Busy.UnitWatts, c.cpu.PowerSource = 5, 7, platform.Guess
		change(c)
		if err := c.measurePower(); err != nil || len(c.result.Powers) != 0 || c.cpu.IdleWatts != 5 || c.cpu.Busy.UnitWatts != 7 || c.cpu.PowerMeter != "" {
			t.Errorf("%s: %v, %+v", words, err, c.cpu)
		}
	}
	p, broken := machine(t, 2), errors.New("broken")
	c := &calibrator{ctx: t.Context(), platform: p, cpu: &p.Devices[0], cores: 2}
	c.opt.Energy = func(context.Context, string, func() (int, error)) (meter.CallEnergy, bool, error) {
		return meter.CallEnergy{}, true, broken
	}
	if err := c.measurePower(); !errors.Is(err, broken) {
		t.Errorf("a meter that fails: %v", err)
	}
}

func noMeter(context.Context, string, func() (int, error)) (meter.CallEnergy, bool, error) {
	return meter.CallEnergy{}, false, nil
}
