package train

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"dahl/energy/meter"
	"dahl/must"
	"dahl/platform"
)

// powercap is a tree of counters of two packages that wrap after 9 J. In the virtual time of a
// bubble they draw 10 and 5 W, and 30 and 1 W more while the machine is busy.
type powercap struct {
	root string
	busy atomic.Bool
	stop chan struct{}
}

const rangeUj = 9_000_000

func (c *powercap) write(t *testing.T, zone int, name string, uj int64) {
	dir := filepath.Join(c.root, fmt.Sprint("intel-rapl:", zone))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Error(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name), fmt.Appendln(nil, uj), 0o644); err != nil {
		t.Error(err)
	}
}

// run counts in the middle of each two milliseconds, when nobody reads.
func (c *powercap) run(t *testing.T) {
	counters := []int64{8_999_000, 123}
	for z := range counters {
		c.write(t, z, "energy_uj", counters[z])
		c.write(t, z, "max_energy_range_uj", rangeUj)
		name := filepath.Join(c.root, fmt.Sprint("intel-rapl:", z), "name")
		must.Do(t, os.WriteFile(name, fmt.Appendf(nil, "package-%d\n", z), 0o644))
	}
	go func() {
		time.Sleep(time.Millisecond / 2)
		for {
			select {
			case <-c.stop:
				return
			case <-time.After(2 * time.Millisecond):
			}
			for z, watts := range [][2]int64{{10, 40}, {5, 6}} {
				milliwatts := watts[0] * 1000
				if c.busy.Load() {
					milliwatts = watts[1] * 1000
				}
				counters[z] = (counters[z] + 2*milliwatts) % rangeUj // 2 ms of it, in microjoules
				c.write(t, z, "energy_uj", counters[z])
			}
		}
	}()
}

// TestMeasureProcessors: idle the packages draw 15 W, and 46 W while calls run, though the counters
// wrap. With 2 s for all three repeats a window takes 0.67 s, in which the ticks of 2 ms of these
// counters at both ends are 4/667 of the power. Devices without a meter say so.
func TestMeasureProcessors(t *testing.T) {
	p := &platform.Platform{Devices: []platform.Device{{Name: "cpu", Kind: "cpu"}, {Name: "gpu0", Kind: "cuda"}}}
	root := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		c := &powercap{root: root, stop: make(chan struct{})}
		c.run(t)
		defer close(c.stop)
		rapl := must.Get(meter.OpenRAPL(c.root))(t)
		measure := MeasureEnergy(p, nil, rapl, 2*time.Second)
		e, ok, err := measure(t.Context(), "cpu", func() (int, error) {
			c.busy.Store(true)
			time.Sleep(7 * time.Millisecond)
			c.busy.Store(false)
			return 1, nil
		})
		if err != nil || !ok {
			t.Fatalf("%v, %v", ok, err)
		}
		if math.Abs(e.Watts-46) > 46*4.0/667 || math.Abs(e.IdleWatts-15) > 15*4.0/333 || e.Meter != "RAPL (2 packages)" || math.Abs(e.Seconds/float64(e.Calls)-0.007) > 1e-9 {
			t.Errorf("got %+v, want 46 W, 15 W idle and calls of 7 ms", e)
		}
		for _, device := range []string{"gpu0", "none"} {
			if _, ok, err := measure(t.Context(), device, nil); ok || err != nil {
				t.Errorf("%s has no meter: %v, %v", device, ok, err)
			}
		}
	})
	if MeasureEnergy(p, nil, nil, time.Second) != nil || MeasureEnergy(p, GPUMeters{}, nil, 0) != nil {
		t.Error("without meters or time there is something to measure with")
	}
	noProcessors := MeasureEnergy(p, GPUMeters{}, nil, time.Second)
	if e, ok, err := noProcessors(t.Context(), "cpu", nil); ok || err != nil || e != (meter.CallEnergy{}) {
		t.Errorf("processors without a meter: %+v, %v, %v", e, ok, err)
	}
}
