package conformance

import (
	"testing"

	"dahl/must"
	"dahl/nn/models"
	"dahl/plan/best"
	"dahl/plan/problem"
	"dahl/platform"
	"dahl/platforms"
	"dahl/train"
)

// TestSmallMemories: where a memory is too small for a step, a search joins the loss with the last layer, recomputes layers or takes micro-batches. On cores there is no other
// plan, and the one that was found keeps to the memory. A GPU could evict: the plan that was found takes less time than the best one that does. Weights, gradients and the two moments
// of gpt-tiny have 4 bytes for each of its 834,304 parameters, 13.3 MB in all, and the 64 positions of 16 samples keep 34.7 MB for the backward pass (dahl graph).
func TestSmallMemories(t *testing.T) {
	for _, c := range []struct {
		machine, devices string
		bytes            int64
		evicts           bool
		nodes            int // 1: the first plan, with its evictions, takes them all
	}{{"laptop", "cpu:2", 40e6, false, 1000}, {"server", "gpu0", 40e6, true, 1000}, {"server", "gpu0", 40e6, true, 1}} {
		p := must.Get(platforms.Load(c.machine))(t)
		for i := range p.Memories {
			if m := &p.Memories[i]; !c.evicts || platform.MemoryID(i) != p.HostMemory() {
				m.CapacityBytes = c.bytes
			}
		}
		const batch = 16
		w := &train.Workload{Model: must.Get(models.ByName("gpt-tiny"))(t), Platform: p, Samples: train.Samples{Train: batch},
			Options: train.Options{OtherMachine: true, Batch: batch}}
		must.Do(t, w.Lower())
		s := must.Get(w.Space(p, c.devices, must.Get(w.Tiles())(t)...))(t)
		o := best.Options{Aim: problem.Aim{Objective: problem.Time, Steady: true}, Nodes: c.nodes, Brief: true}
		found := must.Get(best.Find(t.Context(), &s.Space, o))(t)
		if found.Tiles.OfNetwork() == "" {
			t.Errorf("%s with %d nodes: %s keeps as many bytes as any lowering", c.machine, c.nodes, found.Choice)
		}
		placed := found.Evaluated.Decision.Placed
		for i, l := range placed.Layouts()[0] {
			bytes := int64(0)
			for _, arena := range l.ArenaBytes {
				bytes += arena
			}
			if most := placed.Platform.Memories[i].CapacityBytes; bytes > most {
				t.Errorf("%s: memory %d has %d bytes, and %s takes %d", c.machine, i, most, found.Choice, bytes)
			}
		}
		s.Smaller = nil
		other, err := best.Find(t.Context(), &s.Space, o)
		if !c.evicts && err == nil {
			t.Errorf("%s: %s fits", c.machine, other.Choice)
		}
		if c.evicts && (err != nil || !other.Evaluated.Decision.Placed.Graphs[0].Reloads() || found.Value >= other.Value) {
			t.Errorf("%s: %s takes %g s, and %v evicts and takes %g s", c.machine, found.Choice, found.Value, other.Choice, other.Value)
		}
	}
}
