//go:build cuda

package execute

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"testing"

	"dahl/dag"
	"dahl/execute/cuda"
	"dahl/kernels"
	"dahl/kernels/calls"
	"dahl/kernels/gpu"
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
	if err := checkLibrary(library); errors.Is(err, cuda.ErrNoLibrary) {
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
	for _, library := range []string{gpu.CuBLAS, gpu.CuBLASLt} {
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

// TestCUDALibraryIsCalled: with the variant asked for, the device's calls begin with those of
// the library; without, none does.
func TestCUDALibraryIsCalled(t *testing.T) {
	p := libraryNode(t, gpu.CuBLASLt, 1, 1)
	prog := testProgram(t)
	for _, variant := range []string{"cublas", "cublaslt", ""} {
		r := newRunner(t, prog, how{Platform: p, Plans: spreadPlans(prog, 2, bySamples(2)), Variant: variant, Options: Options{Hooks: testHooks(nil)}})
		calls := r.devices[1].driver.(*cudaDriver).calls
		if got := slices.ContainsFunc(calls, func(c cudaCall) bool { return c.library != nil }); got != (variant != "") {
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
	runtime.LockOSThread() // the thread ends with the test
	d, err := openFirst(libraryNode(t, gpu.CuBLASLt, 1, 1))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := d.close(); err != nil {
			t.Error(err)
		}
	}()
	if !strings.HasPrefix(d.properties().Name, "Test device") {
		t.Skip("what a GPU's library refuses is not known")
	}
	base, err := d.reserve(1 << 20)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.newStream(false); err != nil {
		t.Fatal(err)
	}
	k, _ := kernels.KernelByName("dense.dx")
	v, _ := k.Variant("cublaslt")
	call := deviceCall{spec: &calls.Spec{Op: "dense.dx", Type: dag.Float32}, variant: v}
	for _, shape := range [][]int{{3, 5}, {3, 7}, {7, 5}} {
		mode := dag.Read
		if len(call.args) == 0 {
			mode = dag.Write
		}
		call.args = append(call.args, deviceOperand{base: base + 2, buffer: &dag.Buffer{Type: dag.Float32, Shape: shape}, mode: mode})
	}
	_, err = d.bind(&call)
	if !errors.Is(err, offload.ErrRefused) || strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), "variant cublaslt of dense.dx: cuBLASLt has no algorithm in float32 for 3×7 by 7×5") {
		t.Errorf("error %v", err)
	}
}

// TestLibraryWorkspace: where the variant is open nothing is reserved for a library's, which
// is chosen by name only; where it is asked for, what it needs is.
func TestLibraryWorkspace(t *testing.T) {
	const library = 32 << 20 // what the library asks for; the products of the program are smaller
	prog, machine := testProgram(t), cudaNode(t, 1, 1)
	machine.Memories[1].CapacityBytes = 3 * library
	if err := machine.Complete(); err != nil {
		t.Fatal(err)
	}
	scratch := func(asked string) int64 {
		d, err := priced(t, prog, machine, Target{Variant: asked}).Decide(schedule.Choice{Plans: spreadPlans(prog, 2, bySamples(2))})
		if err != nil {
			t.Fatal(err)
		}
		return d.Layouts(0)[1].ArenaBytes[layout.ScratchArena]
	}
	if open, asked := scratch(""), scratch("cublas"); open >= library || asked < library {
		t.Errorf("%d bytes of scratch with the variant open, %d with the library's asked for; want less than and at least %d", open, asked, library)
	}
}

// TestCheckVariant: what a library's variant says where the library is not there is one line.
func TestCheckVariant(t *testing.T) {
	if err := CheckVariant("go"); err != nil {
		t.Error(err)
	}
	for _, v := range []string{"cublas", "cublaslt", "cudnn-tf32"} {
		if err := CheckVariant(v); err != nil && (strings.Contains(err.Error(), "\n") || !strings.HasPrefix(err.Error(), "variant "+v+": ")) {
			t.Errorf("error %q", err)
		}
	}
}
