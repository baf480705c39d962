package place

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"dahl/dag"
	"dahl/must"
	"dahl/platform"
	"dahl/platforms/testmachine"
)

// twoGPUs is a host and two devices, joined to it and to each other.
func twoGPUs(t *testing.T) *platform.Platform {
	t.Helper()
	p := testmachine.Node(t, testmachine.CPU(1), testmachine.GPU("a"), testmachine.GPU("b"))
	p.Routes = append(p.Routes, platform.Route{From: 1, To: 2, Links: []platform.LinkID{0}})
	must.Do(t, p.Complete())
	return p
}

// TestPlaceEvictsTwice: x has two rows of 64 bytes, both written on device a, of which b has
// the second one. By the plan each memory holds 192 bytes, so that both give theirs up while
// they work on what else fills them, 128 and 192 bytes. Each row goes home from a for that:
// two copies of one storage after one task. Their names differ, and the recorded plan gives
// the same again.
func TestPlaceEvictsTwice(t *testing.T) {
	b := dag.NewBuilder("rows")
	ns := []dag.Cost{{Key: dag.AnyDevice, Ns: 5}}
	x := b.Buffer(dag.Buffer{Name: "x", Shape: []int{2, 64}, Type: dag.Uint8})
	row := func(i int) dag.Access {
		return dag.Access{Region: dag.Region{Buffer: x, Box: dag.Box{{Lo: i, Hi: i + 1}, {Lo: 0, Hi: 64}}}, Mode: dag.Read}
	}
	b.Task(dag.Task{Name: "w", Costs: ns, Accesses: []dag.Access{access(x, dag.Write)}})
	plan := &Input{Order: [][]dag.TaskID{nil, {0}, nil}}
	for i, bytes := range []int{128, 192} {
		device := []string{"a", "b"}[i]
		full := b.Buffer(dag.Buffer{Name: "full " + device, Shape: []int{bytes}, Type: dag.Uint8})
		for _, task := range []dag.Task{{Name: "first ", Accesses: []dag.Access{row(i)}}, {Name: "fill ", Accesses: []dag.Access{access(full, dag.Write)}},
			{Name: "use ", Accesses: []dag.Access{access(full, dag.Read)}}, {Name: "again ", Accesses: []dag.Access{row(i)}}} {
			task.Name, task.Costs = task.Name+device, ns
			plan.Order[1+i] = append(plan.Order[1+i], b.Task(task))
		}
	}
	g := must.Get(b.Build())(t)
	p := twoGPUs(t)
	prog := &dag.Program{Name: "rows", Graphs: []*dag.Graph{g}}
	free := must.Get(placeAll(prog, p, []*Input{plan}, nil))(t)
	plan.Spill = &SpillPlan{Memories: []SpillLimit{{"a.mem", 192}, {"b.mem", 192}}}
	for id := range dag.TaskID(free.Graphs[0].NumTasks()) {
		plan.Spill.Order = append(plan.Spill.Order, free.Graphs[0].Name(id))
	}
	placed := must.Get(placeAll(prog, p, []*Input{plan}, nil))(t)
	recorded := &Input{Order: plan.Order, Written: placed.Written(0)}
	var evicted []string
	for _, engine := range recorded.Transfers {
		for _, c := range engine.Transfers {
			if c.Reason == ReasonEvict {
				evicted = append(evicted, c.Name)
			}
		}
	}
	slices.Sort(evicted)
	if want := []string{"evict x from a.mem after w", "evict x from a.mem after w #2"}; !slices.Equal(evicted, want) {
		t.Errorf("evicted %q, want %q", evicted, want)
	}
	mustLinkTheSame(t, placed.Graphs[0].Links, graphOf(t, placed.Graphs[0]))
	again, err := placeAll(prog, p, []*Input{recorded}, nil)
	if err != nil || !reflect.DeepEqual(again.Written(0), recorded.Written) {
		t.Errorf("placed again it is another plan (%v)", err)
	}
}

// TestCompareCopies: copies are ordered as by their names.
func TestCompareCopies(t *testing.T) {
	pairs := 0
	for seed := range uint64(300) {
		placed, rng := randomPlaced(t, seed)
		p, plan := squeezed(t, placed, rng)
		if little, err := placeAll(placed.Origin, p, []*Input{plan}, nil); err == nil {
			placed = little
		}
		pg := placed.Graphs[0]
		for a, m := range pg.Moves() {
			for b, other := range pg.Moves() {
				if m == nil || other == nil {
					continue
				}
				x, y := dag.TaskID(a), dag.TaskID(b)
				if got, want := pg.Compare(x, y), strings.Compare(pg.Name(x), pg.Name(y)); got != want {
					t.Fatalf("seed %d: %q and %q compare as %d", seed, pg.Name(x), pg.Name(y), got)
				}
				pairs++
			}
		}
	}
	if pairs < 10_000 {
		t.Errorf("%d pairs: the test tests little", pairs)
	}
}

// TestGraphRefusesNames: a buffer of the origin that is called as another one's replica is
// replayed, but cannot be written out.
func TestGraphRefusesNames(t *testing.T) {
	b := dag.NewBuilder("names")
	ns := []dag.Cost{{Key: dag.AnyDevice, Ns: 5}}
	x := b.Buffer(dag.Buffer{Name: "x", Shape: []int{7}, Type: dag.Uint8})
	y := b.Buffer(dag.Buffer{Name: "x@gpu.mem", Shape: []int{7}, Type: dag.Uint8})
	b.Task(dag.Task{Name: "w", Costs: ns, Accesses: []dag.Access{access(x, dag.Write), access(y, dag.Write)}})
	b.Task(dag.Task{Name: "r", Costs: ns, Accesses: []dag.Access{access(x, dag.Read)}})
	g := must.Get(b.Build())(t)
	p := hostAndGPU(t, 0)
	placed := must.Get(placeAll(&dag.Program{Graphs: []*dag.Graph{g}}, p, []*Input{{Order: [][]dag.TaskID{{0}, nil, {1}}}}, nil))(t)
	if _, err := placed.Graphs[0].Graph(); err == nil || !strings.Contains(err.Error(), `"x@gpu.mem" is declared twice`) {
		t.Errorf("the graph is written out: %v", err)
	}
}

// TestLayoutsOfManyTasks: of a graph of many tasks buffers lie apart where there is room, in layouts that are made when they are
// asked for. Each of 8,194 tasks writes 64 bytes that the next one reads. The last two are on the gpu,
// where they write 128 bytes and read 64 more, 192 in all. With less room the first and the last of the three share 64 bytes, and
// each of the two tasks needs two.
func TestLayoutsOfManyTasks(t *testing.T) {
	b := dag.NewBuilder("many")
	plan := &Input{Order: [][]dag.TaskID{nil, nil, nil}}
	last := dag.None
	for i := range manyTasks + 2 {
		y := b.Buffer(dag.Buffer{Name: fmt.Sprint("y", i), Shape: []int{64}, Type: dag.Uint8})
		task := dag.Task{Name: fmt.Sprint("t", i), Costs: []dag.Cost{{Key: dag.AnyDevice, Ns: 5}}, Accesses: []dag.Access{access(y, dag.Write)}}
		if last != dag.None {
			task.Accesses = append(task.Accesses, access(last, dag.Read))
		}
		w := 0
		if i >= manyTasks {
			w = 2
		}
		plan.Order[w] = append(plan.Order[w], b.Task(task))
		last = y
	}
	g := must.Get(b.Build())(t)
	prog := &dag.Program{Graphs: []*dag.Graph{g}}
	for gpuBytes, want := range map[int64]int64{0: 192, 192: 192, 191: 128, 128: 128, 127: 0} {
		placed, err := placeAll(prog, hostAndGPU(t, gpuBytes), []*Input{plan}, nil)
		if room := (*RoomError)(nil); want == 0 && !errors.As(err, &room) || want > 0 && err != nil {
			t.Fatalf("%d bytes: %v", gpuBytes, err)
		}
		if want == 0 {
			continue
		}
		apart := want == 192
		again, excess, err := placed.layOut(apart)
		if err != nil || excess != nil {
			t.Fatal(err)
		}
		got := placed.Layouts()[0]
		if orders := len(got[1].Reuse) + len(got[1].ReuseNext); !reflect.DeepEqual(got, again[0]) || got[1].TotalBytes() != want || apart != (orders == 0) {
			t.Errorf("%d bytes: %d in the gpu, want %d; %d orders", gpuBytes, got[1].ArenaBytes, want, orders)
		}
	}
}
