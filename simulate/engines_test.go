package simulate

import (
	"math/rand/v2"
	"strings"
	"testing"

	"dahl/dag"
	"dahl/must"
	"dahl/platform"
	"dahl/platforms/testmachine"
	"dahl/schedule"
	"dahl/schedule/audit"
	"dahl/schedule/explain"
)

// TestEnginesByDirection: an engine for each direction. While y comes for the last task of the
// gpu, which alone can run it, the cpu fetches v: the two copies do not wait for each other. With
// the same engines, two copies out of the gpu do.
func TestEnginesByDirection(t *testing.T) {
	pl := twoMemories(t)
	pl.Devices[1].CopyEnginesIn, pl.Devices[1].CopyEnginesOut = 1, 1
	b := dag.NewBuilder("both ways")
	v := b.Buffer(dag.Buffer{Name: "v", Shape: []int{40}, Type: dag.Uint8})
	w := b.Buffer(dag.Buffer{Name: "w", Shape: []int{40}, Type: dag.Uint8})
	y := b.Buffer(dag.Buffer{Name: "y", Shape: []int{40}, Type: dag.Uint8, Role: dag.Input, Home: "host"})
	gpu, cpu := []dag.Cost{{Key: "gpu", Ns: 10}}, []dag.Cost{{Key: "cpu", Ns: 10}}
	first := b.Task(dag.Task{Name: "a", Costs: gpu, Accesses: []dag.Access{whole(v, dag.Write), whole(w, dag.Write)}})
	b.Task(dag.Task{Name: "b", Costs: cpu, Accesses: []dag.Access{whole(v, dag.Read), whole(w, dag.Read)}})
	b.Task(dag.Task{Name: "c", Costs: gpu, Accesses: []dag.Access{whole(y, dag.Read)}, After: []dag.TaskID{first}})
	g := must.Get(b.Build())(t)
	p := problem(t, g, pl, 1)
	want := "y enter 0-50, v prefetch 10-60, w prefetch 60-110"
	if got := moves(p, runChecked(t, p, dynamic(t, "eager"))); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// twoGPUs are two devices with one copy engine in each direction, on links to the host
// on which a byte takes 1 ns after 10 ns of latency, whatever else moves.
func twoGPUs(t testing.TB) *platform.Platform {
	t.Helper()
	p := testmachine.Node(t, testmachine.CPU(1), testmachine.GPU("g1"), testmachine.GPU("g2"))
	for i := range p.Devices[1:] {
		p.Devices[1+i].CopyEnginesIn, p.Devices[1+i].CopyEnginesOut = 1, 1
	}
	p.Links[0].Latency, p.Links[0].Sharing = 10, platform.Fatpipe
	must.Do(t, p.Complete())
	return p
}

// TestPeerCopies: two gpus with one engine in each direction. x is on the first, and
// tasks on the second and on the cpu read it at once. A direct link between the gpus
// needs only the engine of the one that reads; a way through the host's memory needs the
// engine out of the first too, for which the two copies wait in turn.
func TestPeerCopies(t *testing.T) {
	for _, direct := range []bool{true, false} {
		pl, want := twoGPUs(t), "x enter 0-50, x enter 50-100"
		if direct {
			pl.Routes = append(pl.Routes, platform.Route{From: 1, To: 2, Links: []platform.LinkID{0}})
			want = "x enter 0-50, x enter 0-50"
		}
		must.Do(t, pl.Complete())
		b := dag.NewBuilder("peers")
		x := b.Buffer(dag.Buffer{Name: "x", Shape: []int{40}, Type: dag.Uint8, Role: dag.Input, Home: "g1.mem"})
		b.Task(dag.Task{Name: "a", Costs: []dag.Cost{{Key: "cpu", Ns: 10}}, Accesses: []dag.Access{whole(x, dag.Read)}})
		b.Task(dag.Task{Name: "b", Costs: []dag.Cost{{Key: "g2", Ns: 10}}, Accesses: []dag.Access{whole(x, dag.Read)}})
		g := must.Get(b.Build())(t)
		p := problem(t, g, pl, 1)
		if got := moves(p, runChecked(t, p, dynamic(t, "eager"))); got != want {
			t.Errorf("direct %v: %s, want %s", direct, got, want)
		}
	}
}

// TestCopiesToSecondProcessor: the second device is a processor, which says nothing of
// engines, with a direct link to the first. What the first makes in 10 ns, its only engine
// out takes to both processors, one after the other in 50 ns each; the last reader takes 10 ns. A
// plan and a policy agree.
func TestCopiesToSecondProcessor(t *testing.T) {
	pl := twoGPUs(t)
	pl.Devices[2].Kind, pl.Devices[2].CopyEnginesIn, pl.Devices[2].CopyEnginesOut = "cpu", 0, 0
	pl.Routes = append(pl.Routes, platform.Route{From: 1, To: 2, Links: []platform.LinkID{0}})
	must.Do(t, pl.Complete())
	b := dag.NewBuilder("processors")
	x := b.Buffer(dag.Buffer{Name: "x", Shape: []int{40}, Type: dag.Uint8})
	for _, task := range []struct {
		device string
		mode   dag.Mode
	}{{"g1", dag.Write}, {"cpu", dag.Read}, {"g2", dag.Read}} {
		b.Task(dag.Task{Name: "on " + task.device, Costs: []dag.Cost{{Key: task.device, Ns: 10}}, Accesses: []dag.Access{whole(x, task.mode)}})
	}
	g := must.Get(b.Build())(t)
	p := problem(t, g, pl, 1)
	planned := must.Get(run(p, how{plan: &schedule.Plan{Order: [][]dag.TaskID{{1}, {0}, {2}}}}))(t)
	for _, s := range []*schedule.Schedule{planned, runChecked(t, p, dynamic(t, "eager"))} {
		if err := audit.Check(s, p); err != nil || s.Makespan != 10+2*50+10 {
			t.Errorf("%s in %v, want 120ns (%v)", moves(p, s), s.Makespan, err)
		}
	}
}

// TestEntryBesideTheFirstStep: one engine brings a's v of 40 bytes, the w of 200 for which b
// waits behind a, and x of 40, which the host makes for a in 10 ns. Though w could come from the
// beginning on, x comes before it: v to 50, x to 100, w to 310. a runs at 100, b at 310, to 320.
// In the second step x alone comes: it is made at 20, may come when a has read the first at 110,
// and the engine is free at 310; w comes once.
func TestEntryBesideTheFirstStep(t *testing.T) {
	pl := twoMemories(t)
	pl.Devices[1].CopyEnginesIn = 1
	b := dag.NewBuilder("entry")
	buffer := func(name string, bytes int, role dag.Role, home string) dag.BufferID {
		return b.Buffer(dag.Buffer{Name: name, Shape: []int{bytes}, Type: dag.Uint8, Role: role, Home: home})
	}
	v, w, x := buffer("v", 40, dag.Input, "host"), buffer("w", 200, dag.Input, "host"), buffer("x", 40, dag.Activation, "")
	cpu, gpu := []dag.Cost{{Key: "cpu", Ns: 10}}, []dag.Cost{{Key: "gpu", Ns: 10}}
	b.Task(dag.Task{Name: "make", Costs: cpu, Accesses: []dag.Access{whole(x, dag.Write)}})
	b.Task(dag.Task{Name: "a", Costs: gpu, Accesses: []dag.Access{whole(v, dag.Read), whole(x, dag.Read)}})
	b.Task(dag.Task{Name: "b", Costs: gpu, Accesses: []dag.Access{whole(w, dag.Read)}})
	g := must.Get(b.Build())(t)
	for steps, want := range map[int]string{1: "v enter 0-50, x prefetch 50-100, w enter 100-310", 2: "v enter 0-50, x prefetch 50-100, w enter 100-310, x prefetch 310-360"} {
		p := problem(t, g, pl, steps)
		s := must.Get(run(p, how{plan: &schedule.Plan{Order: [][]dag.TaskID{{0}, {1, 2}}}}))(t)
		if err := audit.Check(s, p); err != nil || moves(p, s) != want || s.FirstStep != 320 {
			t.Errorf("%d steps: %s, the first in %v; want %s, 320ns (%v)", steps, moves(p, s), s.FirstStep, want, err)
		}
	}
}

// TestManyEngines: with more engines than there are copies a run is the same as with
// engines without number, and with one each it stands up to Check.
func TestManyEngines(t *testing.T) {
	transfers := 0
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 3))
		pl := randomPlatform(t, r)
		tasks := randomGraph(r, pl)
		p := problem(t, tasks.build(t, inOrder(len(tasks.tasks))), pl, 3)
		for _, name := range []string{"eager", "lws", "dmda", "dmdar", "dmdas"} {
			with := func(engines int) *schedule.Schedule {
				for d := range pl.Devices {
					pl.Devices[d].CopyEnginesIn, pl.Devices[d].CopyEnginesOut = engines, engines
				}
				return runChecked(t, p, dynamic(t, name))
			}
			unlimited, many := byName(p, with(0)), byName(p, with(256))
			if unlimited != many {
				t.Fatalf("seed %d, %s: with many engines it differs:\n%s\n%s", seed, name, unlimited, many)
			}
			transfers += len(with(1).Transfers)
		}
	}
	if transfers == 0 {
		t.Error("nothing moved")
	}
}

// TestCheckRefusesEvictions breaks a sound schedule with evictions, and one in which the
// copies just have engines enough.
func TestCheckRefusesEvictions(t *testing.T) {
	pl := twoMemories(t)
	pl.Memories[1].CapacityBytes = 128
	pl.Devices[1].CopyEnginesIn, pl.Devices[1].CopyEnginesOut = 1, 1
	// There are two places of 64 bytes. w comes 0-50, a to 60; y comes 50-100 and w goes home, to leave at 110; x comes to its
	// place 110-160, b to 170; x leaves at 170, w comes again to 220, c to 230.
	p := problem(t, onGPU(t, "W", "xy", "w"), pl, 1)
	for want, spoil := range map[string]func(s *schedule.Schedule){
		"a second time":            func(s *schedule.Schedule) { s.Evictions = s.Evictions[1:] },
		"no other memory has it":   func(s *schedule.Schedule) { s.Evictions[0].At-- },
		"where it is not":          func(s *schedule.Schedule) { s.Evictions[1].At = 169 },
		"of 41 bytes":              func(s *schedule.Schedule) { s.Evictions[0].Bytes = 41 },
		"not of buffer":            func(s *schedule.Schedule) { s.Evictions[0].Atoms = s.Transfers[3].Atoms },
		"from memory 7":            func(s *schedule.Schedule) { s.Evictions[0].Memory = 7 },
		"has room for everything":  func(s *schedule.Schedule) { s.Evictions[0].Memory = 0 },
		"2 transfers into memory":  func(s *schedule.Schedule) { s.Transfers[1].End = 111 },
		"peaks of":                 func(s *schedule.Schedule) { s.Evictions[0].At = 111 },
		"eviction 0 drops it at 0": func(s *schedule.Schedule) { s.Evictions[0].At = 0 },
	} {
		s := must.Get(run(p, how{plan: &schedule.Plan{Order: [][]dag.TaskID{nil, {0, 1, 2}}}}))(t)
		must.Do(t, audit.Check(s, p))
		spoil(s)
		if err := audit.Check(s, p); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: Check says %v (%s)", want, err, moves(p, s))
		}
	}
}

// TestPathThroughAnEngine: the second gpu reads x from the first and y from ram, each of
// which takes 50 ns, with one engine in. The path to the end of its task goes through
// both copies, though they come on different ways: 50 + 50 + 10 ns.
func TestPathThroughAnEngine(t *testing.T) {
	pl := twoGPUs(t)
	pl.Routes = append(pl.Routes, platform.Route{From: 1, To: 2, Links: []platform.LinkID{0}})
	must.Do(t, pl.Complete())
	b := dag.NewBuilder("two sources")
	x := b.Buffer(dag.Buffer{Name: "x", Shape: []int{40}, Type: dag.Uint8, Role: dag.Input, Home: "g1.mem"})
	y := b.Buffer(dag.Buffer{Name: "y", Shape: []int{40}, Type: dag.Uint8, Role: dag.Input, Home: "ram"})
	b.Task(dag.Task{Name: "a", Costs: []dag.Cost{{Key: "g2", Ns: 10}}, Accesses: []dag.Access{whole(x, dag.Read), whole(y, dag.Read)}})
	g := must.Get(b.Build())(t)
	p := problem(t, g, pl, 1)
	s := runChecked(t, p, dynamic(t, "eager"))
	if got, want := moves(p, s), "x enter 0-50, y enter 50-100"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	path := explain.CriticalPath(p, s)
	if len(path) != 3 || path[0].Transfer != 0 || path[1].Transfer != 1 || path[1].Bound != explain.BoundBusy || path[2].Span != 0 {
		t.Errorf("critical path %+v, want both transfers and the task", path)
	}
}
