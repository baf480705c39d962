package simulate

import (
	"testing"
	"time"

	"dahl/must"
	"dahl/schedule/audit"
	"dahl/schedule/policy"
)

// TestHandOffToCPU: of TestPingPong's loop, c (cpu) reads what b (gpu) wrote, which a copy
// brings. The host sees the end of a copy 1000 ns after it, so that c begins then, on top of
// nothing else; a follows c on the same core, and waits for nobody. So the Engine's first
// step is 1000 longer than there, c from 147 + 1000 to 1150, and the second again: from
// 1150 on b runs 90 after, its result is there 147 after, and c begins at 2297. With the plan
// on lanes copies have other times, and the same distances.
func TestHandOffToCPU(t *testing.T) {
	for engines := range 2 {
		pl := twoMemories(t)
		pl.Devices[1].HandoffToCPU = 1000
		p := problem(t, pingPong(t), withEngines(t, pl, engines), 2)
		plan := must.Get(policy.HEFT.Plan(p))(t)
		s := must.Get(run(p, how{plan: plan}))(t)
		must.Do(t, audit.Check(s, p))
		var arrived, starts, ends [2]time.Duration // of y, of c, by step
		for i := range s.Transfers {
			if tr := &s.Transfers[i]; p.Graph.Buffers[tr.Buffer].Name == "y" {
				arrived[tr.Step] = tr.End
			}
		}
		for _, span := range s.Spans {
			switch p.Graph.Tasks[span.Task].Name {
			case "c":
				starts[span.Step], ends[span.Step] = span.Start, span.End
			case "a":
				if span.Step == 1 && span.Start != ends[0] {
					t.Errorf("%d engines: a starts at %d, c has ended at %d on its core", engines, span.Start, ends[0])
				}
			}
		}
		for step := range starts {
			if starts[step] != arrived[step]+1000 {
				t.Errorf("%d engines, step %d: c starts at %d, its operand arrived at %d", engines, step, starts[step], arrived[step])
			}
		}
		if want := [2]time.Duration{1147, 2297}; engines == 0 && starts != want {
			t.Errorf("c starts at %d, want %d", starts, want)
		}
	}
}
