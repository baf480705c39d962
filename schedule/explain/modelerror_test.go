package explain

import (
	"math"
	"testing"

	"dahl/dag"
	"dahl/platform"
	"dahl/schedule"
)

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
	costs := []schedule.Cost{{Duration: 400, Source: schedule.FromMeasured}, {Duration: 100, Source: schedule.FromFit, RelError: 0.1}, {Duration: 200, Source: schedule.FromFit, RelError: 0.1},
		{Duration: 200, Source: schedule.FromFit, RelError: 0.05}, {Duration: 100, Source: schedule.FromRoofline}, {Source: schedule.FromGraph}}
	p := &schedule.Problem{Graph: &dag.Graph{}, Platform: &platform.Platform{Devices: []platform.Device{{RunSpread: 0.02}}}, Costs: &schedule.Costs{}}
	for i, op := range []string{"m", "f", "f", "g", "r", ""} {
		p.Graph.Tasks = append(p.Graph.Tasks, dag.Task{Op: op})
		p.Costs.Class = append(p.Costs.Class, int32(i))
		p.Costs.ByClass = append(p.Costs.ByClass, costs[i:i+1])
	}
	e := ModelErrorOf(p)
	if want := math.Sqrt(64+900+100) / 1000; math.Abs(e.RelError-want) > 1e-12 || math.Abs(e.Unknown-0.1) > 1e-12 {
		t.Errorf("error %g, unknown %g; want %g, 0.1", e.RelError, e.Unknown, want)
	}
	if e.Measured != 1 || e.Fitted != 3 || e.Roofline != 1 || e.Given != 1 {
		t.Errorf("tasks %+v", e)
	}
}
