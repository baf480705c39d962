package layout

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"dahl/dag"
	"dahl/must"
	"dahl/platform"
)

func access(b dag.BufferID, m dag.Mode) dag.Access {
	return dag.Access{Region: dag.Region{Buffer: b}, Mode: m}
}

// chainGraph passes activations of the given sizes in bytes along a chain: task i
// reads buffer i-1 and writes buffer i. The parameter w is read by the first and
// updated by the last task.
func chainGraph(t testing.TB, sizes ...int) *dag.Graph {
	t.Helper()
	b := dag.NewBuilder("chain")
	w := b.Buffer(dag.Buffer{Name: "w", Shape: []int{100}, Type: dag.Uint8, Role: dag.Parameter, Home: "host"})
	data := b.Buffer(dag.Buffer{Name: "data", Shape: []int{10}, Type: dag.Uint8, Role: dag.Input, Home: "host"})
	last := data
	for i, size := range sizes {
		next := b.Buffer(dag.Buffer{Name: fmt.Sprintf("x%d", i), Shape: []int{size}, Type: dag.Uint8})
		task := dag.Task{Name: fmt.Sprintf("t%d", i), Accesses: []dag.Access{access(last, dag.Read), access(next, dag.Write)}}
		if i == 0 {
			task.Accesses = append(task.Accesses, access(w, dag.Read))
		}
		b.Task(task)
		last = next
	}
	b.Task(dag.Task{Name: "update", Accesses: []dag.Access{access(last, dag.Read), access(w, dag.ReadWrite)}})
	return must.Get(b.Build())(t)
}

// TestLayoutChain: of a chain of activations only two neighbours are live at once,
// so x0 and x2 share and x1 and x3 share. With sizes of 64, 128, 192 and 128
// bytes: x2 goes first to 0..192; x1 and x3, next in size, conflict with it and
// lie above it, at 192..320, together; x0 conflicts with x1 only and fits under
// x2 at 0. 320 bytes in place of 512. The update of w, which ends the chain, is
// waited for by the next step's first task, so the graph orders the steps and no
// further edge is needed.
func TestLayoutChain(t *testing.T) {
	g := chainGraph(t, 64, 128, 192, 128)
	prog := &dag.Program{Name: "p", Graphs: []*dag.Graph{g}}
	ls := must.Get(Program(prog, []int64{70}))(t)
	l := ls[0]
	want := map[string]int64{"w": 0, "data": 0, "x0": 0, "x1": 192, "x2": 0, "x3": 192}
	for i, b := range g.Buffers {
		if l.Offset(dag.BufferID(i)) != want[b.Name] {
			t.Errorf("%s at %d, want %d", b.Name, l.Offset(dag.BufferID(i)), want[b.Name])
		}
	}
	// 100 and 10 bytes rounded up to 64; 70 bytes of scratch to 128.
	if want := [NumArenas]int64{128, 64, 320, 128}; l.ArenaBytes != want || l.SavedBytes != 512-320 {
		t.Errorf("arenas %d, saved %d; want %d, %d", l.ArenaBytes, l.SavedBytes, want, 512-320)
	}
	if len(l.Reuse)+len(l.ReuseNext) > 0 {
		t.Errorf("edges %v, %v; the graph gives them all", l.Reuse, l.ReuseNext)
	}
	if err := l.Check(g); err != nil {
		t.Error(err)
	}
}

// TestLayoutNextStep: x is dead before y in a step, but nothing in the graph
// keeps x of the next step from being written while y of this one is still read.
func TestLayoutNextStep(t *testing.T) {
	b := dag.NewBuilder("two")
	x := b.Buffer(dag.Buffer{Name: "x", Shape: []int{64}, Type: dag.Uint8})
	z := b.Buffer(dag.Buffer{Name: "z", Shape: []int{1}, Type: dag.Uint8})
	y := b.Buffer(dag.Buffer{Name: "y", Shape: []int{64}, Type: dag.Uint8})
	b.Task(dag.Task{Name: "a", Accesses: []dag.Access{access(x, dag.Write)}})
	b.Task(dag.Task{Name: "b", Accesses: []dag.Access{access(x, dag.Read), access(z, dag.Write)}})
	b.Task(dag.Task{Name: "c", Accesses: []dag.Access{access(z, dag.Read), access(y, dag.Write)}})
	b.Task(dag.Task{Name: "d", Accesses: []dag.Access{access(y, dag.Read)}})
	g := must.Get(b.Build())(t)
	ls := must.Get(Program(&dag.Program{Graphs: []*dag.Graph{g}}, nil))(t)
	l := ls[0]
	if l.Offset(x) != l.Offset(y) || l.SavedBytes != 64 {
		t.Errorf("x at %d, y at %d, saved %d; they can share", l.Offset(x), l.Offset(y), l.SavedBytes)
	}
	// d is the last user of y, a the first of x.
	if want := (dag.Edge{From: 3, To: 0}); len(l.Reuse) != 0 || len(l.ReuseNext) != 1 || l.ReuseNext[0] != want {
		t.Errorf("edges %v, %v; want only %v into the next step", l.Reuse, l.ReuseNext, want)
	}
	if err := l.Check(g); err != nil {
		t.Error(err)
	}
	l.ReuseNext = nil
	if l.Check(g) == nil {
		t.Error("Check accepts the layout without its edge")
	}
}

// TestLayoutViewsOfInputs: a placed graph lists views of inputs behind the buffers that it knows to be written or not. They lie where their input does.
func TestLayoutViewsOfInputs(t *testing.T) {
	in := inOneMemory(chainGraph(t, 64, 128))
	data := dag.BufferID(1)
	view := in.Buffers[data]
	view.Name, view.ViewOf, view.Shape = "data in pieces", data, []int{2, 5}
	in.Buffers, in.Memory = append(in.Buffers, view), append(in.Memory, 0)
	l := must.Get(Memories("p", []*Graph{in}, make([]platform.Memory, 1)))(t)[0][0]
	if last := dag.BufferID(len(in.Buffers) - 1); l.Arena(last) != DataArena || l.Offset(last) != l.Offset(data) {
		t.Errorf("the view lies at %d of arena %s, and its input at %d of arena %s", l.Offset(last), l.Arena(last), l.Offset(data), l.Arena(data))
	}
}

// randomLoop is a random graph of activations with a parameter or two.
func randomLoop(t *testing.T, r *rand.Rand) *dag.Graph {
	b := dag.NewBuilder("loop")
	var readable []dag.BufferID
	for i := range 1 + r.IntN(2) {
		readable = append(readable, b.Buffer(dag.Buffer{Name: fmt.Sprintf("w%d", i), Shape: []int{1 + r.IntN(300)}, Type: dag.Uint8, Role: dag.Parameter}))
	}
	parameters := len(readable)
	for i := range 2 + r.IntN(24) {
		task := dag.Task{Name: fmt.Sprintf("t%d", i)}
		first := r.IntN(len(readable))
		mode := dag.Read
		if first < parameters && r.IntN(3) == 0 {
			mode = dag.ReadWrite
		}
		task.Accesses = append(task.Accesses, access(readable[first], mode))
		if second := len(readable) - 1 - r.IntN(min(3, len(readable))); second != first {
			task.Accesses = append(task.Accesses, access(readable[second], dag.Read))
		}
		x := b.Buffer(dag.Buffer{Name: fmt.Sprintf("x%d", i), Shape: []int{1 + r.IntN(300)}, Type: dag.Uint8})
		readable = append(readable, x)
		task.Accesses = append(task.Accesses, access(x, dag.Write))
		b.Task(task)
	}
	return must.Get(b.Build())(t)
}

// layOutByPlan lays a graph out with what the order of a plan allows to share; nil: no plan.
func layOutByPlan(g *dag.Graph, order [][]dag.TaskID) (*Layout, error) {
	in := inOneMemory(g)
	in.Order = order
	ls, err := Memories("p", []*Graph{in}, make([]platform.Memory, 1))
	if err != nil {
		return nil, err
	}
	ls[0][0].FindOrders()
	return ls[0][0], nil
}

// randomOrder deals the tasks of a graph to one to three workers, in program order, which the dependences allow.
func randomOrder(r *rand.Rand, g *dag.Graph) [][]dag.TaskID {
	order := make([][]dag.TaskID, 1+r.IntN(3))
	for i := range g.Tasks {
		w := r.IntN(len(order))
		order[w] = append(order[w], dag.TaskID(i))
	}
	return order
}

// TestLayoutRandom compares layouts of random loops with the definition, by
// brute force, without a plan and with a random one.
func TestLayoutRandom(t *testing.T) {
	var saved, savedByPlan, edges int64
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 7))
		g := randomLoop(t, r)
		for _, order := range [][][]dag.TaskID{nil, randomOrder(r, g)} {
			l := must.Get(layOutByPlan(g, order))(t)
			if err := l.Check(g); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			if order == nil {
				saved += l.SavedBytes
				if len(l.Reuse) > 0 {
					t.Fatalf("seed %d: edges %v without a plan", seed, l.Reuse)
				}
			} else {
				savedByPlan += l.SavedBytes
				edges += int64(len(l.Reuse))
			}
		}
	}
	if saved == 0 || savedByPlan <= saved || edges == 0 {
		t.Errorf("saved %d bytes by the graph and %d by plans with %d edges; a plan allows more", saved, savedByPlan, edges)
	}
}

// TestLayoutShared: the graphs of a program find the parameters and the data at
// the same place, whichever of them they use.
func TestLayoutShared(t *testing.T) {
	full := chainGraph(t, 64, 64)
	b := dag.NewBuilder("eval")
	data := b.Buffer(dag.Buffer{Name: "test", Shape: []int{5}, Type: dag.Uint8, Role: dag.Input, Home: "host"})
	w := b.Buffer(dag.Buffer{Name: "w", Shape: []int{100}, Type: dag.Uint8, Role: dag.Parameter, Home: "host"})
	b.Task(dag.Task{Name: "e", Accesses: []dag.Access{access(data, dag.Read), access(w, dag.Read)}})
	eval := must.Get(b.Build())(t)
	ls := must.Get(Program(&dag.Program{Graphs: []*dag.Graph{full, eval}}, nil))(t)
	// Data: "data" before "test", 64 bytes each.
	if ls[0].Offset(1) != 0 || ls[1].Offset(data) != 64 || ls[1].Offset(w) != ls[0].Offset(0) {
		t.Errorf("data %d, test %d, w %d and %d", ls[0].Offset(1), ls[1].Offset(data), ls[0].Offset(0), ls[1].Offset(w))
	}
	for i, l := range ls {
		if l.ArenaBytes[NetworkArena] != 128 || l.ArenaBytes[DataArena] != 128 {
			t.Errorf("graph %d: arenas %d", i, l.ArenaBytes)
		}
	}
}
