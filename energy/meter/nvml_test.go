//go:build cuda

package meter

import (
	"math"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// scriptedGPUs opens the boards of testnvml with a script.
func scriptedGPUs(t *testing.T, script string) ([]GPUMeters, error) {
	t.Helper()
	t.Setenv("TESTNVML_NOW", "0")
	t.Setenv("TESTNVML", script)
	if ret := nvml.Init(); ret == nvml.ERROR_LIBRARY_NOT_FOUND {
		t.Skip("needs the test build of libnvidia-ml.so.1 (energy/testnvml)")
	} else if ret != nvml.SUCCESS {
		t.Fatal(nvml.ErrorString(ret))
	}
	t.Cleanup(func() {
		if err := failed("close NVML", nvml.Shutdown()); err != nil {
			t.Error(err)
		}
	})
	if driver, _ := nvml.SystemGetDriverVersion(); !strings.HasPrefix(driver, "testnvml") {
		t.Skip("needs the test build of libnvidia-ml.so.1 (energy/testnvml) in the place of the driver's")
	}
	return openGPUs()
}

// scriptTime is the time that testnvml is told, one reader at a time.
type scriptTime struct {
	sync.Mutex
	zero time.Time
}

// timed is a meter whose reads tell testnvml the time.
type timed struct {
	Meter
	*scriptTime
}

func (m timed) Read(uj []uint64) error {
	m.Lock()
	defer m.Unlock()
	os.Setenv("TESTNVML_NOW", strconv.FormatInt(time.Since(m.zero).Microseconds(), 10))
	return m.Meter.Read(uj)
}

// recordGPUs records both meters of all boards from a time to a time of the script, reading every
// 20 ms, and returns the readings.
func recordGPUs(t *testing.T, gpus []GPUMeters, begin, end time.Duration) (readings []Reading) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		now := &scriptTime{zero: time.Now().Add(-begin)}
		var metered []Metered
		for i := range gpus {
			m := gpus[i].Metered("gpu" + strconv.Itoa(i))
			if m.Meter = (timed{m.Meter, now}); m.Second != nil {
				m.Second = timed{m.Second, now}
			}
			metered = append(metered, m)
		}
		r := Record(metered)
		time.Sleep(end - begin)
		var err error
		if readings, err = r.Stop(); err != nil {
			t.Fatal(err)
		}
	})
	return readings
}

// What the script draws by calculus, what each meter shows of it, and what they state:
// the counter is exact between multiples of its 100 ms, and off by at most 100 ms of
// power otherwise; the trapezoids over exact watts are exact for a linear power, up to
// the milliwatts that the library rounds to.
func TestScriptedPower(t *testing.T) {
	for _, c := range []struct {
		name, script     string
		begin, end       time.Duration
		drawn            float64
		counter, percent float64 // of the counter, and how far it lies above the power
	}{
		// 137 W · 3 s
		{"constant", "watts=137", 0, 3 * time.Second, 411, 411, 0},
		// 137 W · 3.08 s; the counter shows 3.1 s
		{"between updates", "watts=137", 60 * time.Millisecond, 3140 * time.Millisecond, 421.96, 424.7, 100 * (3.1/3.08 - 1)},
		// 11·3 + 70·3²/2
		{"ramp", "watts=11,ramp=70", 0, 3 * time.Second, 348, 348, 0},
		// a counter that shows 12 % too much
		{"counter off", "watts=100,counter=1.12", 0, 5 * time.Second, 500, 560, 12},
		{"counter low", "watts=100,counter=0.93", 0, 5 * time.Second, 500, 465, -7},
		// the 1 s average in place of the instant power
		{"average power", "watts=100,instant=0", 0, 2 * time.Second, 200, 200, 0},
	} {
		gpus, err := scriptedGPUs(t, c.script)
		if err != nil {
			t.Fatal(err)
		}
		r := recordGPUs(t, gpus, c.begin, c.end)[0]
		if math.Abs(r.Joules-c.counter) > 2e-3 || math.Abs(c.counter-c.drawn) > r.ErrorJoules && c.percent == 0 {
			t.Errorf("%s: the counter says %g J ± %g, want %g of %g drawn", c.name, r.Joules, r.ErrorJoules, c.counter, c.drawn)
		}
		if r.Second == nil || math.Abs(r.Second.Joules-c.drawn) > 5e-3 || math.Abs(r.Second.DisagreementPercent-c.percent) > 1e-2 {
			t.Errorf("%s: second method %+v, want %g J and %g %% between them", c.name, r.Second, c.drawn, c.percent)
		}
	}
}

// Boards that lack a sensor; the second draws 10 W more than the first.
func TestSensorsThatAreNotThere(t *testing.T) {
	gpus, err := scriptedGPUs(t, "devices=2,watts=30,energy=0")
	if err != nil {
		t.Fatal(err)
	}
	readings := recordGPUs(t, gpus, 0, 2*time.Second)
	for i, want := range []float64{60, 80} {
		if r := readings[i]; r.Meter != "NVML instant power, integrated" || math.Abs(r.Joules-want) > 1e-3 || r.Second != nil {
			t.Errorf("without a counter GPU %d has %+v, want %g J", i, r, want)
		}
	}
	if gpus, err = scriptedGPUs(t, "instant=0"); err != nil || gpus[0].Power.Update() != averageWindow || !strings.Contains(gpus[0].Power.Name(1), "average") {
		t.Errorf("without the instant power: %+v, %v", gpus, err)
	}
	if gpus, err = scriptedGPUs(t, "power=0"); err != nil || gpus[0].Power != nil || gpus[0].Metered("gpu0").Second != nil {
		t.Errorf("without power: %+v, %v", gpus, err)
	}
	if gpus, err = scriptedGPUs(t, "power=0,energy=0"); err != nil || gpus[0].Err == nil || !strings.Contains(gpus[0].Err.Error(), "neither energy nor power") {
		t.Errorf("without any sensor: %+v, %v", gpus, err)
	}
	if _, err = scriptedGPUs(t, "devices=0"); err == nil || !strings.Contains(err.Error(), "no GPU") {
		t.Errorf("without a board: %v", err)
	}
}

// TestDeniedBoard: the first of two boards may not be opened. The second, which draws 40 W, has its 80 J in 2 s.
func TestDeniedBoard(t *testing.T) {
	gpus, err := scriptedGPUs(t, "devices=2,watts=30,denied=0")
	if err != nil || gpus[0].Err == nil {
		t.Fatalf("%+v, %v", gpus, err)
	}
	denied := gpus[0].Metered("GPU 0")
	if s := cannotOpen(&denied); s.String() != "GPU 0 denied: GPU 0: open it: permission denied" {
		t.Errorf("it says %q", s.String())
	}
	if r := recordGPUs(t, gpus[1:], 0, 2*time.Second); len(r) != 1 || math.Abs(r[0].Joules-80) > 2e-3 || r[0].Second == nil {
		t.Errorf("the other: %+v", r)
	}
}

func TestDescriptionOfGPUs(t *testing.T) {
	gpus, err := scriptedGPUs(t, "devices=2,watts=50")
	if err != nil {
		t.Fatal(err)
	}
	want := GPU{Name: "Test GPU", UUID: "GPU-00000000-0000-0000-0000-000000000001", Driver: "testnvml 1", PCIBus: "0000:02:00.0",
		SMClockMHz: 1755, MaxSMClockMHz: 1980, MemoryClockMHz: 2619, PowerLimitWatts: 700, PowerWatts: 60, TemperatureCelsius: 42}
	if gpus[1].GPU != want {
		t.Errorf("got  %+v\nwant %+v", gpus[1].GPU, want)
	}
	if celsius, err := gpus[1].Celsius(); celsius != 42 || err != nil {
		t.Errorf("%g degrees now, %v; want 42", celsius, err)
	}
}

// TestCloseWithoutOpen: what was never opened, as where there is no library, is closed at
// once, and does not end the process.
func TestCloseWithoutOpen(t *testing.T) {
	for range 2 {
		if err := closeNVML(); err != nil {
			t.Error(err)
		}
	}
	if opened.Load() != 0 {
		t.Errorf("%d open", opened.Load())
	}
}

// The clock of the second board is locked and unlocked, and that of the first stays. Without the
// rights the error says who has them.
func TestLockedClocks(t *testing.T) {
	gpus, err := scriptedGPUs(t, "devices=2")
	if err != nil {
		t.Fatal(err)
	}
	uuid := gpus[1].GPU.UUID
	shows := func(want int) {
		t.Helper()
		for i, mhz := range []int{1755, want} {
			d, _ := nvml.DeviceGetHandleByIndex(i)
			if g, err := describe(d); err != nil || g.SMClockMHz != mhz {
				t.Errorf("GPU %d runs at %d MHz, want %d (%v)", i, g.SMClockMHz, mhz, err)
			}
		}
	}
	if least, most, err := nvmlClockRange(uuid); least != 345 || most != 1980 || err != nil {
		t.Errorf("from %d to %d MHz (%v), want 345 to 1980", least, most, err)
	}
	if err := lockNVMLClock(uuid, 900); err != nil {
		t.Error(err)
	}
	shows(900)
	if err := unlockNVMLClock(uuid); err != nil {
		t.Error(err)
	}
	shows(1755)
	if err := lockNVMLClock("GPU-1", 900); err == nil || err.Error() != "find GPU GPU-1: Not Found" {
		t.Errorf("a GPU that is not there: %v", err)
	}
	t.Setenv("TESTNVML", "devices=2,root=0")
	for _, err := range []error{lockNVMLClock(uuid, 900), unlockNVMLClock(uuid)} {
		if err == nil || !strings.Contains(err.Error(), uuid) || !strings.HasSuffix(err.Error(), "lock its clock: only root may; run as root") {
			t.Errorf("without the rights: %v", err)
		}
	}
	shows(1755)
}
