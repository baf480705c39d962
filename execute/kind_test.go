package execute

import (
	"cmp"
	"slices"
	"testing"

	"dahl/dag"
	"dahl/execute/driver"
	"dahl/execute/emulated"
	"dahl/execute/hardware"
	"dahl/kernels/calls"
	"dahl/must"
	"dahl/platform"
)

// Every kind of devices but processors has a driver in the table.
func TestKindsHaveDrivers(t *testing.T) {
	for _, k := range platform.Kinds() {
		if b, ok := hardware.Backends[k.Driver]; ok == k.Processor || ok && b.On == nil {
			t.Errorf("kind %s: driver %q in the table: %v", k.Name, k.Driver, ok)
		}
	}
}

// capturing is a driver that captures, as ours do.
type capturing interface {
	driver.Driver
	driver.Capturer
}

// changed is a backend with other drivers.
func changed(of driver.Backend, change func(dev *platform.Device, d capturing) driver.Driver) driver.Backend {
	on := of.On
	of.On = func(p *platform.Platform, cores []int) driver.Opener {
		open := on(p, cores)
		return func(dev *platform.Device, notify func()) (driver.Driver, error) {
			d, err := open(dev, notify)
			return change(dev, d.(capturing)), err
		}
	}
	return of
}

// keepBackend restores the backend of a driver after the test.
func keepBackend(t testing.TB, name string) {
	own := hardware.Backends[name]
	t.Cleanup(func() { hardware.Backends[name] = own })
}

// changeEmulated changes emulated devices until the test ends.
func changeEmulated(t testing.TB, change func(dev *platform.Device, d capturing) driver.Driver) {
	keepBackend(t, platform.EmulatedDriver)
	hardware.Backends[platform.EmulatedDriver] = changed(emulated.Backend, change)
}

// standIn has memory, streams and events of an emulated device. It takes variants in CUDA code with
// launches, and does what they say in plain Go.
type standIn struct {
	driver.Driver
	launches *[]string
}

func (s standIn) Bind(c *driver.Call) (driver.LaunchID, error) {
	if c.Variant.Code == calls.CUDACode {
		for _, l := range c.Variant.Launches(c.Addressed()) {
			*s.launches = append(*s.launches, l.Symbol)
		}
	}
	own := *c
	own.Variant, _ = c.Kernel.Variant("go")
	own.Variant = cmp.Or(own.Variant, c.Kernel.Default())
	return s.Driver.Bind(&own)
}

// A driver that is put into the table opens the devices of the kind that names it, is given the
// launches of the kind's code, and trains. The weights are those of plain Go on a core.
// Nothing else in the package says what the kind is.
func TestDriverOfAnotherKind(t *testing.T) {
	keepBackend(t, platform.CUDADriver)
	var ordinals []int
	var launches []string
	other := changed(emulated.Backend, func(dev *platform.Device, d capturing) driver.Driver {
		ordinals = append(ordinals, dev.Ordinal)
		return standIn{d, &launches}
	})
	other.GPUs = func() ([]driver.GPU, error) { return []driver.GPU{{Name: "A"}, {Name: "B"}}, nil }
	other.Library = func(name string) (string, error) { return "lib" + name, nil }
	hardware.Backends[platform.CUDADriver] = other
	if gpus, err := hardware.GPUs(); err != nil || len(gpus) != 2 || gpus[1] != (driver.GPU{Kind: platform.CUDA, Name: "B"}) {
		t.Errorf("GPUs %+v, %v", gpus, err)
	}
	if file, err := hardware.LibraryFile("x"); file != "libx" || err != nil {
		t.Errorf("library %q, %v", file, err)
	}

	prog, p := testProgram(t), node(t, 1, 2)
	for i := range p.Devices[1:] {
		p.Devices[1+i].Kind = platform.CUDA
	}
	must.Do(t, p.Complete())
	plans := spreadPlans(prog, 3, bySamples(3))
	got := trained(t, prog, how{Platform: p, Plans: plans, Variant: "go"}, 5)
	want := trained(t, prog, how{Platform: machine(t, 1), Plans: spreadPlans(prog, 1, func(*dag.Task) int { return 0 }), Variant: "go"}, 5)
	if got != want {
		t.Error("the weights are not those of plain Go on a core")
	}
	if !slices.Equal(ordinals, []int{0, 1}) || !slices.Contains(launches, "relu_f32") {
		t.Errorf("devices %v were opened, and %v launched", ordinals, launches)
	}
}
