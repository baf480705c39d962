package execute

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"dahl/dag"
	"dahl/execute/hardware"
	"dahl/execute/host"
	"dahl/kernels/calls"
	"dahl/must"
	"dahl/platform"
	"dahl/schedule"
	"dahl/schedule/audit"
	"dahl/schedule/layout"
	"dahl/schedule/policy"
)

// weights is a digest of all parameters.
func weights(r *Runner) string {
	h := sha256.New()
	for _, p := range []string{"w1", "b1", "w2", "b2", "v.w1"} {
		h.Write(r.Bytes(p))
	}
	return fmt.Sprintf("%x", h.Sum(nil))
}

// TestBitsAreEqual trains with every worker count and every way to schedule. The
// truth is one worker in program order.
func TestBitsAreEqual(t *testing.T) {
	const steps = 20
	prog := testProgram(t)
	train := func(opt how) (string, []float32) {
		var losses []float32
		opt.Hooks = testHooks(&losses)
		r := newRunner(t, prog, opt)
		s, err := r.Run(context.Background(), 0, steps, true)
		if err != nil {
			t.Fatal(err)
		}
		checkSpans(t, s, prog.Graphs[0])
		if err := audit.Check(s, r.Problem(0, steps)); err != nil {
			t.Error(err)
		}
		for w := range r.workers {
			if plan := r.Plan(0); plan != nil && w < len(plan.Order) {
				checkOrder(t, s, plan, w)
			}
		}
		digest := weights(r)
		if _, err := r.Run(context.Background(), 1, 2, false); err != nil {
			t.Fatal(err)
		}
		if weights(r) != digest {
			t.Error("evaluation changed the weights")
		}
		return digest, losses
	}
	var inOrder schedule.Plan
	for _, g := range prog.Graphs[:1] {
		inOrder.Order = [][]dag.TaskID{nil}
		for i := range g.Tasks {
			inOrder.Order[0] = append(inOrder.Order[0], dag.TaskID(i))
		}
	}
	want, losses := train(how{Platform: machine(t, 1), Plans: []*schedule.Plan{&inOrder}})
	if len(losses) != steps+2 || !finite(losses[steps-1]) || losses[steps-1] >= losses[0] {
		t.Fatalf("losses %v: want %d falling ones", losses, steps)
	}
	for workers := 1; workers <= 3; workers++ {
		for seed := range uint64(4) {
			opt := how{Platform: machine(t, workers), Plans: randomPlans(prog, workers, seed)}
			if got, other := train(opt); got != want || !slices.Equal(other, losses) {
				t.Errorf("random plan %d on %d workers: other bits", seed, workers)
			}
		}
		for _, info := range policy.All() {
			if got, other := train(how{Platform: machine(t, workers), Policy: info.Doc().Name}); got != want || !slices.Equal(other, losses) {
				t.Errorf("%s on %d workers: other bits", info.Doc().Name, workers)
			}
		}
	}
}

// checkOrder compares what a worker ran with its list, repeated every step.
func checkOrder(t *testing.T, s *schedule.Schedule, plan *schedule.Plan, w int) {
	t.Helper()
	n := 0
	for _, sp := range s.Spans {
		if int(sp.Worker) != w {
			continue
		}
		list := plan.Order[w]
		if want := list[n%len(list)]; sp.Task != want || int(sp.Step) != n/len(list) {
			t.Fatalf("worker %d ran task %d of step %d as number %d, the plan says task %d", w, sp.Task, sp.Step, n, want)
		}
		n++
	}
	if n != len(plan.Order[w])*s.Steps {
		t.Errorf("worker %d ran %d tasks, the plan has %d", w, n, len(plan.Order[w])*s.Steps)
	}
}

// TestSteadyStepsAllocateNothing counts allocations over 1000 steps.
func TestSteadyStepsAllocateNothing(t *testing.T) {
	const first, last = 50, 1050
	prog := testProgram(t)
	limited := machine(t, 2) // the Engine then counts live bytes
	limited.Memories[0].CapacityBytes = 1 << 20
	for _, c := range []struct {
		name string
		opt  how
	}{
		{"static", how{Platform: machine(t, 2), Plans: randomPlans(prog, 2, 1)}},
		{"eager", how{Platform: machine(t, 2), Policy: "eager"}},
		{"dmda", how{Platform: machine(t, 2), Policy: "dmda"}},
		{"eager in a limited memory", how{Platform: limited, Policy: "eager"}},
	} {
		if least := leastAllocations(t, prog, c.opt, first, last, true, 0); least != 0 {
			t.Errorf("%s: %d allocations in %d steps, want none", c.name, least, last-first)
		}
	}
}

// leastAllocations is how often the whole process allocates between two steps of one run,
// counted from inside the run: the least of five tries, or the first that is not above enough.
func leastAllocations(t *testing.T, prog *dag.Program, opt how, first, last int, record bool, enough uint64) uint64 {
	t.Helper()
	var before, after runtime.MemStats
	opt.Hooks = testHooks(nil)
	feed := opt.Hooks["feed"]
	opt.Hooks["feed"] = func(step int, call *calls.Call) error {
		switch step {
		case first:
			runtime.ReadMemStats(&before)
		case last:
			runtime.ReadMemStats(&after)
		}
		return feed(step, call)
	}
	r := newRunner(t, prog, opt)
	least := uint64(math.MaxUint64)
	for try := 0; try < 5 && least > enough; try++ {
		cacheWaits()
		if _, err := r.Run(context.Background(), 0, last+1, record); err != nil {
			t.Fatal(err)
		}
		least = min(least, after.Mallocs-before.Mallocs)
	}
	return least
}

// cacheWaits makes the runtime allocate, before allocations are counted, the records that it
// needs when goroutines wait for a lock and then keeps. A worker that loses its core while it has
// the lock of a policy makes another one wait, and that is no allocation of a step.
func cacheWaits() {
	const waits = 1000 // more than the caches of some processors hold
	var mu sync.Mutex
	var done sync.WaitGroup
	all, ready := sync.NewCond(&mu), 0
	for range waits {
		done.Go(func() {
			mu.Lock()
			defer mu.Unlock()
			if ready++; ready == waits {
				all.Broadcast()
			}
			for ready < waits {
				all.Wait()
			}
		})
	}
	done.Wait()
}

func TestCancelStopsBetweenTasks(t *testing.T) {
	prog := testProgram(t)
	before := runtime.NumGoroutine()
	for _, opt := range []how{
		{Platform: machine(t, 3), Plans: randomPlans(prog, 3, 2)},
		{Platform: machine(t, 3), Policy: "eager"},
	} {
		ctx, cancel := context.WithCancel(context.Background())
		opt.Hooks = testHooks(nil)
		feed := opt.Hooks["feed"]
		opt.Hooks["feed"] = func(step int, call *calls.Call) error {
			if step == 5 {
				cancel()
			}
			return feed(step, call)
		}
		r, err := newOn(prog, opt)
		if err != nil {
			t.Fatal(err)
		}
		initialise(r)
		const steps = 100_000 // which last longer than a cancel takes on a loaded machine
		s, err := r.Run(ctx, 0, steps, true)
		if !errors.Is(err, context.Canceled) {
			t.Errorf("error %v, want that the context was cancelled", err)
		}
		// Step 5 had begun, so steps 0 to 3 had ended: at most two steps overlap
		// here, since feed waits for every reader of the last index.
		n := len(prog.Graphs[0].Tasks)
		if len(s.Spans) < 4*n || len(s.Spans) == steps*n || s.Steps < 6 {
			t.Errorf("%d spans of %d steps after a cancel in step 5 of %d", len(s.Spans), s.Steps, steps)
		}
		// The runner still works, and a context that has ended stops it at once.
		if s, err = r.Run(ctx, 0, 3, true); !errors.Is(err, context.Canceled) || s == nil || len(s.Spans) > 0 {
			t.Errorf("run with an ended context: %v, %v", s, err)
		}
		if _, err = r.Run(context.Background(), 0, 3, true); err != nil {
			t.Errorf("run after a cancelled one: %v", err)
		}
		r.Close()
		r.Close() // closing twice does nothing
		if _, err = r.Run(context.Background(), 0, 3, true); err == nil {
			t.Error("a closed runner ran")
		}
	}
	waitForGoroutines(t, before)
}

func TestFailureNamesTheTask(t *testing.T) {
	prog := testProgram(t)
	cause := errors.New("no more data")
	for _, c := range []struct {
		name   string
		change func(step int, call *calls.Call) error
		task   string
		is     error
		parts  []string
	}{
		{"hook fails", func(int, *calls.Call) error { return cause }, "feed", cause, []string{"step 4", `"feed"`, "index write [7]", "no more data"}},
		{"hook panics", func(int, *calls.Call) error { panic("boom") }, "feed", nil, []string{`"feed"`, "panic: boom"}},
		{"hook leaves", func(int, *calls.Call) error { runtime.Goexit(); return nil }, "feed", errGoexit, []string{`"feed"`}},
		// An index beyond the data set makes the kernel of some tile panic.
		{"kernel panics", func(_ int, call *calls.Call) error {
			for i := range calls.Data[int32](&call.Args[0]) {
				calls.Data[int32](&call.Args[0])[i] = 1 << 20
			}
			return nil
		}, "l", nil, []string{"load", "images read [13 11]", "panic: "}},
	} {
		for _, opt := range []how{
			{Platform: machine(t, 3), Plans: randomPlans(prog, 3, 4)},
			{Platform: machine(t, 3), Policy: "eager"},
		} {
			opt.Hooks = testHooks(nil)
			feed := opt.Hooks["feed"]
			opt.Hooks["feed"] = func(step int, call *calls.Call) error {
				if step == 4 {
					return c.change(step, call)
				}
				return feed(step, call)
			}
			r := newRunner(t, prog, opt)
			s, err := r.Run(context.Background(), 0, 9, true)
			var failed *TaskError
			if !errors.As(err, &failed) {
				t.Fatalf("%s: error %v, want a TaskError", c.name, err)
			}
			if failed.Step != 4 || !strings.HasPrefix(failed.Task, c.task) || s == nil || c.is != nil && !errors.Is(err, c.is) {
				t.Errorf("%s: %+v", c.name, failed)
			}
			for _, part := range c.parts {
				if part == "load" || part == "images read [13 11]" {
					if strings.HasPrefix(failed.Task, "labels") {
						continue // the labels' kernel may panic first
					}
				}
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%s: %q does not say %q", c.name, err, part)
				}
			}
		}
	}
}

// TestHighWater: every byte of every storage is written by the tasks or by
// initialise, so the highest touched byte is the end of the last storage.
func TestHighWater(t *testing.T) {
	prog := testProgram(t)
	for _, opt := range []how{
		{Platform: machine(t, 2), Plans: randomPlans(prog, 2, 6)},
		{Platform: machine(t, 2), Policy: "eager"},
	} {
		var losses []float32
		opt.Poison, opt.Hooks = true, testHooks(&losses)
		r := newRunner(t, prog, opt)
		for graph := range prog.Graphs {
			if _, err := r.Run(context.Background(), graph, 3, false); err != nil {
				t.Fatal(err)
			}
		}
		ram := r.Platform().HostMemory()
		high, planned := must.Get(r.HighWater(ram))(t), r.PlannedHighWater(ram)
		for a := layout.NetworkArena; a < layout.ScratchArena; a++ {
			if high[a] != planned[a] {
				t.Errorf("arena %d: highest byte %d, planned %d", a, high[a], planned[a])
			}
			if size := r.Layout(0).ArenaBytes[a]; a != layout.StepArena && size-planned[a] >= host.Align {
				t.Errorf("arena %d: %d bytes, of which %d are used", a, size, planned[a])
			}
		}
		if high[layout.ScratchArena] > planned[layout.ScratchArena] {
			t.Errorf("scratch: highest byte %d of %d", high[layout.ScratchArena], planned[layout.ScratchArena])
		}
		// Poison reads as NaN: had a task read before the write, the loss would be.
		for _, l := range losses {
			if !finite(l) {
				t.Fatalf("losses %v", losses)
			}
		}
	}
}

// TestHighWaterSeesOverruns writes one byte into the guard.
func TestHighWaterSeesOverruns(t *testing.T) {
	a, err := newArenas([]*layout.Layout{{ArenaBytes: [layout.NumArenas]int64{0, 64, 128, 0}}}, &platform.Memory{})
	if err != nil {
		t.Fatal(err)
	}
	a.poison(0, 1)
	r := &Runner{arenas: a, platform: machine(t, 1)}
	if got, want := must.Get(r.HighWater(0))(t), ([layout.NumArenas]int64{}); got != want {
		t.Errorf("untouched: %v", got)
	}
	a[1][7] = 1
	step := a[2][:129]
	step[128] = 0
	if got, want := must.Get(r.HighWater(0))(t), ([layout.NumArenas]int64{0, 8, 129, 0}); got != want {
		t.Errorf("high water %v, want %v", got, want)
	}
}

func TestNewRefuses(t *testing.T) {
	prog := testProgram(t)
	cuda := machine(t, 2)
	cuda.Devices[0].Kind = "cuda"
	abacus := randomPlan(prog.Graphs[0], 2, 0)
	abacus.Variants = priced(t, prog, machine(t, 2), hardware.Target{ThisMachine: true}).Costs(0).Variants(prog.Graphs[0], machine(t, 2))
	for call := range abacus.Variants["cpu"] {
		abacus.Variants["cpu"][call] = "abacus"
	}
	small := machine(t, 2)
	small.Memories[0].CapacityBytes = 1000
	other := randomPlan(prog.Graphs[0], 2, 0)
	other.GraphHash = strings.Repeat("0", 64)
	for _, c := range []struct {
		want   string
		change func(*how)
	}{
		{"no hook", func(o *how) { o.Hooks = nil }},
		{`kind "cuda"`, func(o *how) { o.Platform = cuda }},
		{`policy "chance"`, func(o *how) { o.Policy = "chance" }},
		{`no variant "abacus"`, func(o *how) { o.Plans = []*schedule.Plan{abacus} }},
		{"000000000000…", func(o *how) { o.Plans = []*schedule.Plan{other} }},
		{`memory "ram" has 1 kB`, func(o *how) { o.Platform = small }},
		{"3 workers", func(o *how) { o.Plans = []*schedule.Plan{randomPlan(prog.Graphs[0], 3, 0)} }},
	} {
		opt := how{Platform: machine(t, 2), Options: Options{Hooks: testHooks(nil)}}
		c.change(&opt)
		wantRefused(t, prog, opt, c.want)
	}
	r := newRunner(t, prog, how{Platform: machine(t, 2), Options: Options{Hooks: testHooks(nil)}})
	for _, c := range [][2]int{{-1, 1}, {2, 1}, {0, 0}, {0, maxRecords}} {
		if _, err := r.Run(context.Background(), c[0], c[1], true); err == nil {
			t.Errorf("%d steps of graph %d ran", c[1], c[0])
		}
	}
}

// wantRefused checks that New refuses options with an error that says something.
func wantRefused(t *testing.T, prog *dag.Program, opt how, want string) {
	t.Helper()
	r, err := newOn(prog, opt)
	if err == nil {
		r.Close()
		t.Errorf("no error, want one about %q", want)
	} else if !strings.Contains(err.Error(), want) {
		t.Errorf("error %q, want one about %q", err, want)
	}
}

// TestTasksWithoutOperation: points in the order of others run, in that order, and are
// recorded.
func TestTasksWithoutOperation(t *testing.T) {
	b := dag.NewBuilder("points")
	x := b.Buffer(dag.Buffer{Name: "x", Shape: []int{3}, Type: dag.Float32})
	for i := range 5 {
		b.Task(dag.Task{Name: fmt.Sprint("t", i), Accesses: []dag.Access{{Region: dag.Region{Buffer: x}, Mode: dag.ReadWrite}}})
	}
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	prog := &dag.Program{Name: "points", Graphs: []*dag.Graph{g}, Order: []dag.Segment{{Steps: 1}}}
	for _, policy := range []string{"eager", "heft"} {
		r, err := newOn(prog, how{Platform: machine(t, 2), Policy: policy})
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		s, err := r.Run(context.Background(), 0, 7, true)
		if err != nil || len(s.Spans) != 5*7 {
			t.Fatalf("%s: %d spans, error %v; want 35", policy, len(s.Spans), err)
		}
		if err := audit.Check(s, r.Problem(0, 7)); err != nil {
			t.Errorf("%s: %v", policy, err)
		}
	}
}

func TestWarnsOfWorkersBeyondCores(t *testing.T) {
	many := len(host.CPUs()) + 1
	prog := testProgram(t)
	r := newRunner(t, prog, how{Platform: machine(t, many), Options: Options{Hooks: testHooks(nil)}})
	if w := r.Warnings(); len(w) == 0 || !strings.Contains(w[0], fmt.Sprint(many, " workers")) {
		t.Errorf("warnings %q with %d workers", w, many)
	}
}

// TestTheRestKeepsRunning: with a worker on every core and hooks that wait for
// the caller, the caller must still get its turn.
func TestTheRestKeepsRunning(t *testing.T) {
	prog := testProgram(t)
	cores := len(host.CPUs())
	asked, answered := make(chan int), make(chan int)
	hooks := testHooks(nil)
	fetch := hooks["fetch"]
	hooks["fetch"] = func(step int, call *calls.Call) error {
		asked <- step
		<-answered
		return fetch(step, call)
	}
	r := newRunner(t, prog, how{Platform: machine(t, cores), Plans: randomPlans(prog, cores, 8), Options: Options{Hooks: hooks}})
	go func() {
		for step := range asked {
			answered <- step
		}
	}()
	if _, err := r.Run(context.Background(), 0, 50, false); err != nil {
		t.Fatal(err)
	}
	close(asked)
}
