package place

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"dahl/dag"
	"dahl/must"
	"dahl/platform"
	"dahl/platforms/testmachine"
	"dahl/schedule/layout"
)

// hostAndGPU is a node of two memories: a cpu of two cores and one emulated gpu.
func hostAndGPU(t testing.TB, gpuBytes int64) *platform.Platform {
	t.Helper()
	p := testmachine.Node(t, testmachine.CPU(2), testmachine.GPU("gpu"))
	p.Memories[1].CapacityBytes, p.Devices[1].CopyEnginesIn = gpuBytes, 2
	must.Do(t, p.Complete())
	return p
}

// trainingGraph feeds x on the host, multiplies it by v and w, and updates w; the
// evaluation only multiplies by w.
func trainingGraph(t *testing.T, name string, train bool) *dag.Graph {
	t.Helper()
	b := dag.NewBuilder(name)
	ns := []dag.Cost{{Key: dag.AnyDevice, Ns: 5}}
	v := b.Buffer(dag.Buffer{Name: "v", Shape: []int{100}, Type: dag.Uint8, Role: dag.Parameter})
	w := b.Buffer(dag.Buffer{Name: "w", Shape: []int{300}, Type: dag.Uint8, Role: dag.Parameter})
	x := b.Buffer(dag.Buffer{Name: "x", Shape: []int{70}, Type: dag.Uint8})
	y := b.Buffer(dag.Buffer{Name: "y", Shape: []int{130}, Type: dag.Uint8})
	b.Task(dag.Task{Name: "feed", Costs: ns, Accesses: []dag.Access{access(x, dag.Write)}})
	b.Task(dag.Task{Name: "multiply", Costs: ns, Accesses: []dag.Access{access(x, dag.Read), access(w, dag.Read), access(y, dag.Write)}})
	if train {
		b.Task(dag.Task{Name: "other", Costs: ns, Accesses: []dag.Access{access(x, dag.Read), access(v, dag.Read)}})
		b.Task(dag.Task{Name: "update", Costs: ns, Accesses: []dag.Access{access(y, dag.Read), access(w, dag.ReadWrite)}})
	}
	return must.Get(b.Build())(t)
}

func placeProgram(t *testing.T, p *platform.Platform, orders ...[][]dag.TaskID) (*Program, error) {
	t.Helper()
	prog := &dag.Program{Name: "training", Graphs: []*dag.Graph{trainingGraph(t, "train", true), trainingGraph(t, "evaluate", false)}}
	var plans []*Input
	for i := range prog.Graphs {
		plans = append(plans, &Input{Order: orders[i]})
	}
	return placeAll(prog, p, plans, [][]int64{{10, 20}, {30, 70}})
}

// TestPlaceProgram puts all but the feeding on the gpu, in both graphs: x goes there in
// every step, v and w before the first, w home after the last step of training. Of the
// evaluation nothing goes home. v and w lie at the same place in the gpu in both graphs,
// though the evaluation has no use for v.
func TestPlaceProgram(t *testing.T) {
	placed := must.Get(placeProgram(t, hostAndGPU(t, 0), [][]dag.TaskID{{0}, nil, {1, 2, 3}}, [][]dag.TaskID{{0}, nil, {1}}))(t)
	names := func(moves []*Move) string {
		var list []string
		for _, m := range moves {
			if m != nil {
				list = append(list, placed.Origin.Graphs[0].Buffers[m.Buffer].Name)
			}
		}
		return strings.Join(list, " ")
	}
	for i, want := range []struct{ moves, enter, leave string }{{"x", "w v", "w"}, {"x", "w", ""}} {
		pg := placed.Graphs[i]
		if names(pg.Moves()) != want.moves || names(pg.Enter) != want.enter || names(pg.Leave) != want.leave {
			t.Errorf("graph %d moves %q, before %q, after %q; want %v", i, names(pg.Moves()), names(pg.Enter), names(pg.Leave), want)
		}
		// v and w: 128 + 320 bytes. x and y of 70 and 130 bytes meet in multiply and
		// take 128 + 192. Scratch is 20 and 70 bytes, rounded up.
		if l := placed.Layouts()[i][1]; l.ArenaBytes != [layout.NumArenas]int64{layout.NetworkArena: 128 + 320, layout.StepArena: 128 + 192, layout.ScratchArena: int64(64 + 64*i)} {
			t.Errorf("graph %d: arenas of the gpu %d", i, l.ArenaBytes)
		}
		w, ok := graphOf(t, pg).BufferByName("w@gpu.mem")
		if !ok || placed.Layouts()[i][1].Offset(w) != 128 || placed.Layouts()[i][0].Offset(w) != layout.Elsewhere {
			t.Errorf("graph %d: w is not at 128 in the gpu", i)
		}
	}
	var lanes []string // the gpu limits its engines in one direction only
	for _, l := range placed.Lanes {
		lanes = append(lanes, l.Name)
	}
	if got := strings.Join(lanes, ", "); got != "cpu.0, cpu.1, gpu, gpu.mem in 0, gpu.mem in 1" {
		t.Errorf("lanes %s", got)
	}
}

// TestPlaceOnHost: what does not leave the host memory is the origin's own graph.
func TestPlaceOnHost(t *testing.T) {
	_, err := placeProgram(t, hostAndGPU(t, 1), [][]dag.TaskID{{0, 1}, {2, 3}}, [][]dag.TaskID{{0, 1}})
	if err == nil || !strings.Contains(err.Error(), `memory "gpu.mem" has 1 B`) {
		t.Errorf("scratch of 20 bytes in a memory of one: %v", err)
	}
	placed := must.Get(placeProgram(t, hostAndGPU(t, 1000), [][]dag.TaskID{{0, 1}, {2, 3}}, [][]dag.TaskID{{0, 1}}))(t)
	for i, pg := range placed.Graphs {
		if graphOf(t, pg) != placed.Origin.Graphs[i] || len(pg.Order) != len(placed.Lanes) || len(pg.Order[0]) != 2 {
			t.Errorf("graph %d is another, or its lists are %v", i, pg.Order)
		}
	}
}

// TestPlaceRefuses: multiply and update each need w, y and little else at once, 320 + 192
// bytes and 128 for x; with 128 of scratch in the evaluation a gpu of 767 bytes is one too
// small whatever leaves it, and one of 768 is enough when v leaves.
func TestPlaceRefuses(t *testing.T) {
	orders := [][][]dag.TaskID{{{0}, nil, {1, 2, 3}}, {{0}, nil, {1}}}
	if _, err := placeProgram(t, hostAndGPU(t, 767), orders...); err == nil || !strings.Contains(err.Error(), `memory "gpu.mem" has 767 B and would hold 768 B at least`) {
		t.Errorf("767 bytes: %v", err)
	}
	placed := must.Get(placeProgram(t, hostAndGPU(t, 768), orders...))(t)
	for i := range placed.Graphs {
		if n := placed.Layouts()[i][1].TotalBytes(); n > 768 {
			t.Errorf("graph %d takes %d bytes of the gpu", i, n)
		}
	}
	if !placed.Graphs[0].Reloads() {
		t.Error("nothing leaves and comes back")
	}
}

// TestPlaceRows: of a batch of 7 samples the gpu is given the last 3. Of x and of y, also
// seen as 7×10, its replicas have 3 rows, and the boxes of its task and of the copies
// count from the first of them; the host has all.
func TestPlaceRows(t *testing.T) {
	b := dag.NewBuilder("batch")
	ns := []dag.Cost{{Key: dag.AnyDevice, Ns: 5}}
	x := b.Buffer(dag.Buffer{Name: "x", Shape: []int{7, 11}, Type: dag.Float32})
	y := b.Buffer(dag.Buffer{Name: "y", Shape: []int{7, 2, 5}, Type: dag.Float32})
	flat := b.View("flat", y, 7, 10)
	b.Task(dag.Task{Name: "feed", Costs: ns, Accesses: []dag.Access{access(x, dag.Write)}})
	for i, rows := range []dag.Range{{Lo: 0, Hi: 4}, {Lo: 4, Hi: 7}} {
		b.Task(dag.Task{Name: []string{"first", "last"}[i], Costs: ns, Accesses: []dag.Access{
			{Region: dag.Region{Buffer: x, Box: dag.Box{rows, {Lo: 0, Hi: 11}}}, Mode: dag.Read},
			{Region: dag.Region{Buffer: flat, Box: dag.Box{rows, {Lo: 0, Hi: 10}}}, Mode: dag.Write}}})
	}
	b.Task(dag.Task{Name: "use", Costs: ns, Accesses: []dag.Access{access(y, dag.Read)}})
	g := must.Get(b.Build())(t)
	p := hostAndGPU(t, 0)
	placed := must.Get(placeAll(&dag.Program{Graphs: []*dag.Graph{g}}, p, []*Input{{Order: [][]dag.TaskID{{0, 1, 3}, nil, {2}}}}, nil))(t)
	pg := placed.Graphs[0]
	// 3 rows of 11 and of 10 floats: 132 and 120 bytes, rounded up to lines.
	if bytes := placed.Layouts()[0][1].ArenaBytes[layout.StepArena]; bytes != 192+128 {
		t.Errorf("%d bytes in the gpu", bytes)
	}
	g = graphOf(t, pg)
	task, ok := g.TaskByName("last")
	if !ok || g.Box(task, 0).String() != "0:3,0:11" || g.Box(task, 1).String() != "0:3,0:10" {
		t.Errorf("the task works on %v and %v", g.Box(task, 0), g.Box(task, 1))
	}
	for at, m := range pg.Moves() {
		if m == nil {
			continue
		}
		from, to := g.Box(dag.TaskID(at), 0)[0], g.Box(dag.TaskID(at), 1)[0]
		host, gpu := dag.Range{Lo: 4, Hi: 7}, dag.Range{Lo: 0, Hi: 3}
		if m.To == 1 && (from != host || to != gpu) || m.To == 0 && (from != gpu || to != host) {
			t.Errorf("%s moves rows %v to %v", g.Tasks[at].Name, from, to)
		}
	}
}

// TestPlaceJoins: four tasks on the gpu read a row of 44 bytes each. On a way of 1 byte/ns with a latency of 400 ns up to 100 bytes go together: the rows of the first two readers, and
// those of the others. With a latency of 40 ns each row goes by itself. A plan that lists its transfers has the same ones with the other latency.
func TestPlaceJoins(t *testing.T) {
	b := dag.NewBuilder("batch")
	ns := []dag.Cost{{Key: dag.AnyDevice, Ns: 5}}
	x := b.Buffer(dag.Buffer{Name: "x", Shape: []int{4, 11}, Type: dag.Float32})
	b.Task(dag.Task{Name: "feed", Costs: ns, Accesses: []dag.Access{access(x, dag.Write)}})
	for i, name := range []string{"a", "b", "c", "d"} {
		b.Task(dag.Task{Name: name, Costs: ns, Accesses: []dag.Access{{Region: dag.Region{Buffer: x, Box: dag.Box{{Lo: i, Hi: i + 1}, {Lo: 0, Hi: 11}}}, Mode: dag.Read}}})
	}
	g := must.Get(b.Build())(t)
	at := func(latency time.Duration) *platform.Platform {
		p := hostAndGPU(t, 0)
		p.Links[0].BandwidthBytesPerSec, p.Links[0].Latency = 1e9, latency
		return p
	}
	moved := func(p *platform.Platform, written Written) (names string, is Written) {
		plan := &Input{Order: [][]dag.TaskID{{0}, nil, {1, 2, 3, 4}}, Written: written}
		placed := must.Get(placeAll(&dag.Program{Graphs: []*dag.Graph{g}}, p, []*Input{plan}, nil))(t)
		for _, m := range placed.Graphs[0].Moves() {
			if m != nil {
				names += fmt.Sprintf("%d for %s, ", m.Bytes, g.Tasks[m.For].Name)
			}
		}
		return names, placed.Written(0)
	}
	for _, c := range []struct {
		latency, other time.Duration
		want           string
	}{{400, 40, "88 for a, 88 for c, "}, {40, 400, "44 for a, 44 for b, 44 for c, 44 for d, "}} {
		names, written := moved(at(c.latency), Written{})
		again, _ := moved(at(c.other), written)
		if names != c.want || again != c.want {
			t.Errorf("latency %v: %s; by this plan with a latency of %v: %s", c.latency, names, c.other, again)
		}
	}
}

// TestPlaceConstants: two tasks on the gpu read 100 bytes each that nothing writes, and it
// has room for one. Both come in every step, and nothing goes back: the host has them.
// Where the gpu could not send anything back the platform is refused all the same, since
// no order of what leaves is looked for that sends nothing.
func TestPlaceConstants(t *testing.T) {
	b := dag.NewBuilder("constants")
	for _, name := range []string{"a", "b"} {
		id := b.Buffer(dag.Buffer{Name: name, Shape: []int{100}, Type: dag.Uint8, Role: dag.Input, Home: dag.HostHome})
		b.Task(dag.Task{Name: "read " + name, Costs: []dag.Cost{{Key: dag.AnyDevice, Ns: 5}}, Accesses: []dag.Access{access(id, dag.Read)}})
	}
	g := must.Get(b.Build())(t)
	for _, oneWay := range []bool{false, true} {
		p := hostAndGPU(t, 128)
		p.Routes[0].OneWay, p.Devices[1].Unreachable = oneWay, oneWay
		must.Do(t, p.Complete())
		placed, err := placeAll(&dag.Program{Graphs: []*dag.Graph{g}}, p, []*Input{{Order: [][]dag.TaskID{nil, nil, {0, 1}}}}, nil)
		if oneWay {
			if err == nil || !strings.Contains(err.Error(), `no route from memory "gpu.mem" to "ram"`) {
				t.Errorf("without a way back: %v", err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		pg := placed.Graphs[0]
		var in int
		for _, m := range pg.Moves() {
			if m != nil && m.Reason == ReasonReload {
				in++
			}
		}
		if in != 2 || pg.NumTasks() != 4 || len(pg.Enter)+len(pg.Leave) > 0 {
			t.Errorf("%d come in, %d tasks, %d moves before and %d after", in, pg.NumTasks(), len(pg.Enter), len(pg.Leave))
		}
	}
}

// TestPlaceFitsGraphsTogether: the graphs share the arenas, so that each is as large as the
// graph that needs most of it. Training takes 448 bytes of the network, 320 of a step and 64
// of scratch, 832; the evaluation, on the host, 128 of scratch: 896 together. In a gpu of
// 832 something has to leave, though either graph fits.
func TestPlaceFitsGraphsTogether(t *testing.T) {
	for _, capacity := range []int64{832, 895, 896} {
		placed := must.Get(placeProgram(t, hostAndGPU(t, capacity), [][]dag.TaskID{{0}, nil, {1, 2, 3}}, [][]dag.TaskID{{0, 1}, nil, nil}))(t)
		var whole layout.Layout
		for i := range placed.Graphs {
			for a, bytes := range placed.Layouts()[i][1].ArenaBytes {
				whole.ArenaBytes[a] = max(whole.ArenaBytes[a], bytes)
			}
		}
		if n := whole.TotalBytes(); n > capacity {
			t.Errorf("%d bytes: the arenas take %d", capacity, n)
		}
		if reloads := placed.Graphs[0].Reloads(); reloads != (capacity < 896) {
			t.Errorf("%d bytes: contents leave and come back is %v", capacity, reloads)
		}
	}
}
