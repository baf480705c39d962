//go:build cuda

package main

import (
	"strings"
	"testing"

	"dahl/cmd/dahl/record"
	"dahl/energy/meter"
	"dahl/execute/hardware"
	"dahl/platform"
)

// TestSetClocksOnCUDA trains on a GPU that is locked to 900 MHz while the training runs, as the
// manifest shows, and not after it. It runs with the test build of the management library alone,
// since a real GPU is somebody's.
func TestSetClocksOnCUDA(t *testing.T) {
	shown := func() meter.GPU {
		gpus, err := meter.NVML().Open()
		if err != nil {
			t.Skip(err)
		}
		defer meter.NVML().Close()
		return gpus[0].GPU
	}
	if _, err := hardware.GPUs(); err != nil {
		t.Skip(err)
	}
	if !strings.HasPrefix(shown().Driver, "testnvml") {
		t.Skip("needs the test build of libnvidia-ml.so.1 (energy/testnvml) in the place of the driver's")
	}
	t.Chdir(t.TempDir())
	newClockTree(t)
	p, err := hardware.Detect()
	if err == nil {
		err = hardware.AddGPUs(p)
	}
	if err != nil {
		t.Fatal(err)
	}
	gpu := &p.Devices[1]
	slow := platform.Clock{Name: "slow", Scale: 0.5, Idle: gpu.IdleWatts, Busy: gpu.Busy, FrequencyHz: 900e6}
	gpu.Clocks = []platform.Clock{{Name: "own", Scale: 1, Idle: gpu.IdleWatts, Busy: gpu.Busy}, slow}
	var text strings.Builder
	if err := p.WriteTOML(&text); err != nil {
		t.Fatal(err)
	}
	writeTestFile(t, "gpu.toml", text.String())
	writeTestFile(t, "tiny.toml", tinyModel)
	mustRun(t, strings.Fields("execute --platform gpu.toml --devices gpu0 --clock gpu0=slow --set-clocks --model tiny.toml --data synthetic:1x1x13:37:10 --batch 5 --out e")...)
	m, err := record.ReadManifest("e")
	if err != nil || len(m.GPUs) != 1 || m.GPUs[0].SMClockMHz != 900 || m.MachineClocks == nil || len(m.MachineClocks.Set) != 1 || m.MachineClocks.Set[0] != "gpu0=slow at 0.9 GHz" {
		t.Errorf("GPUs %+v, clocks %+v (%v)", m.GPUs, m.MachineClocks, err)
	}
	if mhz := shown().SMClockMHz; mhz != 1755 {
		t.Errorf("after the run the GPU is at %d MHz, want 1755", mhz)
	}
}
