package relax

import (
	"math"
	"testing"
	"time"

	"dahl/dag"
	"dahl/must"
	"dahl/plan/problem"
	"dahl/plan/shares"
	"dahl/platforms/testmachine"
)

// Two operations in a chain, of 8 us each, on two units with a dispatch of 1 us: the multipliers of the worked example of package shares are the
// best. With them a step takes at least 10 us. Joules are those of the work, 32 uJ, and 2 W for that time.
func TestShares(t *testing.T) {
	cpu := testmachine.CPU(2, 1, 3)
	cpu.Dispatch, cpu.FlopsPerSec = 1000, map[string]float64{"float32": 1e9}
	var work []dag.Work
	for _, name := range []string{"a", "b"} {
		work = append(work, dag.Work{Name: name, Forms: []dag.Form{{Op: name, Type: dag.Float32, Flops: 8000, Sides: []int{16}}}})
	}
	s := &Sharing{Step: shares.NewStep(&dag.Step{Work: work, Chains: [][]dag.Link{{{Work: 0, Uniform: true}, {Work: 1, Uniform: true}}}}), Platform: testmachine.Shared(t, cpu), Leaves: 4, Enough: math.Inf(1)}
	for o, want := range map[problem.Objective]float64{problem.Time: 10e-6, problem.Energy: 52e-6, problem.EDP: 520e-12} {
		s.Aim = problem.Aim{Objective: o, Steady: true}
		b := must.Get(Shares(t.Context(), s))(t)
		must.Do(t, b.Check(s.Step, s.Platform, s.Aim))
		if got := b.Bound(); got > want || got < 0.99*want {
			t.Errorf("%s: %g, want %g", o, got, want)
		}
	}
}

// A chain of four operations alternates between two devices that are each twice as fast for two of them. A copy takes 5 us, so that all run on one:
// 4·2 us and two of them again for the slower ones, where without copies they would take 8 us.
func TestSharesMove(t *testing.T) {
	p := testmachine.Node(t, testmachine.CPU(1), testmachine.GPU("gpu"))
	for i := range p.Devices {
		d := &p.Devices[i]
		d.FlopsPerSec = map[string]float64{"float32": 1e9, "float64": 2e9}
		if i == 1 {
			d.FlopsPerSec = map[string]float64{"float32": 2e9, "float64": 1e9}
		}
	}
	var work []dag.Work
	var chain []dag.Link
	for i, kind := range []dag.DType{dag.Float32, dag.Float64, dag.Float32, dag.Float64} {
		work = append(work, dag.Work{Name: kind.String(), Forms: []dag.Form{{Op: "op", Type: kind, Flops: 4000}}})
		chain = append(chain, dag.Link{Work: i, Uniform: true})
	}
	for latency, want := range map[time.Duration]float64{0: 8e-6, 5000: 12e-6} {
		p.Links[0].Latency = latency
		must.Do(t, p.Complete())
		s := &Sharing{Step: shares.NewStep(&dag.Step{Work: work, Chains: [][]dag.Link{chain}}), Platform: p, Leaves: 1, Enough: math.Inf(1), Aim: problem.Aim{Objective: problem.Time, Steady: true}}
		b := must.Get(Shares(t.Context(), s))(t)
		must.Do(t, b.Check(s.Step, p, s.Aim))
		if got := b.Bound(); got > want || got < 0.99*want {
			t.Errorf("latency %v: %g, want %g", latency, got, want)
		}
	}
}
