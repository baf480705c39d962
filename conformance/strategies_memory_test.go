package conformance

import (
	"strings"
	"testing"

	"dahl/dag"
	"dahl/execute"
	"dahl/must"
	"dahl/plan/strategy"
	"dahl/platform"
	"dahl/schedule"
	"dahl/schedule/layout"
	"dahl/train"
)

// memoryOf are strategies by name for each line of the table that has networks. Folded steps are not executed.
var memoryOf = map[string][]string{
	"data-parallel":   {"data-parallel:3", "data-parallel:4:direct", "data-parallel:2+tensor-parallel:2", "data-parallel:2+1f1b:2x3"},
	"zero1":           {"zero1:4"},
	"tensor-parallel": {"tensor-parallel:3", "tensor-parallel:2+gpipe:2x2"},
	"spatial":         {"spatial:2"},
	"owt":             {"owt:4"},
	"gpipe":           {"gpipe:2x5", "gpipe:4x3"},
	"1f1b":            {"1f1b:2x5", "1f1b:3x4", "1f1b:4x5", "1f1b:3x5:stash"},
	"interleaved":     {"interleaved:2x2x4"},
	"megatron":        nil,
}

// TestMemoryOfStrategies: whatever strategy of the table lowers a network, the highest byte that its steps touch in each memory is the
// planned one, on cores and on emulated GPUs. A device whose share of a weight is along inputs
// keeps its rows whole, and may leave the end of the last row as it is. With 1f1b stage s of p holds at most p - s micro-batches at once, with stashed weights, too.
func TestMemoryOfStrategies(t *testing.T) {
	n := newNetwork(t, "digits-cnn", dag.Float32, 1)
	for _, line := range strategy.All() {
		names, known := memoryOf[line.Doc().Name]
		if line.OfNetworks() != known {
			t.Errorf("strategy %s: for networks %v, and with names here %v", line.Doc().Name, line.OfNetworks(), known)
		}
		for i, name := range names {
			for k, on := range []*platform.Platform{machine(t, 4), emulatedNode(t, 4)} {
				if testing.Short() && (i+k)%2 > 0 {
					continue
				}
				w := &train.Workload{Model: n.model, Platform: on, Options: train.Options{Batch: fixtureBatch, OtherMachine: true, Strategy: must.Get(strategy.ByName(name))(t)}}
				must.Do(t, w.Lower())
				n.lower(t, *w.Lowering)
				tr := &training{network: n}
				tr.open(t, how{platform: on, policy: w.Lowering.Order, poison: true}, map[string]execute.Hook{"feed": tr.feed, "fetch": tr.fetch})
				for _, seg := range n.prog.Order {
					tr.segment(t, seg)
				}
				if tr.checkHighWater(t, name); w.Lowering.Order == "1f1b" {
					tr.checkHeld(t, name, len(w.Lowering.Stages))
				}
				tr.runner.Close()
			}
		}
	}
}

// checkHighWater compares the bytes that were touched in each memory with those that were planned.
func (tr *training) checkHighWater(t *testing.T, what string) {
	t.Helper()
	p := tr.decision.Priced.Platform
	for m := range p.Memories {
		var planned [layout.NumArenas]int64
		for g := range tr.prog.Graphs {
			if l := tr.decision.Layouts(g)[m]; l != nil {
				for a, bytes := range l.ArenaBytes {
					planned[a] = max(planned[a], layout.Align(bytes))
				}
			}
		}
		high := must.Get(tr.runner.HighWater(platform.MemoryID(m)))(t)
		for _, a := range []layout.Arena{layout.NetworkArena, layout.StepArena} {
			got, row := layout.Align(high[a]), int64(0)
			if a == layout.NetworkArena && strings.Contains(what, "tensor-parallel") {
				row = tr.longestRow()
			}
			if got > planned[a] || got < planned[a]-row {
				t.Errorf("%s on %s: %s touches bytes of %v up to %d, planned are %d", what, p.Name, p.Memories[m].Name, a, got, planned[a])
			}
		}
	}
}

// longestRow is the bytes of the longest row of a parameter in float32.
func (tr *training) longestRow() (bytes int64) {
	for _, p := range tr.model.Parameters() {
		bytes = max(bytes, layout.Align(int64(4*p.Elems()/p.Shape[0])))
	}
	return bytes
}

// checkHeld counts the micro-batches that each device of a stage holds.
func (tr *training) checkHeld(t *testing.T, what string, stages int) {
	t.Helper()
	for _, r := range tr.runs {
		on := map[platform.WorkerID][]schedule.Span{}
		for _, span := range r.schedule.Spans {
			on[span.Worker] = append(on[span.Worker], span)
		}
		for w, spans := range on {
			for s := range stages {
				if held := heldAtOnce(&schedule.Schedule{Spans: spans}, r.problem.Graph, s, stages); held > stages-s {
					t.Errorf("%s: worker %d held %d micro-batches of stage %d of %d at once", what, w, held, s, stages)
				}
			}
		}
	}
}
