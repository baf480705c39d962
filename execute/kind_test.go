package execute

import (
	"cmp"
	"slices"
	"testing"

	"dahl/dag"
	"dahl/kernels"
	"dahl/kernels/calls"
	"dahl/must"
	"dahl/platform"
)

// Every kind of devices but processors has a driver in the table.
func TestKindsHaveDrivers(t *testing.T) {
	for _, k := range platform.Kinds() {
		if b, ok := backends[k.Driver]; ok == k.Processor || ok && b.open == nil {
			t.Errorf("kind %s: driver %q in the table: %v", k.Name, k.Driver, ok)
		}
	}
}

// standIn has memory, streams and events of an emulated device. It takes variants in CUDA code with
// launches, and does what they say in plain Go.
type standIn struct {
	driver
	launches *[]string
}

func (s standIn) bind(c *deviceCall) (launchID, error) {
	call := calls.DeviceCall{Type: c.spec.Type, Params: c.params, Work: uint64(c.work)}
	for _, o := range c.args {
		call.Args = append(call.Args, calls.BindDevice(uint64(o.base), o.buffer, o.box, o.mode))
	}
	if c.variant.Code == calls.CUDACode {
		for _, l := range c.variant.Launches(&call) {
			*s.launches = append(*s.launches, l.Symbol)
		}
	}
	k, _ := kernels.KernelByName(c.spec.Op)
	own := *c
	own.variant, _ = k.Variant("go")
	own.variant = cmp.Or(own.variant, k.Default())
	return s.driver.bind(&own)
}

// A driver that is put into the table opens the devices of the kind that names it, is given the
// launches of the kind's code, and trains. The weights are those of plain Go on a core.
// Nothing else in the package says what the kind is.
func TestDriverOfAnotherKind(t *testing.T) {
	own := backends[platform.CUDADriver]
	t.Cleanup(func() { backends[platform.CUDADriver] = own })
	var ordinals []int
	var launches []string
	backends[platform.CUDADriver] = backend{
		open: func(o *opener, dev *platform.Device, notify func()) (driver, error) {
			d, err := openEmulated(o, dev, notify)
			ordinals = append(ordinals, dev.Ordinal)
			return standIn{d, &launches}, err
		},
		gpus:    func() ([]GPU, error) { return []GPU{{Name: "A"}, {Name: "B"}}, nil },
		library: func(name string) (string, error) { return "lib" + name, nil },
	}
	if gpus, err := GPUs(); err != nil || len(gpus) != 2 || gpus[1] != (GPU{Kind: platform.CUDA, Name: "B"}) {
		t.Errorf("GPUs %+v, %v", gpus, err)
	}
	if file, err := LibraryFile("x"); file != "libx" || err != nil {
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
