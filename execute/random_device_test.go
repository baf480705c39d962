package execute

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"dahl/dag"
	"dahl/kernels"
	"dahl/must"
	"dahl/platform"
	"dahl/schedule"
	"dahl/schedule/audit"
	"dahl/schedule/place"
)

// randomNode is a core or two beside one to three emulated GPUs of one or two units, with copy
// engines that are given or not, memories that hold some of the test network's storages, and
// links past the host between some of them.
func randomNode(t *testing.T, rng *rand.Rand) *platform.Platform {
	gpus := 1 + rng.IntN(3)
	p := node(t, 1+rng.IntN(2), gpus)
	for i := range gpus {
		d := &p.Devices[1+i]
		d.Count, d.CopyEnginesIn, d.CopyEnginesOut = 1+rng.IntN(2), rng.IntN(3), rng.IntN(3)
		p.Memories[d.Memory].CapacityBytes = int64(800 + rng.IntN(5000))
		for j := range i {
			if rng.IntN(2) == 0 {
				p.Routes = append(p.Routes, platform.Route{From: platform.MemoryID(1 + j), To: d.Memory, Links: []platform.LinkID{platform.LinkID(len(p.Links))}})
				p.Links = append(p.Links, platform.Link{Name: fmt.Sprintf("bridge%d%d", j, i), BandwidthBytesPerSec: 1e9})
			}
		}
	}
	must.Do(t, p.Complete())
	return p
}

// randomPlanOn puts the tasks on random workers of a platform in the order of a random
// topological sort, but what the caller does on the first core.
func randomPlanOn(g *dag.Graph, p *platform.Platform, rng *rand.Rand) *schedule.Plan {
	plan := &schedule.Plan{Policy: "random", Order: make([][]dag.TaskID, len(p.Workers))}
	for _, t := range randomPlan(g, 1, rng.Uint64()).Order[0] {
		w := rng.IntN(len(p.Workers))
		if k, err := kernels.KernelByName(g.Tasks[t].Op); err == nil && k.Host {
			w = 0
		}
		plan.Order[w] = append(plan.Order[w], t)
	}
	return plan
}

// TestRandomPlansOnRandomDevices: whatever devices there are and whatever is put where, in
// memories in which storages make room for each other, the weights are those of one core, in
// runs that are recorded and in others. What no order can make fit is refused before.
func TestRandomPlansOnRandomDevices(t *testing.T) {
	const steps, seeds = 5, 12
	prog := testProgram(t)
	want := trained(t, prog, how{Platform: machine(t, 1), Policy: "heft", Variant: "go"}, steps)
	ran, left, direct := 0, 0, 0 // runners, storages that leave and come back in a step, and moves past the host
	for seed := range uint64(seeds) {
		rng := rand.New(rand.NewPCG(seed, 37))
		opt := how{Platform: randomNode(t, rng), Variant: "go", Options: Options{Hooks: testHooks(nil)}}
		for _, g := range prog.Graphs {
			opt.Plans = append(opt.Plans, randomPlanOn(g, opt.Platform, rng))
		}
		r, err := newOn(prog, opt)
		if err != nil {
			if !strings.Contains(err.Error(), `memory "gpu`) {
				t.Errorf("seed %d: %v", seed, err)
			}
			continue
		}
		r.Close()
		ran++
		for _, m := range r.decision.Placed.Graphs[0].Moves() {
			if m != nil && m.Reason == place.ReasonReload {
				left++
			}
			if m != nil && m.From > 0 && m.To > 0 {
				direct++
			}
		}
		if got := trained(t, prog, opt, steps); got != want {
			t.Errorf("seed %d: the weights differ from those of one core", seed)
		}
		if got := unrecorded(t, newRunner(t, prog, opt), steps); got != want {
			t.Errorf("seed %d, not recorded: the weights differ from those of one core", seed)
		}
	}
	if ran < seeds/2 || left == 0 || direct == 0 {
		t.Errorf("%d of %d ran, in which %d storages came back and %d moves passed the host", ran, seeds, left, direct)
	}
}

// changesWeights is a step that the test below describes.
func changesWeights(t *testing.T, n int) *dag.Graph {
	t.Helper()
	b := &net{b: dag.NewBuilder("step"), bufs: map[string]dag.BufferID{}}
	b.buffer("d", dag.Float32, dag.Input, n)
	b.buffer("w", dag.Float32, dag.Parameter, n)
	b.buffer("sum", dag.Float32, dag.State, n)
	for _, name := range []string{"y", "c"} {
		b.buffer(name, dag.Float32, dag.Activation, n)
		b.buffer("mask."+name, dag.Uint8, dag.Activation, n)
	}
	b.task("add", "change", nil, b.access(dag.ReadWrite, "w"), b.access(dag.Read, "d"))
	b.task("relu", "first", nil, b.access(dag.Write, "y"), b.access(dag.Write, "mask.y"), b.access(dag.Read, "w"))
	b.task("relu", "fill", nil, b.access(dag.Write, "c"), b.access(dag.Write, "mask.c"), b.access(dag.Read, "y"))
	b.task("add", "again", nil, b.access(dag.ReadWrite, "c"), b.access(dag.Read, "w"))
	b.task("add", "total", nil, b.access(dag.ReadWrite, "sum"), b.access(dag.Read, "c"))
	return must.Get(b.b.Build())(t)
}

// TestWhatComesInEveryStep: in every step the host adds d to w, of 256 bytes, and then the GPU computes y as w where
// that is positive and c from y likewise, and adds w to c, which the host adds to sum. The GPU has 576 bytes, for w,
// y and its mask. While c is made, w, y, c and its mask are 832, so w leaves. It goes to the GPU twice in a step and
// is dropped twice, after either use. In step k, from 1 on, w is k times d, and sum grows by w and by max(w, 0): in two
// runs of four steps by 1 + 2 + … + 8 = 36 times d and max(d, 0).
func TestWhatComesInEveryStep(t *testing.T) {
	const steps, n = 4, 64
	g := changesWeights(t, n)
	w, _ := g.BufferByName("w")
	p := node(t, 1, 1)
	p.Memories[1].CapacityBytes = 576
	r := must.Get(newOn(&dag.Program{Name: "step", Graphs: []*dag.Graph{g}}, how{Platform: p, Variant: "go", Plans: []*schedule.Plan{{Order: [][]dag.TaskID{{0, 4}, {1, 2, 3}}}}}))(t)
	defer r.Close()
	d := r.Float32s("d")
	for i := range d {
		d[i] = float32(i - n/2)
	}
	s, err := r.Run(context.Background(), 0, steps, true)
	if err == nil {
		err = audit.Check(s, r.Problem(0, steps))
	}
	if err != nil {
		t.Fatal(err)
	}
	there, dropped := 0, 0
	for _, move := range s.Transfers {
		if move.Buffer == w && move.To == 1 {
			there++
		}
	}
	for _, e := range s.Evictions {
		if e.Buffer == w {
			dropped++
		}
	}
	if there != 2*steps || dropped != 2*steps {
		t.Errorf("in %d steps w goes to the GPU %d times and is dropped %d times", steps, there, dropped)
	}
	must.Get(r.Run(context.Background(), 0, steps, false))(t)
	for i, got := range r.Float32s("sum") {
		if want := 36 * (d[i] + max(d[i], 0)); got != want {
			t.Errorf("element %d of the sum is %v, want %v", i, got, want)
		}
	}
}
