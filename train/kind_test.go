package train

import (
	"errors"
	"testing"
	"time"

	"dahl/energy/meter"
	"dahl/platform"
)

// Every kind that names a library of meters has it in the table.
func TestKindsHaveMeters(t *testing.T) {
	for _, k := range platform.Kinds() {
		if l, ok := libraries[k.Meter]; ok != (k.Meter != "") || ok && l.Open == nil {
			t.Errorf("kind %s: library %q in the table: %v", k.Name, k.Meter, ok)
		}
	}
}

// hundredWatts counts the energy of 100 W since it was opened.
type hundredWatts struct{ begin time.Time }

func (m *hundredWatts) Name(int) string       { return "stand-in" }
func (m *hundredWatts) Update() time.Duration { return time.Microsecond }
func (m *hundredWatts) Close() error          { return nil }
func (m *hundredWatts) Counters() []meter.Counter {
	return []meter.Counter{{Name: "stand-in", TDPWatts: 500}}
}
func (m *hundredWatts) Read(uj []uint64) error {
	uj[0] = uint64(100 * time.Since(m.begin).Microseconds())
	return nil
}

// A library that is put into the table meters the devices of the kind that names it, and no others.
func TestMetersOfAnotherKind(t *testing.T) {
	own := libraries[platform.NVML]
	t.Cleanup(func() { libraries[platform.NVML] = own })
	closed := 0
	libraries[platform.NVML] = meter.Library{
		Open: func() ([]meter.GPUMeters, error) {
			return []meter.GPUMeters{{GPU: meter.GPU{Name: "A"}, Err: errors.New("denied")}, {GPU: meter.GPU{Name: "B"}, Power: &hundredWatts{time.Now()}}}, nil
		},
		Close: func() error { closed++; return nil },
	}
	device := func(name, kind string, ordinal int) platform.Device {
		return platform.Device{Name: name, Kind: kind, Ordinal: ordinal}
	}
	p := &platform.Platform{Devices: []platform.Device{device("cpu", platform.CPU, 0), device("e", platform.Emulated, 0), device("gpu", platform.CUDA, 1)}}
	m := StartMetersAt(t.TempDir(), p)
	if len(m.States) != 1 || m.States[0].Device != "gpu" || m.States[0].Name != "B" {
		t.Errorf("states %+v", m.States)
	}
	readings, err := m.Stop()
	if err != nil || len(readings) != 1 || readings[0].Of != "gpu" || readings[0].Meter != "stand-in" || closed != 1 {
		t.Errorf("readings %+v, %v, closed %d times", readings, err, closed)
	}
	if m := OpenGPUs(&platform.Platform{Devices: p.Devices[:2]}); m != nil {
		t.Errorf("devices without meters have %+v", m)
	}
}
