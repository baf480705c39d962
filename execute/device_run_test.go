package execute

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"dahl/dag"
	"dahl/execute/driver"
	"dahl/execute/hardware"
	"dahl/kernels/calls"
	"dahl/must"
	"dahl/platform"
	"dahl/schedule"
	"dahl/schedule/audit"
	"dahl/schedule/layout"
	"dahl/schedule/place"
)

// bySamples is the split of the test network that moves most.
func bySamples(workers int) func(task *dag.Task) int {
	return func(task *dag.Task) int { return splits[1].of(task, workers) }
}

// TestBytesMovedAreThePlans: every step moves what the plan says, and only the carried
// contents that a memory lacks move before.
func TestBytesMovedAreThePlans(t *testing.T) {
	const steps = 5
	prog := testProgram(t)
	for _, split := range splits {
		r := newRunner(t, prog, how{Platform: node(t, 1, 2), Options: Options{Hooks: testHooks(nil)},
			Plans: spreadPlans(prog, 3, func(task *dag.Task) int { return split.of(task, 3) })})
		s := must.Get(r.Run(context.Background(), 0, steps, true))(t)
		want := map[[2]int32]int64{}
		pg := r.decision.Placed.Graphs[0]
		add := func(moves []*place.Move, times int64) {
			for _, m := range moves {
				if m != nil && !m.Anywhere {
					want[[2]int32{int32(m.From), int32(m.To)}] += times * m.Bytes
				}
			}
		}
		add(pg.Moves(), steps)
		add(pg.Enter, 1)
		got := map[[2]int32]int64{}
		for _, tr := range s.Transfers {
			got[[2]int32{int32(tr.From), int32(tr.To)}] += tr.Bytes
		}
		if len(got) != len(want) || len(got) == 0 {
			t.Errorf("%s: moved %v, planned %v", split.name, got, want)
		}
		for k := range want {
			if got[k] != want[k] {
				t.Errorf("%s: %d bytes from memory %d to %d, planned %d", split.name, got[k], k[0], k[1], want[k])
			}
		}
	}
}

// drifting is a device whose clock gains some seconds per second.
type drifting struct {
	capturing
	drift float64
}

func (d drifting) Elapsed(from, to driver.EventID) (time.Duration, error) {
	t, err := d.capturing.Elapsed(from, to)
	return t + time.Duration(float64(t)*d.drift), err
}

// TestDeviceClocksAreAligned gives the devices clocks that are some
// percent too fast or too slow, and the schedule must still pass its check.
func TestDeviceClocksAreAligned(t *testing.T) {
	prog := testProgram(t)
	changeEmulated(t, func(dev *platform.Device, d capturing) driver.Driver {
		return drifting{d, map[string]float64{"gpu0": 0.02, "gpu1": -0.03}[dev.Name]}
	})
	r := newRunner(t, prog, how{Platform: node(t, 1, 2), Plans: spreadPlans(prog, 3, bySamples(3)), Options: Options{Hooks: testHooks(nil)}})
	r.devices[1].rebase, r.devices[2].rebase = time.Millisecond, 300*time.Microsecond
	s := must.Get(r.Run(context.Background(), 0, 30, true))(t)
	if err := audit.Check(s, r.Problem(0, 30)); err != nil {
		t.Error(err)
	}
	for _, d := range r.devices[1:] {
		if d.times.origin == 0 {
			t.Errorf("device %q counts from its first event after %v", d.name, s.Makespan)
		}
	}
}

// TestTooManyWorkers: 64 workers on each core of this machine may run, and not one more.
func TestTooManyWorkers(t *testing.T) {
	most := 64 * runtime.NumCPU()
	if _, err := Runnable(node(t, most, 0)); err != nil {
		t.Error(err)
	}
	_, err := Runnable(node(t, most+1, 0))
	if want := fmt.Sprintf("%d workers are to run, and this machine has cores for at most %d, 64 on each of its %d; select fewer", most+1, most, runtime.NumCPU()); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want %s", err, want)
	}
}

// TestRunnable: a device that does not say how many copy engines it has is executed with one
// in each direction, one that does with its own; the platform that was given stays as it is,
// and what is decided for it, with copies that no lane makes, is refused.
func TestRunnable(t *testing.T) {
	p := node(t, 1, 2)
	p.Devices[1].CopyEnginesIn, p.Devices[1].CopyEnginesOut = 0, 0
	p.Devices[2].CopyEnginesIn, p.Devices[2].CopyEnginesOut = 3, 2
	must.Do(t, p.Complete())
	q := must.Get(Runnable(p))(t)
	engines := [][2]int{}
	for _, d := range q.Devices {
		engines = append(engines, [2]int{d.CopyEnginesIn, d.CopyEnginesOut})
	}
	if want := [][2]int{{0, 0}, {1, 1}, {3, 2}}; !slices.Equal(engines, want) || p.Devices[1].CopyEnginesIn != 0 {
		t.Errorf("engines %d, want %d; given %d", engines, want, p.Devices[1].CopyEnginesIn)
	}
	prog := testProgram(t)
	d := must.Get(priced(t, prog, p, hardware.Target{ThisMachine: true}).Decide(schedule.Choice{Plans: spreadPlans(prog, 3, bySamples(3))}))(t)
	if r, err := New(d, Options{Hooks: testHooks(nil)}); err == nil {
		r.Close()
		t.Error("copies without an engine are executed")
	} else if !strings.Contains(err.Error(), "copy_engines") {
		t.Errorf("error %v", err)
	}
}

// TestSteadyStepsOnDevicesAllocateNothing counts allocations over 300 steps, with one and with three
// copies of buffers.
func TestSteadyStepsOnDevicesAllocateNothing(t *testing.T) {
	const first, last = 50, 350
	prog := testProgram(t)
	opt := how{Platform: node(t, 1, 1), Plans: spreadPlans(prog, 2, bySamples(2))}
	for _, opt := range []how{opt, inCopies(t, prog, opt, func(int) int { return 3 })} {
		for _, record := range []bool{true, false} {
			if least := leastAllocations(t, prog, opt, first, last, record, 0); least != 0 {
				t.Errorf("record %v: %d allocations in %d steps, want none", record, least, last-first)
			}
		}
	}
}

// TestHighWaterOfDevices: all that the plan lays out in the memory of a device is
// written, and nothing beyond it.
func TestHighWaterOfDevices(t *testing.T) {
	prog := testProgram(t)
	for i, split := range splits[:3] {
		var losses []float32
		h := how{Platform: node(t, 1, 1), Options: Options{Hooks: testHooks(&losses), Poison: true},
			Plans: spreadPlans(prog, 2, func(task *dag.Task) int { return split.of(task, 2) })}
		if i == 1 { // three steps write all copies
			h = inCopies(t, prog, h, func(at int) int { return 1 + at%3 })
		}
		r := newRunner(t, prog, h)
		for graph := range prog.Graphs {
			must.Get(r.Run(context.Background(), graph, 3, false))(t)
		}
		memory, _ := r.Platform().MemoryByName("gpu0.mem")
		high, planned := must.Get(r.HighWater(memory))(t), r.PlannedHighWater(memory)
		if planned[layout.StepArena] == 0 {
			t.Errorf("%s: the device holds nothing", split.name)
		}
		for a := layout.NetworkArena; a < layout.ScratchArena; a++ {
			if high[a] != planned[a] {
				t.Errorf("%s: arena %d: highest byte %d, planned %d", split.name, a, high[a], planned[a])
			}
		}
		for _, l := range losses {
			if !finite(l) {
				t.Fatalf("%s: losses %v", split.name, losses)
			}
		}
	}
}

// TestInputsMoveAgainWhenAskedFor changes the images between two runs. The truth is one
// core, which reads them where they are.
func TestInputsMoveAgainWhenAskedFor(t *testing.T) {
	prog := testProgram(t)
	run := func(opt how) []float32 {
		var losses []float32
		opt.Hooks, opt.Variant = testHooks(&losses), "go"
		r := newRunner(t, prog, opt)
		for i := range 3 {
			must.Get(r.Run(context.Background(), 0, 2, false))(t)
			for k := range r.Bytes("images") {
				r.Bytes("images")[k] ^= byte(i*3 + 7)
			}
		}
		return losses
	}
	want := run(how{Platform: machine(t, 1), Policy: "heft"})
	got := run(how{Platform: node(t, 1, 1), Plans: spreadPlans(prog, 2, func(*dag.Task) int { return 1 })})
	if !slices.Equal(got, want) {
		t.Errorf("losses %v, want %v", got, want)
	}
}

// panicking is a device whose fourth call panics.
type panicking struct {
	capturing
	calls int
}

func (p *panicking) Bind(c *driver.Call) (driver.LaunchID, error) {
	if p.calls++; p.calls == 4 {
		own, v := *c, *c.Variant
		v.Run32 = func(*calls.Call) { panic("a bug") }
		own.Variant, c = &v, &own
	}
	return p.capturing.Bind(c)
}

// full is a device that has less memory than it says.
type full struct{ capturing }

func (full) Reserve(int64) (driver.Address, error) { return 0, driver.ErrMemory }

// TestDeviceFaults: a device that is lost, or out of memory, or whose kernel panics ends
// the run with a task of it, the device and the state named; only a lost one is the end of
// the runner.
func TestDeviceFaults(t *testing.T) {
	prog := testProgram(t)
	for _, c := range []struct {
		name  string
		fault platform.DeviceFault
		panic bool
		want  error // wrapped
		state string
	}{
		{"lost", platform.DeviceFault{Kind: platform.FaultLost, After: 40}, false, driver.ErrLost, "issued and not done"},
		{"out of memory", platform.DeviceFault{Kind: platform.FaultMemory, After: 40}, false, driver.ErrMemory, "not issued"},
		{"panic", platform.DeviceFault{}, true, driver.ErrLost, "issued and not done"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := node(t, 1, 1)
			p.Devices[1].Fault = c.fault
			if c.panic {
				changeEmulated(t, func(_ *platform.Device, d capturing) driver.Driver { return &panicking{capturing: d} })
			}
			r := newRunner(t, prog, how{Platform: p, Plans: spreadPlans(prog, 2, bySamples(2)), Options: Options{Hooks: testHooks(nil)}})
			_, err := r.Run(context.Background(), 0, 50, true)
			var fault *TaskError
			if !errors.As(err, &fault) || !errors.Is(err, c.want) {
				t.Fatalf("error %v, want one of a task that wraps %q", err, c.want)
			}
			if fault.Device != "gpu0" || fault.State != c.state || fault.Task == "" || !strings.Contains(err.Error(), `device "gpu0"`) {
				t.Errorf("fault %+v", fault)
			}
			if device, failed := FailedDevice(err); device != "gpu0" || !failed {
				t.Errorf("the device that failed is %q, %v", device, failed)
			}
			_, err = r.Run(context.Background(), 0, 2, true)
			if lost := c.want == driver.ErrLost; lost != (err != nil) {
				t.Errorf("the next run: %v", err)
			}
		})
	}
}

func TestNewRefusesDevices(t *testing.T) {
	prog := testProgram(t)
	for _, c := range []struct {
		want   string
		change func(*how)
	}{
		// The first layer's weights alone have 4 × 5 × 11 = 220 bytes. In 1,000 every task fits where kernels need no workspace.
		{`memory "gpu0.mem"`, func(o *how) { o.Platform.Memories[1].CapacityBytes = 64 }},
		{`"feed"`, func(o *how) {
			plan := &schedule.Plan{Order: make([][]dag.TaskID, 2)}
			for t := range prog.Graphs[0].Tasks {
				plan.Order[1] = append(plan.Order[1], dag.TaskID(t))
			}
			o.Plans[0] = plan
		}},
		{"there is no cpu worker", func(o *how) { o.Platform.Devices[0].Kind = "emulated" }},
		{`kind = "fpga"`, func(o *how) { o.Platform.Devices[1].Kind = "fpga" }},
		{"write a memory of its own", func(o *how) { o.Platform.Devices[1].Memory = 0 }},
		{"out of memory", func(*how) {
			changeEmulated(t, func(_ *platform.Device, d capturing) driver.Driver { return full{d} })
		}},
	} {
		opt := how{Platform: node(t, 1, 1), Plans: spreadPlans(prog, 2, bySamples(2)), Options: Options{Hooks: testHooks(nil)}}
		c.change(&opt)
		wantRefused(t, prog, opt, c.want)
	}
}
