package execute

import (
	"context"
	"runtime"
	"testing"

	"dahl/execute/driver"
)

// countingDriver counts the calls that may allocate.
type countingDriver struct {
	driver.Driver
	allocations int
}

func (d *countingDriver) Reserve(bytes int64) (driver.Address, error) {
	d.allocations++
	return d.Driver.Reserve(bytes)
}

func (d *countingDriver) Pin(host []byte) error {
	d.allocations++
	return d.Driver.Pin(host)
}

func (d *countingDriver) NewStream(copies bool) (driver.StreamID, error) {
	d.allocations++
	return d.Driver.NewStream(copies)
}

func (d *countingDriver) NewEvent() (driver.EventID, error) {
	d.allocations++
	return d.Driver.NewEvent()
}

func (d *countingDriver) Bind(c *driver.Call) (driver.LaunchID, error) {
	d.allocations++
	return d.Driver.Bind(c)
}

// TestLongRunOnDevices: 2,000 steps (700 in short tests) over a core and two emulated devices, in runs of 100
// recorded steps, reserve, pin and bind nothing, leave no goroutine behind, and the heap
// after the last run is as large as after the fourth but for some kilobytes of the runtime's own.
func TestLongRunOnDevices(t *testing.T) {
	const piece, warm, allowance = 100, 4, 64 << 10
	steps := 2000
	if testing.Short() {
		steps = 700
	}
	prog := testProgram(t)
	r := newRunner(t, prog, how{Platform: node(t, 1, 2), Plans: spreadPlans(prog, 3, bySamples(3)), Options: Options{Hooks: testHooks(nil)}})
	var counted []*countingDriver
	for _, d := range r.devices[1:] {
		c := &countingDriver{Driver: d.Driver}
		d.Driver, counted = c, append(counted, c)
	}
	var heap uint64
	goroutines := 0
	for run := range steps / piece {
		if _, err := r.Run(context.Background(), 0, piece, true); err != nil {
			t.Fatal(err)
		}
		if run != warm && run != steps/piece-1 {
			continue
		}
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		if run == warm {
			heap, goroutines = m.HeapAlloc, runtime.NumGoroutine()
			continue
		}
		if m.HeapAlloc > heap+allowance {
			t.Errorf("the heap grew from %d to %d bytes", heap, m.HeapAlloc)
		}
		if n := runtime.NumGoroutine(); n > goroutines {
			t.Errorf("%d goroutines, before %d", n, goroutines)
		}
	}
	for i, c := range counted {
		if c.allocations > 0 {
			t.Errorf("device %d: %d calls that allocate", i, c.allocations)
		}
	}
}
