package inspect

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"dahl/energy/meter"
	"dahl/execute/driver"
	"dahl/execute/hardware"
	"dahl/kernels/offload"
	"dahl/must"
	"dahl/train/setclock"
)

// ofTree is a machine without GPUs and sensors, with a fake tree of RAPL.
func ofTree(root string) *examined {
	return &examined{
		processor: func() (meter.Meter, error) { return meter.OpenRAPL(root) },
		gpus:      func() ([]driver.GPU, error) { return nil, errors.New("no driver") },
		library:   func(string) (string, error) { return "", errors.New("no driver") },
		meters:    meteredBy(func() ([]meter.GPUMeters, error) { return nil, errors.New("no driver") }),
		clocks:    func() (*setclock.System, error) { return nil, errors.New("no clocks") },
	}
}

// meteredBy are libraries of meters of which one opens these.
func meteredBy(open func() ([]meter.GPUMeters, error)) []meter.Library {
	return []meter.Library{{Open: open, Close: func() error { return nil }}}
}

// found is what doctor says of one thing.
func (h *examined) found(t *testing.T, of string) Finding {
	t.Helper()
	p := must.Get(hardware.Detect())(t)
	all := h.examine(p, "").Findings
	i := slices.IndexFunc(all, func(f Finding) bool { return f.Of == of })
	if i < 0 {
		t.Fatalf("nothing is said of %s: %+v", of, all)
	}
	return all[i]
}

// TestDoctorSaysWhyNot: joules of processors that are counted; that root alone may read, which has to be
// injected, since tests may run as root; that a virtual machine does not count; and that nothing counts.
func TestDoctorSaysWhyNot(t *testing.T) {
	const of = "joules of processors"
	root := t.TempDir()
	bare := ofTree(root)
	if f := bare.found(t, of); f.Has || !strings.Contains(f.Text, root) || !strings.Contains(f.Text, "sudo modprobe intel_rapl_msr") {
		t.Errorf("without a counter: %+v", f)
	}
	virtual := ofTree(root)
	virtual.virtual = true
	if f := virtual.found(t, of); f.Has || !strings.HasPrefix(f.Text, "this is a virtual machine, and only its host counts joules") {
		t.Errorf("on a virtual machine: %+v", f)
	}
	zone := filepath.Join(root, "intel-rapl:0")
	must.Do(t, os.MkdirAll(zone, 0o777))
	for file, text := range map[string]string{"name": "package-0", "energy_uj": "17", "max_energy_range_uj": "262143328850"} {
		must.Do(t, os.WriteFile(filepath.Join(zone, file), []byte(text+"\n"), 0o666))
	}
	if f := virtual.found(t, of); f.Has || !strings.HasPrefix(f.Text, "RAPL package-0 of processors stuck: it shows 1.7e-05 J and has not moved in 1") {
		t.Errorf("with a counter that does not move: %+v", f)
	}
	const allow = "sudo chmod a+r /sys/class/powercap/intel-rapl:*/energy_uj"
	bare.processor = func() (meter.Meter, error) {
		return nil, &meter.DeniedError{Err: &fs.PathError{Op: "open", Path: filepath.Join(root, "intel-rapl:0", "energy_uj"), Err: fs.ErrPermission}, What: "the counters are", Allow: allow}
	}
	if f := bare.found(t, of); f.Has || f.Command != allow || !strings.HasSuffix(f.Text, "for root only; run as root, or allow it until the next start with: "+allow) {
		t.Errorf("without permission: %+v", f)
	}
}

// packages is a meter of some counters, all of which show 20 W at once.
type packages struct {
	count int
	begin time.Time
}

func (m *packages) Name(int) string       { return "RAPL package-0" }
func (m *packages) Update() time.Duration { return time.Millisecond }
func (m *packages) Close() error          { return nil }
func (m *packages) Counters() []meter.Counter {
	return slices.Repeat([]meter.Counter{{Name: "RAPL package-0", RangeUj: 1e12, TDPWatts: 500}}, m.count)
}
func (m *packages) Read(uj []uint64) error {
	now := uint64(20 * time.Since(m.begin).Microseconds())
	for i := range uj {
		uj[i] = now
	}
	return nil
}

// TestDoctorCounts: one package, and the same one shown twice.
func TestDoctorCounts(t *testing.T) {
	h, shown := ofTree(t.TempDir()), &packages{1, time.Now()}
	h.processor = func() (meter.Meter, error) { return shown, nil }
	want := Finding{Of: "joules of processors", Has: true, Text: "RAPL counts them; calibrate measures their watts"}
	if f := h.found(t, want.Of); f != want {
		t.Errorf("%+v, want %+v", f, want)
	}
	shown.count = 2
	want.Text = "RAPL counts them (RAPL package-0 of processors merged: it shows the same as RAPL package-0, so that the two are one and count once); calibrate measures their watts"
	if f := h.found(t, want.Of); f != want {
		t.Errorf("%+v, want %+v", f, want)
	}
}

// constantPower is a meter of 70 W.
type constantPower struct{ begin time.Time }

func (m *constantPower) Name(int) string       { return "power" }
func (m *constantPower) Update() time.Duration { return time.Millisecond }
func (m *constantPower) Close() error          { return nil }
func (m *constantPower) Counters() []meter.Counter {
	return []meter.Counter{{Name: "power", TDPWatts: 700, Integral: true}}
}
func (m *constantPower) Read(uj []uint64) error {
	uj[0] = uint64(70 * time.Since(m.begin).Microseconds())
	return nil
}

// TestDoctorNamesDeniedGPU: of two GPUs one may not be opened.
func TestDoctorNamesDeniedGPU(t *testing.T) {
	h := ofTree(t.TempDir())
	h.meters = meteredBy(func() ([]meter.GPUMeters, error) {
		return []meter.GPUMeters{{Err: fmt.Errorf("GPU 0: open it: %w", fs.ErrPermission)},
			{GPU: meter.GPU{Name: "H100", Driver: "570", PowerLimitWatts: 700}, Power: &constantPower{time.Now()}}}, nil
	})
	for _, want := range []Finding{
		{Of: "joules of GPU 0", Text: "GPU 0 denied: GPU 0: open it: permission denied"},
		{Of: "joules of GPU 1", Has: true, Text: "H100 by power, driver 570, limit 700 W"},
	} {
		if f := h.found(t, want.Of); f != want {
			t.Errorf("%+v, want %+v", f, want)
		}
	}
}

// TestDoctorNamesGPUs: a GPU with two of three libraries, and a sensor of the processors.
func TestDoctorNamesGPUs(t *testing.T) {
	h := ofTree(t.TempDir())
	h.gpus = func() ([]driver.GPU, error) {
		return []driver.GPU{{Name: "H100", MemoryBytes: 80e9, Capability: 90}}, nil
	}
	h.library = func(name string) (string, error) {
		if name == offload.CuDNN {
			return "", errors.New("the library was not found: libcudnn.so.9, libcudnn.so.8")
		}
		return "lib" + name + ".so.12", nil
	}
	h.celsius = func() (float64, error) { return 61.5, nil }
	for of, want := range map[string]Finding{
		"GPU 0":          {Has: true, Text: "H100 with 80 GB, compute capability 9.0"},
		"library cublas": {Has: true, Text: "libcublas.so.12; calibrate measures its kernels"},
		"library cudnn":  {Text: "the library was not found: libcudnn.so.9, libcudnn.so.8"},
		"temperature":    {Has: true, Text: "62 degrees Celsius now"},
		"joules of GPUs": {Text: "no driver"},
	} {
		want.Of = of
		if f := h.found(t, of); f != want {
			t.Errorf("%+v, want %+v", f, want)
		}
	}
}
