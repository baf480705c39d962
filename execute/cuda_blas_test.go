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
	"dahl/kernels"
	"dahl/platform"
	"dahl/schedule"
)

// libraryNode is cudaNode with memories that hold a library's workspace besides. It skips the
// test on a machine without cuBLAS; the driver library of the tests comes with one.
func libraryNode(t *testing.T, cores, gpus int) *platform.Platform {
	t.Helper()
	p := cudaNode(t, cores, gpus)
	if err := loadLibrary(kernels.CuBLAS); errors.Is(err, cuda.ErrNoLibrary) {
		t.Skip(err)
	} else if err != nil {
		t.Fatal(err)
	}
	for i := range p.Memories {
		if m := &p.Memories[i]; m.CapacityBytes > 0 {
			m.CapacityBytes += 16 << 20
		}
	}
	return p
}

// TestCUDALibrary trains with cuBLAS on each of two devices and the cores: the weights are
// those of one core but for rounding, and the same bits in two runs. Its tasks have the
// workspace that the library asks for.
func TestCUDALibrary(t *testing.T) {
	const steps = 7
	p := libraryNode(t, 1, 2)
	prog := testProgram(t)
	one := Options{Platform: machine(t, 1), Plans: spreadPlans(prog, 1, func(*dag.Task) int { return 0 }), Variant: "go", Hooks: testHooks(nil)}
	want := trainedWeights(t, prog, one, steps, true)
	opt := Options{Platform: p, Plans: spreadPlans(prog, 3, bySamples(3)), Variant: "cublas", Hooks: testHooks(nil)}
	got := trainedWeights(t, prog, opt, steps, true)
	again := trainedWeights(t, prog, opt, steps, false)
	for name := range want {
		compareWeights(t, name, got[name], again[name], want[name])
	}
}

// TestCUDALibraryIsCalled: with the variant asked for, the device's calls begin with products
// of the library; without, none does.
func TestCUDALibraryIsCalled(t *testing.T) {
	p := libraryNode(t, 1, 1)
	prog := testProgram(t)
	for variant, want := range map[string]bool{"cublas": true, "": false} {
		r := newRunner(t, prog, Options{Platform: p, Plans: spreadPlans(prog, 2, bySamples(2)), Variant: variant, Hooks: testHooks(nil)})
		calls := r.devices[1].driver.(*cudaDriver).calls
		if got := slices.ContainsFunc(calls, func(c cudaCall) bool { return c.product != nil }); got != want {
			t.Errorf("variant %q: products of a library: %v", variant, got)
		}
		if _, err := r.Run(context.Background(), 0, 1, true); err != nil {
			t.Fatal(err)
		}
	}
}

// TestLibraryWorkspace: costs that leave the variant open reserve nothing for a library's, which
// is chosen by name only; costs that name it reserve what it asks for.
func TestLibraryWorkspace(t *testing.T) {
	p := cudaNode(t, 1, 1)
	prog := testProgram(t)
	scratch := func(variant string) int64 {
		c, err := schedule.NewCosts(prog.Graphs[0], p, schedule.CostOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if variant != "" {
			NameAsked(prog.Graphs[0], p, c, variant)
		}
		costs := make([]*schedule.Costs, len(prog.Graphs))
		costs[0] = c
		return ScratchByMemory(prog, p, costs)[0][1]
	}
	const library = 4 << 20 // what cuBLAS asks for; the products of the program are smaller
	if open, named := scratch(""), scratch("cublas"); open >= library || named < library {
		t.Errorf("%d bytes of scratch with the variant open, %d with the library's named; want less than and at least %d", open, named, library)
	}
}

// TestCheckVariant: what a library's variant says where the library is not there is one line.
func TestCheckVariant(t *testing.T) {
	if err := CheckVariant("go"); err != nil {
		t.Error(err)
	}
	if err := CheckVariant("cublas"); err != nil && (strings.Contains(err.Error(), "\n") || !strings.HasPrefix(err.Error(), "variant cublas: ")) {
		t.Errorf("error %q", err)
	}
}
