package relax

import (
	"context"
	"errors"
	"math"
	"testing"
	"time"

	"dahl/dag"
	"dahl/must"
	"dahl/plan/problem"
	"dahl/plan/shares"
	"dahl/platform"
	"dahl/platforms/testmachine"
)

// Two operations in a chain, of 8 us each, on two units with a dispatch of 1 us: the multipliers of the worked example of package shares are the
// best. With them a step takes at least 10 us. Joules are those of the work, 32 uJ, and 2 W for that time.
func TestShares(t *testing.T) {
	s := workedExample(t)
	for o, want := range map[problem.Objective]float64{problem.Time: 10e-6, problem.Energy: 52e-6, problem.EDP: 520e-12} {
		s.Aim = problem.Aim{Objective: o, Steady: true}
		b := must.Get(Shares(t.Context(), s))(t)
		must.Do(t, b.Check(s.Step, s.Platform, s.Aim))
		if got := b.Bound(); got > want || got < 0.99*want {
			t.Errorf("%s: %g, want %g", o, got, want)
		}
	}
}

func workedExample(t *testing.T) *Sharing {
	cpu := testmachine.CPU(2, 1, 3)
	cpu.Dispatch, cpu.FlopsPerSec = 1000, map[string]float64{"float32": 1e9}
	var work []dag.Work
	for _, name := range []string{"a", "b"} {
		work = append(work, dag.Work{Name: name, Forms: []dag.Form{{Op: name, Type: dag.Float32, Flops: 8000, Sides: []int{16}}}})
	}
	return &Sharing{Step: shares.NewStep(&dag.Step{Work: work, Chains: [][]dag.Link{{{Work: 0, Uniform: true}, {Work: 1, Uniform: true}}}}), Platform: testmachine.Shared(t, cpu), Leaves: 4, Enough: math.Inf(1)}
}

// TestSharesBegin: where no program of more sets was solved, the one of fewer sets begins by itself, and has the bound of the worked example.
func TestSharesBegin(t *testing.T) {
	s, aim := workedExample(t), problem.Aim{Objective: problem.Time, Steady: true}
	m := must.Get(shares.NewModel(s.Step, s.Platform, shares.All(s.Platform), aim.Objective, aim.Steady))(t)
	found := must.Get(byShares(t.Context(), m, 0, &multiplied{Proof: &shares.Proof{Units: make([]float64, len(m.Units))}}))(t)
	if found.bound > 10e3 || found.bound < 0.99*10e3 {
		t.Errorf("a bound of %g ns, want 10 us", found.bound)
	}
}

// TestSharesEnded: a search that ends before any program is solved has no bound, in place of one without multipliers, whose tiles are all equal.
func TestSharesEnded(t *testing.T) {
	s := workedExample(t)
	s.Aim = problem.Aim{Objective: problem.Time, Steady: true}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if b, err := Shares(ctx, s); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, %v", b, err)
	}
}

// A chain of four operations alternates between two devices that are each twice as fast for two of them. A copy takes 5 us, so that all run on one:
// 4·2 us and two of them again for the slower ones, where without copies they would take 8 us. Copies of 1.5 us take 3 us there and back, more than the 2 us that
// they save, from another processor as well. Its memory is near to the first one's, so that a copy from anywhere into either takes no time.
func TestSharesMove(t *testing.T) {
	var work []dag.Work
	var chain []dag.Link
	for i, kind := range []dag.DType{dag.Float32, dag.Float64, dag.Float32, dag.Float64} {
		work = append(work, dag.Work{Name: kind.String(), Forms: []dag.Form{{Op: "op", Type: kind, Flops: 4000}}})
		chain = append(chain, dag.Link{Work: i, Uniform: true})
	}
	for _, c := range []struct {
		latency time.Duration
		others  []platform.Device
		want    float64
	}{{0, nil, 8e-6}, {5000, nil, 12e-6}, {1500, []platform.Device{testmachine.GPU("cpu2")}, 12e-6}} {
		p := testmachine.Node(t, append([]platform.Device{testmachine.CPU(1), testmachine.GPU("gpu")}, c.others...)...)
		for i := range p.Devices {
			p.Devices[i].FlopsPerSec = map[string]float64{"float32": 1e9, "float64": 2e9}
		}
		p.Devices[1].FlopsPerSec = map[string]float64{"float32": 2e9, "float64": 1e9}
		p.Links[0].Latency = c.latency
		if c.others != nil {
			p.Devices[2].Kind, p.Links = platform.CPU, append(p.Links, platform.Link{Name: "near", BandwidthBytesPerSec: 1e9, PowerSource: platform.Guess})
			p.Routes[1].Links = []platform.LinkID{1}
		}
		must.Do(t, p.Complete())
		s := &Sharing{Step: shares.NewStep(&dag.Step{Work: work, Chains: [][]dag.Link{chain}}), Platform: p, Leaves: 1, Enough: math.Inf(1), Aim: problem.Aim{Objective: problem.Time, Steady: true}}
		b := must.Get(Shares(t.Context(), s))(t)
		must.Do(t, b.Check(s.Step, p, s.Aim))
		if got := b.Bound(); got > c.want || got < 0.99*c.want {
			t.Errorf("latency %v: %g, want %g", c.latency, got, c.want)
		}
	}
}
