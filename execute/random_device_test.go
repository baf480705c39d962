package execute

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"dahl/dag"
	"dahl/platform"
	"dahl/schedule"
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
	if err := p.Complete(); err != nil {
		t.Fatal(err)
	}
	return p
}

// randomPlanOn puts the tasks on random workers of a platform in the order of a random
// topological sort, but what the caller does on the first core.
func randomPlanOn(g *dag.Graph, p *platform.Platform, rng *rand.Rand) *schedule.Plan {
	plan := &schedule.Plan{Policy: "random", Order: make([][]dag.TaskID, len(p.Workers))}
	for _, t := range randomPlan(g, 1, rng.Uint64()).Order[0] {
		w := rng.IntN(len(p.Workers))
		if k, ok := operation(g.Tasks[t].Op); ok && k.Host {
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
	ran, left := 0, 0 // runners, and storages that leave and come back in a step
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
		}
		if got := trained(t, prog, opt, steps); got != want {
			t.Errorf("seed %d: the weights differ from those of one core", seed)
		}
		if got := unrecorded(t, newRunner(t, prog, opt), steps); got != want {
			t.Errorf("seed %d, not recorded: the weights differ from those of one core", seed)
		}
	}
	if ran < seeds/2 || left == 0 {
		t.Errorf("%d of %d ran, in which %d storages came back", ran, seeds, left)
	}
}
