package simulate

import (
	"fmt"
	"testing"
	"time"

	"dahl/dag"
	"dahl/must"
	"dahl/platforms/testmachine"
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
