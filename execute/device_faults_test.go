package execute

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"dahl/dag"
	"dahl/execute/driver"
	"dahl/schedule/audit"
)

// failing is a driver whose streams can be asked for so many more things: then the device is
// lost, or what is asked for next is refused, or somebody is told.
type failing struct {
	capturing
	left    int
	cause   error // driver.ErrLost: nothing can be done any more
	tell    func()
	asked   map[any][2]int // by launch, copy or replay: how often, and how often it was taken
	refused any            // other than those: nil

	issued, seen map[driver.StreamID]int // number of operations that were taken, and of those that were seen to be done
	marks        map[driver.EventID]mark // of the last records
}

// mark is a place on a stream.
type mark struct {
	stream driver.StreamID
	issued int
}

// ask asks a stream for something.
func (f *failing) ask(s driver.StreamID, what any, do func() error) error {
	n := f.asked[what]
	n[0]++
	f.asked[what] = n
	f.left--
	switch {
	case f.left == -1 && f.tell != nil:
		f.tell()
	case f.left == -1 || f.left < -1 && f.lost() != nil:
		f.refused = what
		return f.cause
	}
	n[1]++
	f.asked[what] = n
	f.issued[s]++
	return do()
}

// lost is that the device is, once nothing is left.
func (f *failing) lost() error {
	if f.left <= 0 && f.cause == driver.ErrLost {
		return f.cause
	}
	return nil
}

func (f *failing) Launch(s driver.StreamID, l driver.LaunchID) error {
	return f.ask(s, l, func() error { return f.capturing.Launch(s, l) })
}

func (f *failing) Copy(s driver.StreamID, c *driver.Copy) error {
	return f.ask(s, c, func() error { return f.capturing.Copy(s, c) })
}

func (f *failing) Replay(s driver.StreamID, c driver.CaptureID) error {
	return f.ask(s, c, func() error { return f.capturing.Replay(s, c) })
}

func (f *failing) Record(s driver.StreamID, e driver.EventID) error {
	err := f.ask(s, nil, func() error { return f.capturing.Record(s, e) })
	f.marks[e] = mark{s, f.issued[s]}
	return err
}

func (f *failing) Wait(s driver.StreamID, e driver.EventID) error {
	return f.ask(s, nil, func() error { return f.capturing.Wait(s, e) })
}

func (f *failing) Done(e driver.EventID) (bool, error) {
	done, err := f.capturing.Done(e)
	if m := f.marks[e]; done {
		f.seen[m.stream] = max(f.seen[m.stream], m.issued)
	}
	return done && f.lost() == nil, errors.Join(err, f.lost())
}

func (f *failing) Elapsed(from, to driver.EventID) (time.Duration, error) {
	t, err := f.capturing.Elapsed(from, to)
	return t, errors.Join(err, f.lost())
}

// rests reports whether all that the device has taken was seen to be done.
func (f *failing) rests() bool {
	for s, n := range f.issued {
		if f.seen[s] < n {
			return false
		}
	}
	return true
}

// calls is how often a task of a replay was asked of the device, and how often it was taken
// as a whole; of tasks that are asked for by one call, that call.
func (f *failing) calls(c *compiledGraph, task string) (asked, taken int) {
	t := slices.IndexFunc(c.graph.Tasks, func(t dag.Task) bool { return t.Name == task })
	first, last := any(c.issues[t].launch), any(c.issues[t].launch)
	if copies := c.issues[t].copies; len(copies) > 0 {
		first, last = &copies[0], &copies[len(copies)-1]
	}
	asked, taken = f.asked[first][0], f.asked[last][1]
	for lane, parts := range c.batches {
		for i := 0; parts != nil && i < len(parts.list); i++ {
			if s := parts.list[i]; s.captured != nil && int(c.ahead.lists[lane][s.first].task) == t {
				asked, taken = asked+f.asked[s.captured[0]][0], taken+f.asked[s.captured[0]][1]
			}
		}
	}
	return asked, taken
}

// faultyRuns are runs of two steps of the test network on a core and one device.
var faultyRuns = []struct {
	name    string
	dynamic bool
	record  bool
	stride  int // how many calls further each fault is
}{{"recorded", false, true, 2}, {"not recorded", false, false, 1}, {"by a policy", true, true, 3}}

// failingRunner is a runner whose device fails as soon as it is told to.
func failingRunner(t *testing.T, prog *dag.Program, dynamic bool) (*Runner, *failing) {
	p := node(t, 1, 1)
	opt := how{Platform: p, Plans: spreadPlans(prog, 2, bySamples(2)), Options: Options{Hooks: testHooks(nil)}}
	if dynamic {
		p.Devices[0].FlopsPerSec["float32"] = 1e6 // so that the policy prefers the GPU
		opt.Plans, opt.Policy = nil, "dmda"
	}
	r := newRunner(t, prog, opt)
	d := r.devices[1]
	f := &failing{capturing: d.Driver.(capturing), asked: map[any][2]int{}, issued: map[driver.StreamID]int{}, seen: map[driver.StreamID]int{}, marks: map[driver.EventID]mark{}}
	d.Driver = f
	return r, f
}

// TestDeviceFailsAfterAnyCall: a device that is lost between any two of the things that it
// is asked for, or has no memory for one of them, ends the run with the device named,
// with the task if one was under way, and how far that had come. A device that is lost is the
// end of the runner; one that lacked memory rests, and the next run is whole. Nothing is
// left behind.
func TestDeviceFailsAfterAnyCall(t *testing.T) {
	prog := testProgram(t)
	before := runtime.NumGoroutine()
	for _, run := range faultyRuns {
		for cause, more := range map[error]int{driver.ErrLost: 1, driver.ErrMemory: 4} {
			stride := run.stride * more
			if testing.Short() {
				stride *= 5
			}
			t.Run(fmt.Sprintf("%s, %v", run.name, cause), func(t *testing.T) {
				r, f := failingRunner(t, prog, run.dynamic)
				f.cause = cause
				tasks := 0
				for after := 0; ; after += stride {
					f.left = after
					clear(f.asked)
					_, err := r.Run(context.Background(), 0, 2, run.record)
					if err == nil && f.left >= 0 {
						break // as many calls as there are
					}
					if checkFault(t, r, f, err, run.dynamic) {
						tasks++
					}
					if cause == driver.ErrMemory && !f.rests() {
						t.Errorf("after %d calls: the device still works", after)
					}
					if s, err := r.Run(context.Background(), 0, 2, true); (err != nil) != (cause == driver.ErrLost) {
						t.Errorf("after %d calls: the next run: %v", after, err)
					} else if err == nil && audit.Check(s, r.Problem(0, 2)) != nil {
						t.Errorf("after %d calls: the next run: %v", after, audit.Check(s, r.Problem(0, 2)))
					}
					if cause == driver.ErrLost {
						r.Close()
						r, f = failingRunner(t, prog, run.dynamic)
						f.cause = cause
					}
				}
				if tasks*stride < 100 {
					t.Errorf("%d faults at tasks", tasks)
				}
			})
		}
	}
	waitForGoroutines(t, before)
}

// checkFault compares what an error says with what the device was asked for, and reports
// whether it names a task.
func checkFault(t *testing.T, r *Runner, f *failing, err error, dynamic bool) (named bool) {
	t.Helper()
	if device, failed := FailedDevice(err); device != "gpu0" || !failed || !errors.Is(err, f.cause) {
		t.Errorf("the device that failed is %q, %v: %v", device, failed, err)
	}
	var fault *TaskError
	if !errors.As(err, &fault) {
		for _, l := range r.devices[1].lanes {
			if l.ended < l.issued {
				t.Errorf("no task is named, and one is under way: %v", err)
			}
		}
		return false
	}
	asked, taken := fault.Step+1, fault.Step // a policy's copies are made when they are issued
	if !dynamic {
		asked, taken = f.calls(r.graphs[0], fault.Task)
	}
	lost := f.cause == driver.ErrLost
	switch {
	case fault.State == "issued and not done" && asked > fault.Step && (lost || f.refused == nil):
	case fault.State == "not issued" && taken <= fault.Step && !(lost && asked > fault.Step):
	default:
		t.Errorf("its calls were asked for %d times and taken %d times: %v", asked, taken, err)
	}
	return true
}

// TestStopsAfterAnyCall ends runs from outside at every sixth call; the device rests then, and
// what follows is whole.
func TestStopsAfterAnyCall(t *testing.T) {
	prog := testProgram(t)
	for _, run := range faultyRuns {
		t.Run(run.name, func(t *testing.T) {
			r, f := failingRunner(t, prog, run.dynamic)
			stopped, stride := 0, 6
			if testing.Short() {
				stride = 30
			}
			for after := 0; ; after += stride {
				ctx, cancel := context.WithCancel(context.Background())
				f.left, f.tell = after, cancel
				_, err := r.Run(ctx, 0, 2, run.record)
				cancel()
				if f.left >= 0 {
					break // as many calls as there are
				}
				if errors.Is(err, context.Canceled) {
					stopped++
				} else if err != nil {
					t.Fatal(err)
				}
				if !f.rests() {
					t.Errorf("after %d calls: the device still works", after)
				}
				if s, err := r.Run(context.Background(), 0, 2, true); err != nil {
					t.Fatal(err)
				} else if err := audit.Check(s, r.Problem(0, 2)); err != nil {
					t.Errorf("after %d calls: the next run: %v", after, err)
				}
			}
			if stopped*stride < 120 {
				t.Errorf("%d runs were stopped", stopped)
			}
		})
	}
}

// waitForGoroutines waits until there are no more goroutines than before.
func waitForGoroutines(t *testing.T, before int) {
	t.Helper()
	for wait := 0; runtime.NumGoroutine() > before; wait++ {
		if wait == 6000 { // a minute, though the machine is busy
			t.Fatalf("%d goroutines, %d before", runtime.NumGoroutine(), before)
		}
		time.Sleep(10 * time.Millisecond)
	}
}
