package simulate

import (
	"fmt"
	"testing"
	"time"

	"dahl/dag"
	"dahl/must"
	"dahl/platform"
	"dahl/platforms/testmachine"
	"dahl/schedule"
	"dahl/schedule/policy"
)

// TestDMDAWeighsTransfers: the gpu takes 10 ns and the cpu 80. The operand is in
// ram, and the link takes 10 ns and one more for each byte. With 59 bytes the gpu
// ends at 69 + 10 = 79, before the cpu; with 61 at 81, after it; with 60 both end at
// 80 and the tie goes to the lower index, the cpu.
func TestDMDAWeighsTransfers(t *testing.T) {
	for bytes, want := range map[int]string{59: "gpu", 60: "cpu", 61: "cpu"} {
		b := dag.NewBuilder("one")
		x := b.Buffer(dag.Buffer{Name: "x", Shape: []int{bytes}, Type: dag.Uint8, Role: dag.Input, Home: "host"})
		b.Task(dag.Task{Name: "t", Accesses: []dag.Access{whole(x, dag.Read)}, Costs: []dag.Cost{{Key: "cpu", Ns: 80}, {Key: "gpu", Ns: 10}}})
		g := must.Get(b.Build())(t)
		p := problem(t, g, twoMemories(t), 1)
		s := must.Get(run(p, how{policy: dynamic(t, "dmda")}))(t)
		if got := p.Platform.Workers[s.Spans[0].Worker].Name; got != want {
			t.Errorf("%d bytes: on %s, want %s", bytes, got, want)
		}
	}
}

// TestDMDAQueues: three independent tasks, 10 ns on either of two cores, are ready at
// once. The first two go to one core each; the third expects both free at 10
// and goes to the first.
func TestDMDAQueues(t *testing.T) {
	b := dag.NewBuilder("three")
	for _, name := range []string{"a", "b", "c"} {
		b.Task(dag.Task{Name: name, Costs: []dag.Cost{{Key: "cpu", Ns: 10}}})
	}
	g := must.Get(b.Build())(t)
	p := problem(t, g, testmachine.Node(t, testmachine.CPU(2)), 1)
	s := must.Get(run(p, how{policy: dynamic(t, "dmda")}))(t)
	got := ""
	for _, span := range s.Spans {
		got += fmt.Sprint(g.Tasks[span.Task].Name, " ", span.Worker, " ", int64(span.Start), "; ")
	}
	if want := "a 0 0; b 1 0; c 0 10; "; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// TestEagerOrder: one core takes ready tasks by priority, then by name, and a task
// of the step before goes first whatever its priority.
func TestEagerOrder(t *testing.T) {
	b := dag.NewBuilder("order")
	for _, task := range []dag.Task{{Name: "d"}, {Name: "b"}, {Name: "c", Priority: 1}, {Name: "a", Priority: -1}} {
		task.Costs = []dag.Cost{{Key: "cpu", Ns: 1}}
		b.Task(task)
	}
	g := must.Get(b.Build())(t)
	p := problem(t, g, testmachine.Node(t, testmachine.CPU(1)), 2)
	s := must.Get(run(p, how{policy: dynamic(t, "eager")}))(t)
	got := ""
	for _, span := range s.Spans {
		got += g.Tasks[span.Task].Name
	}
	if want := "cbdacbda"; got != want {
		t.Errorf("order %s, want %s", got, want)
	}
}

// TestDispatch: with 2 ns of dispatch before each kernel, a chain of 5 and 7 runs
// from 2 to 7 and from 9 to 16.
func TestDispatch(t *testing.T) {
	b := dag.NewBuilder("chain")
	first := b.Task(dag.Task{Name: "a", Costs: []dag.Cost{{Key: "cpu", Ns: 5}}})
	b.Task(dag.Task{Name: "b", Costs: []dag.Cost{{Key: "cpu", Ns: 7}}, After: []dag.TaskID{first}})
	g := must.Get(b.Build())(t)
	pl := testmachine.Node(t, testmachine.CPU(1))
	pl.Devices[0].Dispatch = 2
	p := problem(t, g, pl, 1)
	for _, info := range policy.All() {
		s := runPolicy(t, p, info)
		a, b := s.Spans[0], s.Spans[1]
		if got, want := [6]time.Duration{a.Ready, a.Start, a.End, b.Ready, b.Start, b.End}, [6]time.Duration{0, 2, 7, 7, 9, 16}; got != want {
			t.Errorf("%s: %d, want %d", info.Doc().Name, got, want)
		}
	}
}

// orderOf is the names of the tasks of one worker, in the order in which they start.
func orderOf(p *schedule.Problem, s *schedule.Schedule, w platform.WorkerID) string {
	names := ""
	for _, span := range s.Spans {
		if span.Worker == w {
			names += p.Graph.Tasks[span.Task].Name
		}
	}
	return names
}

// TestDMDASByPriority: a, x and y are ready at once on one core, and b when a has ended. dmda takes b last, and dmdas next, as it is the most urgent task.
func TestDMDASByPriority(t *testing.T) {
	b := dag.NewBuilder("priorities")
	cost := []dag.Cost{{Key: "cpu", Ns: 3}}
	first := b.Task(dag.Task{Name: "a", Costs: cost, Priority: 1})
	b.Task(dag.Task{Name: "b", Costs: cost, Priority: 1, After: []dag.TaskID{first}})
	b.Task(dag.Task{Name: "x", Costs: cost, Priority: -1})
	b.Task(dag.Task{Name: "y", Costs: cost})
	g := must.Get(b.Build())(t)
	p := problem(t, g, testmachine.Node(t, testmachine.CPU(1)), 1)
	for name, want := range map[string]string{"dmda": "ayxb", "dmdas": "abyx"} {
		if got := orderOf(p, must.Get(run(p, how{policy: dynamic(t, name)}))(t), 0); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

// TestDMDASByRank: where no task has a priority, the longest way to the end decides: c, of 1 ns, with d of 5 behind it has 6, then come d, a of 4 and b of 2.
func TestDMDASByRank(t *testing.T) {
	b := dag.NewBuilder("ranks")
	task := func(name string, ns int64, after ...dag.TaskID) dag.TaskID {
		return b.Task(dag.Task{Name: name, Costs: []dag.Cost{{Key: "cpu", Ns: ns}}, After: after})
	}
	task("a", 4)
	task("b", 2)
	task("d", 5, task("c", 1))
	g := must.Get(b.Build())(t)
	p := problem(t, g, testmachine.Node(t, testmachine.CPU(1)), 1)
	for name, want := range map[string]string{"dmda": "abcd", "dmdas": "cdab"} {
		if got := orderOf(p, must.Get(run(p, how{policy: dynamic(t, name)}))(t), 0); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

// TestFewestMissing: the gpu's tasks a and b are ready when c has ended. x, which a reads, was written in the host's memory, and y, which b
// reads, by c. dmda takes a first, by its name. dmdar and dmdas take b first, since no byte of y is missing.
func TestFewestMissing(t *testing.T) {
	b := dag.NewBuilder("missing")
	x := b.Buffer(dag.Buffer{Name: "x", Shape: []int{50}, Type: dag.Uint8})
	y := b.Buffer(dag.Buffer{Name: "y", Shape: []int{40}, Type: dag.Uint8})
	gpu := []dag.Cost{{Key: "gpu", Ns: 10}}
	b.Task(dag.Task{Name: "d", Costs: []dag.Cost{{Key: "cpu", Ns: 5}}, Accesses: []dag.Access{whole(x, dag.Write)}})
	first := b.Task(dag.Task{Name: "c", Costs: gpu, Accesses: []dag.Access{whole(y, dag.Write)}})
	b.Task(dag.Task{Name: "a", Costs: gpu, Accesses: []dag.Access{whole(x, dag.Read)}, After: []dag.TaskID{first}})
	b.Task(dag.Task{Name: "b", Costs: gpu, Accesses: []dag.Access{whole(y, dag.Read)}})
	g := must.Get(b.Build())(t)
	p := problem(t, g, twoMemories(t), 1)
	for name, want := range map[string]string{"dmda": "cab", "dmdar": "cba", "dmdas": "cba"} {
		s := must.Get(dynamic(t, name).Plan(p))(t)
		got := ""
		for _, task := range s.Order[1] {
			got += g.Tasks[task].Name
		}
		if got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

// TestWorkStealing: a and b go to the two cores in turn. b ends at 9 and releases x and y, both of 10 ns, for its core; a ends at 10 and releases z for
// its own, which takes z although y comes before it by name and is ready. The second core takes y at 19. Without z the first core steals y at 10.
func TestWorkStealing(t *testing.T) {
	for with, want := range map[bool][2]string{true: {"az", "bxy"}, false: {"ay", "bx"}} {
		b := dag.NewBuilder("two cores")
		task := func(name string, ns int64, after ...dag.TaskID) dag.TaskID {
			return b.Task(dag.Task{Name: name, Costs: []dag.Cost{{Key: "cpu", Ns: ns}}, After: after})
		}
		first, second := task("a", 10), task("b", 9)
		task("x", 10, second)
		task("y", 10, second)
		if with {
			task("z", 10, first)
		}
		g := must.Get(b.Build())(t)
		p := problem(t, g, testmachine.Node(t, testmachine.CPU(2)), 1)
		s := must.Get(run(p, how{policy: dynamic(t, "lws")}))(t)
		if got := [2]string{orderOf(p, s, 0), orderOf(p, s, 1)}; got != want {
			t.Errorf("with z %v: %q, want %q", with, got, want)
		}
	}
}

// TestNearestVictim: nine tasks go to two cores and a gpu in turn. The first core is busy with a, and the gpu with c, until all others are
// done. Of its own tasks the gpu was told f as well. The second core does b, e and h, which are its own. It steals from the other core until nothing is left
// there, and i from the gpu last, though the gpu comes next by number.
func TestNearestVictim(t *testing.T) {
	b := dag.NewBuilder("thief")
	for _, name := range []string{"a", "b", "c", "d", "e", "f", "g", "h", "i"} {
		cost := []dag.Cost{{Key: "cpu", Ns: 1}, {Key: "gpu", Ns: 100}}
		if name == "a" {
			cost[0].Ns = 100
		}
		b.Task(dag.Task{Name: name, Costs: cost})
	}
	g := must.Get(b.Build())(t)
	p := problem(t, g, testmachine.Node(t, testmachine.CPU(2), testmachine.GPU("gpu")), 1)
	s := must.Get(run(p, how{policy: dynamic(t, "lws")}))(t)
	if got, want := [3]string{orderOf(p, s, 0), orderOf(p, s, 1), orderOf(p, s, 2)}, [3]string{"a", "behdgi", "cf"}; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
