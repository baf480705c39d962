package schedule

import (
	"math"
	"testing"
	"time"

	"dahl/dag"
	"dahl/platform"
)

// TestPace: dispatch 100 ns, a hand-off 10 more, a wake-up after 50 ns of waiting 1000
// more. The worker's last task ended at 500.
//
//	ready at 400 (or 500), told at 500: it did not wait        500 + 100
//	ready and told at 501: waited 1 ns                          501 + 100 + 10
//	ready and told at 549: waited 49 ns                         549 + 100 + 10
//	ready and told at 550: waited 50 ns and sleeps              550 + 100 + 1000
//	ready at 520, told at 600 (the policy took its time)        600 + 100 + 10
func TestPace(t *testing.T) {
	p := mixed(t)
	p.Devices[0].Dispatch, p.Devices[0].Handoff = 100, 10
	p.Devices[0].WakeAfter, p.Devices[0].Wake = 50, 1000
	pace := NewPace(&Problem{Platform: p})
	for _, c := range []struct{ ready, now, want time.Duration }{
		{400, 500, 600}, {500, 500, 600}, {501, 501, 611}, {549, 549, 659}, {550, 550, 1650}, {520, 600, 710},
	} {
		pace.End(1, 500)
		if got := pace.Start(1, c.now, c.ready); got != c.want {
			t.Errorf("ready at %d, told at %d: starts at %d, want %d", c.ready, c.now, got, c.want)
		}
	}
	if got := pace.Start(0, 0, 0); got != 100 {
		t.Errorf("the first task of the run starts at %d, want 100", got)
	}
	p.Devices[0].WakeAfter, p.Devices[0].Wake = 0, 0
	if got := pace.Start(1, 9999, 9999); got != 9999+110 {
		t.Errorf("a worker that never sleeps starts at %d, want 10109", got)
	}
}

// TestTakesInTheFirstStep: what was measured there if it is more, never less.
func TestTakesInTheFirstStep(t *testing.T) {
	for first, want := range map[time.Duration]time.Duration{0: 200, 150: 200, 350: 350} {
		p := &Problem{Costs: &Costs{Class: []int32{0}, ByClass: [][]Cost{{{Duration: 200, First: first}}}}}
		if got := p.Takes(Instance{Step: 0}, 0); got != want {
			t.Errorf("first %d: %d, want %d", first, got, want)
		}
		if got := p.Takes(Instance{Step: 1}, 0); got != 200 {
			t.Errorf("second step: %d, want 200", got)
		}
	}
}

// TestModelError: six tasks on one device whose runs differ by 2 %.
//
//	measured 400 ns: off by 2 % of it, 8 ns
//	fit of f: 100 + 200 ns at 10 %: off together, by 30 ns
//	fit of g: 200 ns at 5 %: off by 10 ns
//	roofline 100 ns: not known
//	given by the graph 0 ns
//
// The sum is 1000 ns, its error √(64 + 900 + 100)/1000 = 3.262 %, a tenth is unknown.
func TestModelError(t *testing.T) {
	costs := []Cost{{Duration: 400, Source: FromMeasured}, {Duration: 100, Source: FromFit, RelError: 0.1}, {Duration: 200, Source: FromFit, RelError: 0.1},
		{Duration: 200, Source: FromFit, RelError: 0.05}, {Duration: 100, Source: FromRoofline}, {Source: FromGraph}}
	p := &Problem{Graph: &dag.Graph{}, Platform: &platform.Platform{Devices: []platform.Device{{RunSpread: 0.02}}}, Costs: &Costs{}}
	for i, op := range []string{"m", "f", "f", "g", "r", ""} {
		p.Graph.Tasks = append(p.Graph.Tasks, dag.Task{Op: op})
		p.Costs.Class = append(p.Costs.Class, int32(i))
		p.Costs.ByClass = append(p.Costs.ByClass, costs[i:i+1])
	}
	e := ModelErrorOf(p)
	if want := math.Sqrt(64+900+100) / 1000; math.Abs(e.RelError-want) > 1e-12 || math.Abs(e.Unknown-0.1) > 1e-12 {
		t.Errorf("error %g, unknown %g; want %g, 0.1", e.RelError, e.Unknown, want)
	}
	if e.Tasks[FromMeasured] != 1 || e.Tasks[FromFit] != 3 || e.Tasks[FromRoofline] != 1 || e.Tasks[FromGraph] != 1 {
		t.Errorf("tasks %v", e.Tasks)
	}
}
