package energy

import (
	"math"
	"testing"

	"dahl/dag"
	"dahl/must"
	"dahl/platform"
	"dahl/schedule"
)

// Three nodes at one switch, of which the last is left out and off. In 10 s a task of 2 s runs on n0, and 1 GB goes from n0 to n1:
//
//	n0  host 300 J, core 2 s at 11 W and 8 s at 1 W, adaptor 10 s at 2 W and (6-2) W / (2·1 GB/s) · 1 GB = 2 J: 352 J
//	n1  host 300 J, core 10 s at 1 W, adaptor as in n0: 332 J
//	n2  4 W in all, its adaptor included: 40 J
//	sw  10 s at 20 W and (50-20) W / 3 GB/s · 1 GB = 10 J: 210 J, no node's
//
// n0 draws at most 30 + 11 W of its cap, which does not count links.
func TestJoulesOfNodes(t *testing.T) {
	const box = `name = "box"
host_power = "30 W"
memory = [{ name = "ram" }]
device = [{ name = "cpu", kind = "cpu", memory = "ram", power = { idle = "1 W", busy = "11 W" } }]
`
	const cluster = `name = "three"
[[node]]
name = "n"
platform = "box"
count = 3
power_cap = "60 W"
off_power = "4 W"
[[switch]]
name = "sw"
power = { idle = "20 W", busy = "50 W" }
[[link]]
name = "nic"
from = "n"
to = "sw"
bandwidth = "1 GB/s"
sharing = "duplex"
power = { idle = "2 W", busy = "6 W" }
`
	p := must.Get(platform.ParseWith([]byte(cluster), "three.toml", func(string) ([]byte, error) { return []byte(box), nil }))(t)
	p = must.Get(p.Select("n0,n1"))(t)
	g := mustBuild(t, dag.Task{Name: "A", Op: "conv"})
	s := &schedule.Schedule{Steps: 1, Makespan: 10 * seconds,
		Spans:     []schedule.Span{{Task: 0, Worker: 0, Start: 0, End: 2 * seconds}},
		Transfers: []schedule.Transfer{{From: 0, To: 1, For: 0, Bytes: 1e9, Start: 4 * seconds, End: 5 * seconds}}}
	r := must.Get(FromSchedule(s, &schedule.Problem{Graph: g, Platform: p, Steps: 1}))(t)
	sum := 0.0
	for i, want := range []float64{352, 332, 40} {
		e := &r.ByNode[i]
		sum += e.Joules
		if parts := e.HostJoules + e.IdleJoules + e.BusyJoules + e.TransferJoules + e.SleepJoules + e.SwitchingJoules; math.Abs(e.Joules-want) > 1e-9 || math.Abs(parts-want) > 1e-9 {
			t.Errorf("%s: %g J, of parts %g J, want %g", e.Name, e.Joules, parts, want)
		}
	}
	if sw := r.ByLink[len(r.ByLink)-1]; sw.Name != "sw" || math.Abs(sw.Joules-210) > 1e-9 || math.Abs(r.TotalJoules-sum-210) > 1e-9 {
		t.Errorf("%v, and %g J in all, want 210 J and %g J more", sw, r.TotalJoules, sum)
	}
	if len(r.Caps) != 2 || r.Caps[0] != (Cap{"n0", 60, 41}) {
		t.Errorf("caps %v", r.Caps)
	}
}
