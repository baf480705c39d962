package execute

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"dahl/dag"
	"dahl/kernels"
	"dahl/platform"
	"dahl/schedule"
	"dahl/schedule/layout"
)

// dynamicPolicies are the names of those that decide at run time.
func dynamicPolicies() (names []string) {
	for _, info := range schedule.Policies() {
		if info.Dynamic != nil {
			names = append(names, info.Name)
		}
	}
	return names
}

// TestPoliciesOnDevicesGiveTheBitsOfTheCPU trains with every policy that decides at run
// time over cores and emulated GPUs. The truth is one core in program order.
func TestPoliciesOnDevicesGiveTheBitsOfTheCPU(t *testing.T) {
	const steps = 7
	prog := testProgram(t)
	want := trained(t, prog, how{Platform: machine(t, 1), Policy: "heft", Variant: "go"}, steps)
	for _, policy := range dynamicPolicies() {
		for _, gpus := range []int{1, 2} {
			for _, cores := range []int{1, 2} {
				t.Run(fmt.Sprintf("%s, %d cores, %d GPUs", policy, cores, gpus), func(t *testing.T) {
					if got := trained(t, prog, how{Platform: node(t, cores, gpus), Policy: policy, Variant: "go"}, steps); got != want {
						t.Error("the weights differ from those of one core")
					}
				})
			}
		}
	}
}

// anywhere is a policy that gives each task to a random worker when it becomes ready, so
// that its operands move there, and hands any ready task to whoever is idle: much of what
// moves is for nobody.
type anywhere struct {
	rng   *rand.Rand
	ready []dag.Instance
}

func (p *anywhere) Ready(v *schedule.View, i dag.Instance) platform.WorkerID {
	p.ready = append(p.ready, i)
	workers := v.Workers(i.Task)
	return workers[p.rng.IntN(len(workers))]
}

func (p *anywhere) Next(v *schedule.View, w platform.WorkerID) (dag.Instance, bool) {
	var mine []int
	for k, i := range p.ready {
		if slices.Contains(v.Workers(i.Task), w) {
			mine = append(mine, k)
		}
	}
	if len(mine) == 0 {
		return dag.Instance{}, false
	}
	k := mine[p.rng.IntN(len(mine))]
	i := p.ready[k]
	p.ready = slices.Delete(p.ready, k, k+1)
	return i, true
}

// tightened is the platform with memories of GPUs that hold that part of what the test
// network has there at most.
func tightened(t *testing.T, p *platform.Platform, prog *dag.Program, percent int64) *platform.Platform {
	t.Helper()
	r := newRunner(t, prog, how{Platform: p, Policy: "eager", Variant: "go", Options: Options{Hooks: testHooks(nil)}})
	for m := range p.Memories {
		if platform.MemoryID(m) == p.HostMemory() {
			continue
		}
		fixed, most := int64(0), int64(0)
		for _, c := range r.graphs {
			l := c.layouts[m]
			most = max(most, l.ArenaBytes[layout.StepArena])
			fixed = max(fixed, l.ArenaBytes[layout.DataArena]+l.ArenaBytes[layout.ScratchArena])
		}
		p.Memories[m].CapacityBytes = fixed + most*percent/100
	}
	return p
}

// TestTightMemoryOfDevices has policies, and one that moves things at random, run in less
// memory than all storages need, over links so slow that copies are late and kernels that
// take any time. The bits stay those of one core.
func TestTightMemoryOfDevices(t *testing.T) {
	const steps = 7
	prog := testProgram(t)
	want := trained(t, prog, how{Platform: machine(t, 1), Policy: "heft", Variant: "go"}, steps)
	for _, policy := range append(dynamicPolicies(), "at random") {
		for _, percent := range []int64{80, 60} {
			t.Run(fmt.Sprintf("%s in %d%%", policy, percent), func(t *testing.T) {
				evictions := 0
				for seed := range uint64(3) {
					p := node(t, 1, 2)
					for i := range p.Links {
						p.Links[i].Latency = 100 * time.Microsecond
					}
					p.Devices[0].FlopsPerSec["float32"] = 1e6 // so that whoever estimates prefers a GPU
					opt := how{Platform: tightened(t, p, prog, percent), Policy: policy, Variant: "go", Options: Options{Hooks: testHooks(nil), Poison: true}}
					if policy == "at random" {
						opt.Policy = "eager"
					}
					r := newRunner(t, prog, opt)
					if policy == "at random" {
						r.decision.Policy.Dynamic = func(*schedule.Problem) schedule.Policy {
							return &anywhere{rng: rand.New(rand.NewPCG(seed, 17))}
						}
					}
					delayKernels(r, seed)
					evictions += trainWith(t, r, steps, policy != "at random")
					if weights(r) != want {
						t.Errorf("seed %d: the weights differ from those of one core", seed)
					}
					r.Close()
				}
				if policy == "dmda" && evictions == 0 { // others give a GPU what it happens to be idle for
					t.Error("nothing was evicted")
				}
			})
		}
	}
}

// launchCounter is a driver that counts what was launched.
type launchCounter struct {
	driver
	launched atomic.Int64
}

func (d *launchCounter) launch(s streamID, l launchID) error {
	defer d.launched.Add(1)
	return d.driver.launch(s, l)
}

// TestADeviceHasItsNextTask: of three tasks that can run on a GPU at once, each but the last
// does not end before one more than have begun has been launched. It never would be, were
// the device given its next task when it has ended the one before.
func TestADeviceHasItsNextTask(t *testing.T) {
	n := &net{b: dag.NewBuilder("ahead"), bufs: map[string]dag.BufferID{}}
	n.data()
	n.buffer("pos", dag.Float32, dag.Activation, testHidden, testFeatures)
	n.buffer("sign", dag.Uint8, dag.Activation, testHidden, testFeatures)
	const tasks = 3
	for k := range tasks {
		kernels.Add(n.b, dag.Task{Name: fmt.Sprint("relu", k), Op: "relu", Type: dag.Float32, Placement: &dag.Placement{Device: "gpu0"},
			Accesses: []dag.Access{n.access(dag.Write, "pos", k, k+1), n.access(dag.Write, "sign", k, k+1), n.access(dag.Read, "w1", k, k+1)}})
	}
	g, err := n.b.Build()
	if err != nil {
		t.Fatal(err)
	}
	prog := &dag.Program{Name: "ahead", Graphs: []*dag.Graph{g}}
	for _, policy := range dynamicPolicies() {
		r := newRunner(t, prog, how{Platform: node(t, 1, 1), Policy: policy})
		d := r.devices[1]
		counter := &launchCounter{driver: d.driver}
		d.driver = counter
		var begun atomic.Int64
		for _, c := range counter.driver.(*emulated).calls {
			run := c.run
			c.run = func(k *kernels.Call) {
				want := min(begun.Add(1)+1, tasks)
				for looks := 0; counter.launched.Load() < want; looks++ { // no time: the computer may stand still
					if time.Sleep(time.Millisecond); looks == 10_000 {
						t.Errorf("%s: %d tasks were launched when %d had begun", policy, counter.launched.Load(), begun.Load())
						break
					}
				}
				run(k)
			}
		}
		if _, err := r.Run(context.Background(), 0, 1, true); err != nil {
			t.Fatal(err)
		}
		if begun.Load() != tasks {
			t.Errorf("%s: %d tasks ran", policy, begun.Load())
		}
	}
}

// delayKernels lets every third call or so of the emulated devices begin later.
func delayKernels(r *Runner, seed uint64) {
	for m, d := range r.devices {
		if d == nil {
			continue
		}
		for i, c := range d.driver.(*emulated).calls {
			run, rng := c.run, rand.New(rand.NewPCG(seed, uint64(m*1000+i)))
			c.run = func(k *kernels.Call) {
				if rng.IntN(3) == 0 {
					time.Sleep(time.Duration(rng.IntN(200)) * time.Microsecond)
				}
				run(k)
			}
		}
	}
}

// trainWith does what trained does with a runner and counts evictions. What moves for
// nobody may move when its last use has ended and the Engine has not heard of it, to which
// the check of a schedule objects.
func trainWith(t *testing.T, r *Runner, steps int, check bool) (evictions int) {
	t.Helper()
	for _, run := range [][2]int{{0, steps}, {1, 2}, {0, 2}} {
		s, err := r.Run(context.Background(), run[0], run[1], true)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Check(r.Problem(run[0], run[1])); check && err != nil {
			t.Error(err)
		}
		evictions += len(s.Evictions)
	}
	return evictions
}

// TestPoliciesMeetDeviceFaults: a device that is lost, or out of memory, while a policy
// decides ends the run with a task of it, the device and the state named.
func TestPoliciesMeetDeviceFaults(t *testing.T) {
	prog := testProgram(t)
	for _, c := range []struct {
		kind  string
		want  error // wrapped
		state string
	}{{platform.FaultLost, errDeviceLost, "issued and not done"}, {platform.FaultMemory, errDeviceMemory, "not issued"}} {
		p := node(t, 1, 1)
		p.Devices[0].FlopsPerSec["float32"] = 1e6 // so that the policy prefers the GPU
		p.Devices[1].Fault = platform.DeviceFault{Kind: c.kind, After: 40}
		r := newRunner(t, prog, how{Platform: p, Policy: "dmda", Options: Options{Hooks: testHooks(nil)}})
		_, err := r.Run(context.Background(), 0, 50, true)
		var fault *TaskError
		if !errors.As(err, &fault) || !errors.Is(err, c.want) {
			t.Fatalf("error %v, want one of a task that wraps %q", err, c.want)
		}
		if fault.Device != "gpu0" || fault.State != c.state || fault.Task == "" {
			t.Errorf("fault %+v", fault)
		}
		_, err = r.Run(context.Background(), 0, 2, true)
		if lost := c.want == errDeviceLost; lost != (err != nil) {
			t.Errorf("the next run: %v", err)
		}
	}
}

// TestPoliciesOnDevicesAllocateLittle counts allocations over 300 steps: less than one in ten
// steps, for what of the Engine's lists still grows.
func TestPoliciesOnDevicesAllocateLittle(t *testing.T) {
	const first, last, most = 50, 350, 30
	prog := testProgram(t)
	for _, policy := range dynamicPolicies() {
		opt := how{Platform: node(t, 1, 1), Policy: policy}
		if least := leastAllocations(t, prog, opt, first, last, false, most); least > most {
			t.Errorf("%s: %d allocations in %d steps", policy, least, last-first)
		}
	}
}
