//go:build cuda

package execute

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"dahl/dag"
	"dahl/execute/cuda"
	"dahl/execute/driver"
	"dahl/execute/hardware"
	"dahl/kernels"
	"dahl/kernels/calls"
	"dahl/kernels/offload"
	"dahl/platform"
	"dahl/schedule"
	"dahl/schedule/layout"
)

// libraryNode is cudaNode with memories that hold a library's workspace besides. It skips the
// test on a machine without the library; the driver library of the tests comes with all.
func libraryNode(t *testing.T, library string, cores, gpus int) *platform.Platform {
	t.Helper()
	p := cudaNode(t, cores, gpus)
	if _, err := hardware.LibraryFile(library); errors.Is(err, cuda.ErrNoLibrary) {
		t.Skip(err)
	} else if err != nil {
		t.Fatal(err)
	}
	for i := range p.Memories {
		if m := &p.Memories[i]; m.CapacityBytes > 0 {
			m.CapacityBytes += 128 << 20
		}
	}
	return p
}

// TestCUDALibrary trains with each library on each of two devices and the cores: the weights are
// those of one core but for rounding, and the same bits in two runs. Its tasks have the
// workspace that the library asks for.
func TestCUDALibrary(t *testing.T) {
	const steps = 7
	prog := testProgram(t)
	one := how{Platform: machine(t, 1), Plans: spreadPlans(prog, 1, func(*dag.Task) int { return 0 }), Variant: "go", Options: Options{Hooks: testHooks(nil)}}
	want := trainedWeights(t, prog, one, steps, true)
	for _, library := range []string{offload.CuBLAS, offload.CuBLASLt} {
		t.Run(library, func(t *testing.T) {
			p := libraryNode(t, library, 1, 2)
			opt := how{Platform: p, Plans: spreadPlans(prog, 3, bySamples(3)), Variant: library, Options: Options{Hooks: testHooks(nil)}}
			got := trainedWeights(t, prog, opt, steps, true)
			opt.Poison = true // so that nothing is left of the calls that were made when they were bound
			again := trainedWeights(t, prog, opt, steps, false)
			for name := range want {
				compareWeights(t, name, got[name], again[name], want[name])
			}
		})
	}
}

// binding notes the variants of the calls that are bound.
type binding struct {
	capturing
	bound *[]*calls.Variant
}

func (b binding) Bind(c *driver.Call) (driver.LaunchID, error) {
	*b.bound = append(*b.bound, c.Variant)
	return b.capturing.Bind(c)
}

// TestCUDALibraryIsCalled: with the variant asked for, the device's calls begin with those of
// the library; without, none does.
func TestCUDALibraryIsCalled(t *testing.T) {
	p := libraryNode(t, offload.CuBLASLt, 1, 1)
	prog := testProgram(t)
	for _, variant := range []string{"cublas", "cublaslt", ""} {
		var bound []*calls.Variant
		keepBackend(t, platform.CUDADriver)
		hardware.Backends[platform.CUDADriver] = changed(cuda.Backend, func(_ *platform.Device, d capturing) driver.Driver { return binding{d, &bound} })
		r := newRunner(t, prog, how{Platform: p, Plans: spreadPlans(prog, 2, bySamples(2)), Variant: variant, Options: Options{Hooks: testHooks(nil)}})
		if got := slices.ContainsFunc(bound, func(v *calls.Variant) bool { return v.Library != "" }); got != (variant != "") {
			t.Errorf("variant %q: calls of a library: %v", variant, got)
		}
		if _, err := r.Run(context.Background(), 0, 1, true); err != nil {
			t.Fatal(err)
		}
	}
}

// TestCUDALibraryRefuses: a call that a library does not do, of operands that are not aligned to
// their elements, is an error of one line that says what it was and can be told from others.
func TestCUDALibraryRefuses(t *testing.T) {
	d := openDriver(t, libraryNode(t, offload.CuBLASLt, 1, 1))
	if !strings.HasPrefix(d.Properties().Name, "Test device") {
		t.Skip("what a GPU's library refuses is not known")
	}
	base := d.memory(1 << 20)
	k, _ := kernels.KernelByName("dense.dx")
	v, _ := k.Variant("cublaslt")
	call := driver.Call{Kernel: k, Spec: &calls.Spec{Op: "dense.dx", Type: dag.Float32}, Variant: v}
	for _, shape := range [][]int{{3, 5}, {3, 7}, {7, 5}} {
		mode := dag.Read
		if len(call.Args) == 0 {
			mode = dag.Write
		}
		call.Args = append(call.Args, driver.Operand{Base: base + 2, Buffer: &dag.Buffer{Type: dag.Float32, Shape: shape}, Mode: mode})
	}
	_, err := d.Bind(&call)
	if !errors.Is(err, offload.ErrRefused) || strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), "variant cublaslt of dense.dx: cuBLASLt has no algorithm in float32 for 3×7 by 7×5") {
		t.Errorf("error %v", err)
	}
}

// TestCUDALibraryWorkspace: where the variant is open nothing is reserved for a library's, which
// is chosen by name only; where it is asked for, what it needs is.
func TestCUDALibraryWorkspace(t *testing.T) {
	const library = 32 << 20 // what the library asks for; the products of the program are smaller
	prog, machine := testProgram(t), cudaNode(t, 1, 1)
	machine.Memories[1].CapacityBytes = 3 * library
	if err := machine.Complete(); err != nil {
		t.Fatal(err)
	}
	scratch := func(asked string) int64 {
		d, err := priced(t, prog, machine, hardware.Target{Variant: asked}).Decide(schedule.Choice{Plans: spreadPlans(prog, 2, bySamples(2))})
		if err != nil {
			t.Fatal(err)
		}
		return d.Layouts(0)[1].ArenaBytes[layout.ScratchArena]
	}
	if open, asked := scratch(""), scratch("cublas"); open >= library || asked < library {
		t.Errorf("%d bytes of scratch with the variant open, %d with the library's asked for; want less than and at least %d", open, asked, library)
	}
}

// TestCUDACheckVariant: what a library's variant says where the library is not there is one line.
func TestCUDACheckVariant(t *testing.T) {
	if err := hardware.CheckVariant("go"); err != nil {
		t.Error(err)
	}
	for _, v := range []string{"cublas", "cublaslt", "cudnn-tf32"} {
		if err := hardware.CheckVariant(v); err != nil && (strings.Contains(err.Error(), "\n") || !strings.HasPrefix(err.Error(), "variant "+v+": ")) {
			t.Errorf("error %q", err)
		}
	}
}
