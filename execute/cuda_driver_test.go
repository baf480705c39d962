//go:build cuda

package execute

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"dahl/dag"
	"dahl/execute/cuda"
	"dahl/execute/driver"
	"dahl/platform"
	"dahl/schedule/audit"
)

// cudaNode is the node of the emulated devices with CUDA devices in their place.
func cudaNode(t testing.TB, cores, gpus int) *platform.Platform {
	t.Helper()
	if n, err := cuda.Count(); errors.Is(err, cuda.ErrNoDevice) || err == nil && n < gpus {
		t.Skipf("%d of %d CUDA devices: %v", n, gpus, err)
	} else if err != nil {
		t.Fatal(err)
	}
	p := node(t, cores, gpus)
	for i := range p.Devices {
		if d := &p.Devices[i]; d.Kind == "emulated" {
			d.Kind, d.Ordinal = "cuda", i-1
		}
	}
	return p
}

func TestCUDAIsADriver(t *testing.T) {
	for _, test := range driverTests {
		t.Run(test.name, func(t *testing.T) { test.run(openDriver(t, cudaNode(t, 1, 1))) })
	}
}

// TestCUDASplits trains with every split over cores and CUDA devices. Each schedule passes
// its check, a run without a record, in batches and graphs, gives the same bits, as do runs with
// several copies of buffers, and the weights are those of one core but for rounding. On the driver library of the tests an order between streams that is missing
// ends the run.
func TestCUDASplits(t *testing.T) {
	const steps = 7
	prog := testProgram(t)
	one := how{Platform: machine(t, 1), Plans: spreadPlans(prog, 1, func(*dag.Task) int { return 0 }), Variant: "go", Options: Options{Hooks: testHooks(nil)}}
	want := trainedWeights(t, prog, one, steps, true)
	for gpus := 1; gpus <= 2; gpus++ {
		for _, split := range splits {
			t.Run(fmt.Sprintf("%d GPUs, %s", gpus, split.name), func(t *testing.T) {
				workers := 1 + gpus
				plans := spreadPlans(prog, workers, func(task *dag.Task) int { return split.of(task, workers) })
				opt := how{Platform: cudaNode(t, 1, gpus), Plans: plans, Options: Options{Hooks: testHooks(nil)}}
				got := trainedWeights(t, prog, opt, steps, true)
				again := trainedWeights(t, prog, opt, steps, false)
				opt = inCopies(t, prog, opt, func(at int) int { return 1 + at%3 })
				recorded, copied := trainedWeights(t, prog, opt, steps, true), trainedWeights(t, prog, opt, steps, false)
				for name := range want {
					compareWeights(t, name, got[name], again[name], want[name])
					compareWeights(t, name+" with copies of buffers, recorded", got[name], recorded[name], want[name])
					compareWeights(t, name+" with copies of buffers", got[name], copied[name], want[name])
				}
			})
		}
	}
}

// compareWeights wants two runs equal and both near the reference. Sums have some tens of
// terms of order 1 and errors grow over few steps: 1e-5 is far above rounding (6e-8
// each) and far below what one misplaced element changes.
func compareWeights(t *testing.T, name string, got, again, want []float32) {
	t.Helper()
	for i := range want {
		if got[i] != again[i] {
			t.Errorf("%s[%d] is %g, and %g in another run", name, i, got[i], again[i])
			return
		}
		if d := math.Abs(float64(got[i] - want[i])); !(d <= 1e-5) {
			t.Errorf("%s[%d] is %g, on one core %g", name, i, got[i], want[i])
			return
		}
	}
}

// trainedWeights runs steps of training and gives the parameters by name.
func trainedWeights(t *testing.T, prog *dag.Program, opt how, steps int, record bool) map[string][]float32 {
	t.Helper()
	r := newRunner(t, prog, opt)
	for _, run := range [][2]int{{0, steps}, {1, 2}, {0, 2}} {
		s, err := r.Run(context.Background(), run[0], run[1], record)
		if err != nil {
			t.Fatal(err)
		}
		if !record {
			continue
		}
		if err := audit.Check(s, r.Problem(run[0], run[1])); err != nil {
			t.Error(err)
		}
	}
	got := map[string][]float32{}
	for _, name := range []string{"w1", "b1", "w2", "b2", "v.w1"} {
		got[name] = slices.Clone(elements[float32](r.Bytes(name)))
	}
	return got
}

// TestCUDASteadySteps: within a run nothing is allocated, pinned or loaded, and the device is
// not waited for as a whole; the test driver notes such calls.
func TestCUDASteadySteps(t *testing.T) {
	log := filepath.Join(t.TempDir(), "log")
	t.Setenv("DAHL_TESTDRIVER_LOG", log)
	p := cudaNode(t, 1, 1)
	prog := testProgram(t)
	r := newRunner(t, prog, how{Platform: p, Plans: spreadPlans(prog, 2, bySamples(2)), Options: Options{Hooks: testHooks(nil)}})
	if text, err := os.ReadFile(log); err != nil || !bytes.Contains(text, []byte("allocate")) {
		t.Skipf("needs the test driver: %v", err)
	}
	for _, record := range []bool{true, false} {
		if _, err := r.Run(context.Background(), 0, 2, record); err != nil {
			t.Fatal(err)
		}
	}
	before, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	for _, record := range []bool{true, false} {
		if _, err := r.Run(context.Background(), 0, 40, record); err != nil {
			t.Fatal(err)
		}
	}
	after, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	if more := string(after[len(before):]); more != "" {
		t.Errorf("in 40 steps: %s", strings.Join(strings.Fields(more), ", "))
	}
}

// TestCUDALost: a GPU that fails at any launch ends the run with the task, the device and the
// state named, also where the host is so slow that the next call finds it lost. Nothing of it is
// left: a device that is opened anew works.
func TestCUDALost(t *testing.T) {
	prog := testProgram(t)
	plans := spreadPlans(prog, 2, bySamples(2))
	for _, c := range []struct {
		name   string
		opt    how
		record bool
		stride int
	}{
		{"recorded", how{Plans: plans}, true, 2},
		{"not recorded", how{Plans: plans}, false, 2},
		{"by a policy", how{Policy: "dmda"}, true, 5},
	} {
		for _, wait := range []string{"0", "1"} {
			t.Run(c.name+", wait "+wait, func(t *testing.T) {
				t.Setenv("DAHL_TESTDRIVER_WAIT", wait)
				lost := 0
				for launch := 1; ; launch += c.stride {
					t.Setenv("DAHL_TESTDRIVER_LOSE", fmt.Sprint("0:", launch))
					c.opt.Platform, c.opt.Hooks = cudaNode(t, 1, 1), testHooks(nil)
					c.opt.Platform.Devices[0].FlopsPerSec["float32"] = 1e6 // so that the policy prefers the GPU
					if !losesOne(t, prog, c.opt, c.record) {
						break
					}
					lost++
				}
				if lost < 5 {
					t.Errorf("lost at %d launches", lost)
				}
			})
		}
	}
}

// losesOne runs two steps on a device that may be lost, and reports whether it was.
func losesOne(t *testing.T, prog *dag.Program, opt how, record bool) bool {
	r := newRunner(t, prog, opt)
	defer r.Close()
	if !strings.HasPrefix(r.devices[1].Properties.Name, "Test device") {
		t.Skip("only the test driver loses a device on demand")
	}
	_, err := r.Run(context.Background(), 0, 2, record)
	if err == nil {
		return false
	}
	var fault *TaskError
	if !errors.As(err, &fault) || !errors.Is(err, driver.ErrLost) {
		t.Fatalf("error %v, want one of a task whose device is lost", err)
	}
	if fault.Device != "gpu0" || fault.Task == "" || fault.State != "issued and not done" || !strings.Contains(err.Error(), "CUDA_ERROR_ECC_UNCORRECTABLE") {
		t.Errorf("fault %+v: %v", fault, err)
	}
	if _, err := r.Run(context.Background(), 0, 2, record); !errors.Is(err, errClosed) {
		t.Errorf("the next run: %v", err)
	}
	return true
}

// TestCUDARefuses names what a machine or device lacks, before anything runs.
func TestCUDARefuses(t *testing.T) {
	prog := testProgram(t)
	for _, c := range []struct {
		want   string
		change func(*how)
	}{
		{"there is no CUDA device 99", func(o *how) { o.Platform.Devices[1].Ordinal = 99 }},
		{`memory "gpu0.mem"`, func(o *how) { o.Platform.Memories[1].CapacityBytes = 100 }}, // less than one task names
	} {
		opt := how{Platform: cudaNode(t, 1, 1), Plans: spreadPlans(prog, 2, bySamples(2)), Options: Options{Hooks: testHooks(nil)}}
		c.change(&opt)
		if r, err := newOn(prog, opt); err == nil {
			r.Close()
			t.Errorf("no error, want one about %q", c.want)
		} else if !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %q, want one about %q", err, c.want)
		}
	}
}
