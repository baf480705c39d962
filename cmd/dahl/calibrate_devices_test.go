package main

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"strings"
	"testing"

	"dahl/cmd/cli"
	"dahl/cmd/dahl/words"
	"dahl/execute/calibrate"
	"dahl/must"
	"dahl/platform"
)

// TestCalibrateEmulatedDevice measures a core and an emulated GPU, and goes on with the file
// once more. All bounds are lower ones: on a loaded computer everything takes longer.
func TestCalibrateEmulatedDevice(t *testing.T) {
	t.Chdir(t.TempDir())
	writeTestFile(t, "small.toml", smallNetwork)
	args := []string{"calibrate", "--platform", "emulated", "--devices", "cpu:1,gpu", "--out", "c.toml", "--model", "small.toml", "--batch", "4", "--variant", "go", "--time", "100ms"}
	out := mustRun(t, args...)
	must.Contain(t, out, "gpu: emulated vram, 64 MB", "first use", "launches", "4 B to 16.8 MB", "kept       speed", "no meter; powers: those of the platform stay (guess)")
	p := must.Get(platform.Load("c.toml"))(t)
	was := must.Get(cli.LoadPlatform("emulated"))(t)
	gpu := p.Devices[1]
	if !reflect.DeepEqual(p.Links[0], was.Links[0]) || p.Memories[1] != was.Memories[1] || !maps.Equal(gpu.FlopsPerSec, was.Devices[1].FlopsPerSec) || p.Devices[0].Count != 2 {
		t.Errorf("calibrating changed what the emulated GPU is, or the number of cores: %+v", gpu)
	}
	if gpu.Dispatch <= 0 || gpu.FirstUse.Context <= 0 || gpu.FirstUse.MemoryBytesPerSec <= 0 {
		t.Errorf("GPU %+v", gpu)
	}
	inSteps := 0
	for _, m := range p.Models {
		if m.Active != 1 {
			t.Errorf("one core was to be measured: %+v", m)
		}
		if m.Device != "gpu" {
			continue
		}
		// 20 GF/s are 20 F per nanosecond.
		if m.Count == 0 || m.Flops/m.MedianNs > 20*(1+1e-9) {
			t.Errorf("faster than the device: %+v", m)
		}
		if m.StepNs > 0 {
			inSteps++
		}
	}
	if inSteps == 0 {
		t.Error("no call was measured in steps on the GPU")
	}
	again := mustRun(t, args...)
	if !strings.Contains(again, fmt.Sprintf("%d models: 0 measured", len(p.Models))) || strings.Contains(again, "launches") {
		t.Errorf("gone on with:\n%s", again)
	}
	wantRefused(t, "calibrate --platform laptop --out c.toml", "8 cpu")
}

// TestPrintPowers: what was measured is shown with its meter and spread, and where a power stays,
// one line says why.
func TestPrintPowers(t *testing.T) {
	device := func(source platform.Source) platform.Device {
		return platform.Device{Name: "cpu", Kind: "cpu", Count: 4, PowerSource: source}
	}
	denied := errors.New("read RAPL: permission denied:\nrun as root")
	for _, c := range []struct {
		what    string
		device  platform.Device
		powers  []calibrate.Power
		noMeter error
		want    string
	}{
		{"measured", device(platform.Measured), []calibrate.Power{{Device: "cpu", IdleWatts: 21, OneWatts: 43, AllWatts: 72.25, Spread: 0.021, Meter: "RAPL (1 package)"}}, nil,
			"cpu: idle 21 W, a product on one core 43 W, on all 72.2 W, by RAPL (1 package); 3 repeats within 2.1 %\n"},
		{"disturbed", device(platform.Measured), []calibrate.Power{{Device: "cpu", IdleWatts: 1, OneWatts: 2, AllWatts: 3, Meter: "M", Disturbed: true}}, nil,
			"cpu: idle 1 W, a product on one core 2 W, on all 3 W, by M; 3 repeats within 0.0 %; other processes ran meanwhile\n"},
		{"may not be read", device(platform.Guess), nil, denied, "cpu: its power stays (guess): read RAPL: permission denied:; run as root\n"},
		{"some cores", device(""), nil, nil, "cpu: its power stays (not known): the meter counts all cores, so that none may be left out, and must show more when they are busy\n"},
		{"measured before", device(platform.Measured), nil, nil, ""},
	} {
		measured := &calibrate.Result{Platform: &platform.Platform{Devices: []platform.Device{c.device, {Name: "gpu", Kind: "cuda"}}}, Powers: c.powers}
		var out strings.Builder
		if words.PrintPowers(&out, measured, map[string]int{"cpu": 4}, c.noMeter); out.String() != c.want {
			t.Errorf("%s: %q, want %q", c.what, out.String(), c.want)
		}
	}
}
