package simulate

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"dahl/dag"
	"dahl/must"
	"dahl/platform"
	"dahl/platforms/testmachine"
	"dahl/schedule"
	"dahl/schedule/audit"
	"dahl/schedule/policy"
)

func whole(b dag.BufferID, m dag.Mode) dag.Access {
	return dag.Access{Region: dag.Region{Buffer: b}, Mode: m}
}

// twoLayers is a loop of two independent layers: fast updates u in 1 ns, slow
// updates v in 10 ns.
func twoLayers(t *testing.T) *dag.Graph {
	b := dag.NewBuilder("layers")
	for _, layer := range []struct {
		name string
		ns   int64
	}{{"fast", 1}, {"slow", 10}} {
		x := b.Buffer(dag.Buffer{Name: "w." + layer.name, Shape: []int{1}, Type: dag.Float32, Role: dag.Parameter})
		b.Task(dag.Task{Name: layer.name, Accesses: []dag.Access{whole(x, dag.ReadWrite)}, Costs: []dag.Cost{{Key: "cpu", Ns: layer.ns}}})
	}
	g := must.Get(b.Build())(t)
	return g
}

// TestStepsOverlap: a step does not wait for the one before. The fast layer of
// step k+1 follows only itself, so with a core for each layer it is at step 6 when
// the slow one still runs step 0: fast starts at 0, 1, 2, …, slow at 0, 10, 20, ….
func TestStepsOverlap(t *testing.T) {
	p := problem(t, twoLayers(t), testmachine.Node(t, testmachine.CPU(2)), 6)
	s := must.Get(run(p, how{policy: dynamic(t, "eager")}))(t)
	must.Do(t, audit.Check(s, p))
	each := map[string]time.Duration{"fast": 1, "slow": 10}
	for _, span := range s.Spans {
		name := p.Graph.Tasks[span.Task].Name
		if want := time.Duration(span.Step) * each[name]; span.Start != want {
			t.Errorf("%s of step %d starts at %d, want %d", name, span.Step, span.Start, want)
		}
	}
	// The step ends are those of slow, 10 apart.
	if s.Makespan != 60 || s.FirstStep != 10 || s.Period != 10 {
		t.Errorf("makespan %d, first step %d, period %d", s.Makespan, s.FirstStep, s.Period)
	}
	if bound := lowerBound(t, p); bound != 60 {
		t.Errorf("lower bound %d; slow alone takes 60", bound)
	}
}

// TestReuseEdges: in two layers that are independent in the graph, an edge of
// each kind holds slow back until fast has ended, and the next fast until slow
// has: the steps follow each other, 11 ns each. The bound knows nothing of such edges: slow
// alone takes 5 × 10.
func TestReuseEdges(t *testing.T) {
	p := problem(t, twoLayers(t), testmachine.Node(t, testmachine.CPU(2)), 5)
	fast, _ := p.Graph.TaskByName("fast")
	slow, _ := p.Graph.TaskByName("slow")
	p.Reuse, p.ReuseNext = []dag.Edge{{From: fast, To: slow}}, []dag.Edge{{From: slow, To: fast}}
	for _, info := range policy.All() {
		s := runPolicy(t, p, info)
		if err := audit.Check(s, p); err != nil {
			t.Fatalf("%s: %v", info.Doc().Name, err)
		}
		if bound := lowerBound(t, p); s.Makespan != 55 || bound != 50 {
			t.Errorf("%s: makespan %d, bound %d, want 55 and 50", info.Doc().Name, s.Makespan, bound)
		}
		s.Spans[1].Start--
		if audit.Check(s, p) == nil {
			t.Errorf("%s: slow starts before fast ended, and Check says nothing", info.Doc().Name)
		}
	}
}

// TestMeasuredDurations: durations that are given replace the costs. Slow takes 2
// more in every odd step: 3 × 10 + 3 × 12.
func TestMeasuredDurations(t *testing.T) {
	p := problem(t, twoLayers(t), testmachine.Node(t, testmachine.CPU(2)), 6)
	slow, _ := p.Graph.TaskByName("slow")
	s, err := run(p, how{policy: dynamic(t, "dmda"), Options: Options{Durations: func(i dag.Instance, _ platform.WorkerID) (time.Duration, bool) {
		return 12, i.Task == slow && i.Step%2 == 1
	}}})
	if err != nil {
		t.Fatal(err)
	}
	if s.Makespan != 66 {
		t.Errorf("makespan %d, want 66", s.Makespan)
	}
}

// TestCapacity: the gpu of the ping-pong holds w, x and y of 40 bytes at once. A plan gives each buffer a
// place of its own, aligned to 64 bytes: 192.
func TestCapacity(t *testing.T) {
	pl := twoMemories(t)
	p := problem(t, pingPong(t), pl, 3)
	pl.Memories[1].CapacityBytes = 192
	plan := must.Get(policy.HEFT.Plan(p))(t)
	runPlan(t, p, plan)
	pl.Memories[1].CapacityBytes = 191
	if _, err := run(p, how{plan: plan}); err == nil || !strings.Contains(err.Error(), `memory "gpu.mem" has 191 B and would hold 192 B`) {
		t.Errorf("in 191 bytes: %v", err)
	}
}

// lazy never gives a worker anything.
type lazy struct{}

func (lazy) Ready(*policy.View, dag.Instance) platform.WorkerID { return policy.Undecided }
func (lazy) Next(*policy.View, platform.WorkerID) (dag.Instance, bool) {
	return dag.Instance{}, false
}

// rogue hands out what it likes.
type rogue struct{ i dag.Instance }

func (rogue) Ready(*policy.View, dag.Instance) platform.WorkerID { return policy.Undecided }
func (r rogue) Next(*policy.View, platform.WorkerID) (dag.Instance, bool) {
	return r.i, true
}

// assigner puts every task on one worker.
type assigner struct{ w platform.WorkerID }

func (a assigner) Ready(*policy.View, dag.Instance) platform.WorkerID { return a.w }
func (assigner) Next(*policy.View, platform.WorkerID) (dag.Instance, bool) {
	return dag.Instance{}, false
}

// TestErrors: what cannot run ends in an error that says so.
func TestErrors(t *testing.T) {
	p := problem(t, pingPong(t), twoMemories(t), 2)
	failing := func(h how) func() error {
		return func() error { _, err := run(p, h); return err }
	}
	homeless := *p
	homeless.Graph = pingPong(t)
	homeless.Graph.Buffers[0].Home = "attic"
	apart := *p
	apart.Platform = twoMemories(t)
	apart.Platform.Routes = []platform.Route{{From: 1, To: 0, Links: []platform.LinkID{0}, OneWay: true}}
	apart.Platform.Devices[1].Unreachable = true
	must.Do(t, apart.Platform.Complete())
	for want, do := range map[string]func() error{
		`left tasks of graph "ping-pong"`: failing(how{policy: by(lazy{})}),
		"which is not ready":              failing(how{policy: by(rogue{dag.Instance{Task: 1}})}),
		"task -1 of step 0":               failing(how{policy: by(rogue{dag.Instance{Task: -1}})}),
		"task 0 of step 7":                failing(how{policy: by(rogue{dag.Instance{Task: 0, Step: 7}})}),
		"task 99 of step 7":               failing(how{policy: by(rogue{dag.Instance{Task: 99, Step: 7}})}),
		`worker "gpu", which cannot`:      failing(how{policy: by(assigner{1})}),
		"worker 9, which does not exist":  failing(how{policy: by(assigner{9})}),
		"leaves out":                      failing(how{plan: &schedule.Plan{}}),
		`home "attic" is not a mem`: func() error {
			_, err := run(&homeless, how{plan: &schedule.Plan{Order: planOf(t, p).Order}})
			return err
		},
		"no route": func() error {
			_, err := run(&apart, how{policy: dynamic(t, "eager")})
			return err
		},
	} {
		if err := do(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
}

// TestNoAllocationInASteadyStep drives an engine through 100 steps more and finds
// no more allocations: on one memory a step needs none.
func TestNoAllocationInASteadyStep(t *testing.T) {
	for _, name := range []string{"eager", "lws", "dmda", "dmdar", "dmdas"} {
		p := problem(t, layered(t, 6, 8), testmachine.Node(t, testmachine.CPU(3)), 4000)
		var now time.Duration
		e := must.Get(policy.NewEngine(p, dynamic(t, name).Start(p), func() time.Duration { return now }))(t)
		var queue []platform.WorkerID // each task ends in the order of its start
		cmds := e.Start(make([]policy.Command, 0, 64))
		step := func() {
			for range len(p.Graph.Tasks) {
				for _, c := range cmds {
					queue = append(queue, c.Worker)
				}
				if len(queue) == 0 {
					return
				}
				now += 5
				w := queue[0]
				copy(queue, queue[1:])
				queue = queue[:len(queue)-1]
				cmds = e.Done(w, cmds[:0])
			}
		}
		for range 50 {
			step()
		}
		if n := testing.AllocsPerRun(100, step); n > 0 {
			t.Errorf("%s: %g allocations in a step", name, n)
		}
		if e.Finished() || e.Err() != nil {
			t.Errorf("%s: finished %v, %v", name, e.Finished(), e.Err())
		}
	}
}

// layered is a network of layers of tiles: each task reads two tiles of the layer
// before and writes its own, and the last layer updates the parameter that the
// first reads.
func layered(t testing.TB, layers, width int) *dag.Graph {
	t.Helper()
	b := dag.NewBuilder("layered")
	w := b.Buffer(dag.Buffer{Name: "w", Shape: []int{width}, Type: dag.Float32, Role: dag.Parameter})
	tile := func(b dag.BufferID, i int, m dag.Mode) dag.Access {
		return dag.Access{Region: dag.Region{Buffer: b, Box: dag.Box{{Lo: i, Hi: i + 1}}}, Mode: m}
	}
	last := w
	for l := range layers {
		x := b.Buffer(dag.Buffer{Name: fmt.Sprintf("x%d", l), Shape: []int{width}, Type: dag.Float32})
		for i := range width {
			task := dag.Task{Name: fmt.Sprintf("l%06d.t%04d", l, i), Op: "op", Costs: []dag.Cost{{Key: "cpu", Ns: int64(1000 + 10*(i%7))}},
				Accesses: []dag.Access{tile(last, i, dag.Read), tile(x, i, dag.Write)}}
			if j := (i + 1) % width; j != i {
				task.Accesses = append(task.Accesses, tile(last, j, dag.Read))
			}
			b.Task(task)
		}
		last = x
	}
	for i := range width {
		b.Task(dag.Task{Name: fmt.Sprintf("update.t%04d", i), Op: "sgd", Costs: []dag.Cost{{Key: "cpu", Ns: 100}},
			Accesses: []dag.Access{tile(w, i, dag.ReadWrite), tile(last, i, dag.Read)}})
	}
	g := must.Get(b.Build())(t)
	return g
}

// TestReplayOfEager: on one memory eager starts a task as soon as its worker and
// its predecessors allow, and so does a replay of its plan: the same spans.
func TestReplayOfEager(t *testing.T) {
	p := problem(t, layered(t, 5, 7), testmachine.Node(t, testmachine.CPU(3)), 1)
	eager := must.Get(run(p, how{policy: dynamic(t, "eager")}))(t)
	again := must.Get(run(p, how{plan: schedule.PlanFrom(eager, "eager", p.Graph)}))(t)
	if !slices.EqualFunc(eager.Spans, again.Spans, func(a, b schedule.Span) bool {
		return a.Task == b.Task && a.Worker == b.Worker && a.Start == b.Start && a.End == b.End
	}) {
		t.Errorf("the replay differs")
	}
}

// BenchmarkComputeOnly measures the simulator without transfers.
func BenchmarkComputeOnly(b *testing.B) {
	p := problem(b, layered(b, 2000, 50), testmachine.Node(b, testmachine.CPU(8)), 1)
	for _, name := range []string{"eager", "dmda"} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, err := run(p, how{policy: dynamic(b, name)}); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.N*len(p.Graph.Tasks))/b.Elapsed().Seconds(), "tasks/s")
		})
	}
}

// TestNoTimeKeepsOrder: a worker runs b and then a, as planned, both at 0 and in no time. The
// schedule and what is written down of it have them in this order, although a comes first by name.
func TestNoTimeKeepsOrder(t *testing.T) {
	b := dag.NewBuilder("no time")
	cpu := []dag.Cost{{Key: "cpu"}}
	first, second := b.Task(dag.Task{Name: "a", Costs: cpu}), b.Task(dag.Task{Name: "b", Costs: cpu})
	g := must.Get(b.Build())(t)
	p := problem(t, g, twoMemories(t), 2)
	plan := &schedule.Plan{Order: [][]dag.TaskID{{second, first}, nil}}
	s := runPlan(t, p, plan)
	if err := audit.Follows(s, p, plan); err != nil {
		t.Error(err)
	}
	if got := schedule.PlanFrom(s, "replay", g).Order[0]; !slices.Equal(got, plan.Order[0]) {
		t.Errorf("written down as %d, planned as %d", got, plan.Order[0])
	}
}
