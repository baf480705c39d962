package conformance

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"dahl/dag"
	"dahl/must"
	"dahl/nn"
	"dahl/nn/models"
	"dahl/plan"
	"dahl/plan/best"
	"dahl/plan/problem"
	"dahl/plan/relax"
	"dahl/plan/space"
	"dahl/plan/strategy"
	"dahl/plan/tiling"
	"dahl/platform"
	"dahl/platforms/testmachine"
	"dahl/schedule"
	"dahl/schedule/policy"
	"dahl/train"
)

// TestSharesOfStrategies: no plan of a pipeline, of replicas or of parts of weights or images is below the bound of all lowerings, for random networks of two
// layers on random machines with up to four GPUs.
func TestSharesOfStrategies(t *testing.T) {
	cases, tried := 20, 0
	if testing.Short() {
		cases = 4
	}
	r := rand.New(rand.NewPCG(33, 42))
	names := []string{"1f1b:%dx2", "gpipe:%dx3", "interleaved:%dx2x2", "data-parallel:%d", "zero1:%d", "data-parallel:%d:tree", "tensor-parallel:%d", "spatial:%d", "owt:%d", "data-parallel:2+1f1b:%dx2"}
	for i := range cases {
		c := sharesCase{batch: 2 + r.IntN(5), steady: r.IntN(3) > 0, objective: []problem.Objective{problem.Time, problem.Energy, problem.EDP}[r.IntN(3)]}
		c.lower = nn.LowerOptions{Batch: c.batch, Samples: c.batch, Type: dag.Float32, Train: true, Optimizer: randomOptimizer(r)}
		c.m = twoLayers(t, r, &c.lower)
		p := gpus(t, r, 2+r.IntN(3))
		step := must.Get(train.Shares(t.Context(), c.m, c.lower))(t)
		aim := problem.Aim{Objective: c.objective, Steady: c.steady}
		bound := must.Get(relax.Shares(t.Context(), &relax.Sharing{Step: step, Platform: p, Aim: aim, Leaves: 1 + r.IntN(2), Enough: math.Inf(1)}))(t)
		for _, name := range names {
			name = fmt.Sprintf(name, 2)
			w := &train.Workload{Model: c.m, Platform: p, Options: train.Options{Batch: c.batch, Optimizer: c.lower.Optimizer, OtherMachine: true, Strategy: must.Get(strategy.ByName(name))(t)}}
			if w.Lower() != nil {
				continue // too few layers or devices
			}
			w.Options.Strategy = nil
			priced := must.Get(w.PriceAs(*w.Lowering))(t)
			found, err := best.Find(t.Context(), space.Of(priced, []string{""}), best.Options{Aim: aim, Nodes: 50, Brief: true})
			if err != nil {
				t.Fatalf("case %d, %s: %v", i, name, err)
			}
			if tried++; found.Value < bound.Bound()*(1-1e-9) {
				t.Errorf("case %d, %s of %s: the bound is %.12g, and a plan by %s takes %.12g (%v)", i, c.objective, c.m.Name, bound.Bound(), name, found.Value, c.steady)
			}
		}
	}
	if tried < 3*cases {
		t.Errorf("%d plans in %d cases", tried, cases)
	}
}

// gpus is a machine of a core and some GPUs of random speeds.
func gpus(t *testing.T, r *rand.Rand, number int) *platform.Platform {
	t.Helper()
	p := testmachine.Executable(t, 1, number)
	for i := range p.Devices {
		d := &p.Devices[i]
		d.FlopsPerSec = map[string]float64{"float32": 1e8 * math.Exp(5*r.Float64())}
		d.IdleWatts, d.Busy, d.PowerSource = 1+r.Float64(), platform.BusyPower{UnitWatts: float64(4 + r.IntN(20))}, platform.Guess
	}
	for i := range p.Memories {
		p.Memories[i].BandwidthBytesPerSec, p.Memories[i].CapacityBytes = 1e8*math.Exp(5*r.Float64()), 0
	}
	for i := range p.Links {
		p.Links[i].BandwidthBytesPerSec = 1e8 * math.Exp(5*r.Float64())
	}
	must.Do(t, p.Complete())
	return p
}

// TestNamedStrategyWins: where layers are whole without a strategy, and devices so slow that launches count little, a search finds the plan that --policy gives. Cores of two
// sockets are in use, one for loads and one for metrics.
func TestNamedStrategyWins(t *testing.T) {
	p := must.Get(must.Get(platform.Load("../platforms/server.toml"))(t).Select("cpu0:2,cpu1:2,gpu0,gpu1,gpu2,gpu3"))(t)
	slowed(p)
	w := &train.Workload{Model: must.Get(models.ByName("lenet5"))(t), Platform: p, Options: train.Options{Batch: 8, OtherMachine: true}}
	must.Do(t, w.Lower())
	s := must.Get(w.Space(p, "", tiling.Of(tiling.Base{Kind: tiling.Whole})))(t).Space
	s.Devices, s.Strategies, s.Ranked, s.Shares, s.Neighbourhoods = []string{""}, nil, nil, nil, nil
	wins := ""
	for _, name := range []string{"gpipe:2x4", "1f1b:2x4", "data-parallel:4"} {
		s.Named = func(string) [][]space.Choice { return [][]space.Choice{{{Strategy: name}}} }
		found := must.Get(best.Find(t.Context(), &s, best.Options{Aim: problem.Aim{Objective: problem.Time, Steady: true}, Nodes: 4000}))(t)
		if value := stepBy(t, w, name); len(found.Untried) > 0 || found.Value > value {
			t.Errorf("%s takes %v s, and the plan %v s on %s; not tried are %v", name, value, found.Value, found.Choice, found.Untried)
		}
		wins = found.Strategy
	}
	if wins != "data-parallel:4" { // each layer takes a quarter of its time, and two stages halve the layers
		t.Errorf("the plan is by strategy %q", wins)
	}
}

// slowed makes all devices a thousand times slower.
func slowed(p *platform.Platform) {
	for i := range p.Devices {
		for precision := range p.Devices[i].FlopsPerSec {
			p.Devices[i].FlopsPerSec[precision] /= 1000
		}
	}
}

// TestPlanOfStrategies: a plan for the least time is no longer than that of any strategy, and one of more nodes no longer than one of fewer. GPUs are so
// slow that launches and transfers count little.
func TestPlanOfStrategies(t *testing.T) {
	machines := []string{"server", "nvlink"}
	if testing.Short() {
		machines = machines[:1]
	}
	for _, name := range machines {
		p := must.Get(platform.Load("../platforms/" + name + ".toml"))(t)
		p = must.Get(p.Select("gpu0,gpu1"))(t)
		slowed(p)
		w := &train.Workload{Model: must.Get(models.ByName("lenet5"))(t), Platform: p, Options: train.Options{Batch: 8, OtherMachine: true}}
		must.Do(t, w.Lower())
		s := must.Get(w.Space(p, "", tiling.Of(tiling.Base{Kind: tiling.Default})))(t)
		aim := problem.Aim{Objective: problem.Time, Steady: true}
		few := must.Get(best.Find(t.Context(), &s.Space, best.Options{Aim: aim, Nodes: 1_500}))(t)
		many := must.Get(best.Find(t.Context(), &s.Space, best.Options{Aim: aim, Nodes: 3_000}))(t)
		if many.Value > few.Value {
			t.Errorf("%s: %v s with 3,000 nodes, %v s with 1,500", name, many.Value, few.Value)
		}
		t.Logf("%s: %.4g ms by %s, %.4g ms by %s", name, 1e3*few.Value, few.Choice, 1e3*many.Value, many.Choice)
		for _, of := range []string{"data-parallel:2", "zero1:2", "tensor-parallel:2", "spatial:2", "owt:2", "gpipe:2x8", "1f1b:2x8", "interleaved:2x2x8"} {
			if value := stepBy(t, w, of); many.Value > value {
				t.Errorf("%s: %v s on %s, and %v s by %s", name, many.Value, many.Choice, value, of)
			}
		}
	}
}

// TestStrategiesOverCores: the plan for some cores is no worse than any of the strategies over them that the search lists, but for those that it says were not tried. Few nodes do not suffice for all, and
// more do.
func TestStrategiesOverCores(t *testing.T) {
	p := must.Get(must.Get(platform.Load("../platforms/laptop.toml"))(t).Select("cpu:3"))(t)
	w := &train.Workload{Model: must.Get(models.ByName("mlp"))(t), Platform: p, Options: train.Options{Batch: 6, OtherMachine: true}}
	must.Do(t, w.Lower())
	s := must.Get(w.Space(p, "", tiling.Of(tiling.Base{Kind: tiling.Default})))(t)
	values := map[string]float64{}
	for _, group := range s.Named("") {
		for _, c := range group {
			if _, err := s.Price(c); err == nil { // else the network has too few layers
				values[c.Strategy] = stepBy(t, w, c.Strategy)
			}
		}
	}
	for _, nodes := range []int{100, 2_000} {
		found := must.Get(best.Find(t.Context(), &s.Space, best.Options{Aim: problem.Aim{Objective: problem.Time, Steady: true}, Nodes: nodes}))(t)
		for name, value := range values {
			if found.Value > value && !slices.Contains(found.Untried, name) {
				t.Errorf("%d nodes: %v s on %s, and %v s by %s", nodes, found.Value, found.Choice, value, name)
			}
		}
		if tried := len(found.Untried) == 0; tried != (nodes > 100) {
			t.Errorf("%d nodes: not tried are %v", nodes, found.Untried)
		}
	}
	if len(values) < 10 {
		t.Errorf("%d strategies: the test tests little", len(values))
	}
}

// stepBy is the time of a steady step of a strategy.
func stepBy(t *testing.T, w *train.Workload, name string) float64 {
	t.Helper()
	of := train.Workload{Model: w.Model, Platform: w.Platform, Options: w.Options}
	of.Options.Strategy = must.Get(strategy.ByName(name))(t)
	must.Do(t, of.Lower())
	priced := must.Get(w.PriceAs(*of.Lowering))(t)
	var by schedule.Policy = policy.HEFT
	if order := of.Lowering.Order; order != "" {
		by = must.Get(policy.PipelineByName(order))(t)
	}
	made := must.Get((&plan.Evaluator{}).Policy(t.Context(), priced, by, true))(t)
	return must.Get(made.StepTime(t.Context(), true, 50))(t).Seconds()
}

// TestDefaultTakesStrategies: the default on two GPUs is a pipeline for a deep network with few samples, whose GPUs would exchange more gradients than results of layers.
func TestDefaultTakesStrategies(t *testing.T) {
	p := must.Get(must.Get(platform.Load("../platforms/server.toml"))(t).Select("gpu0,gpu1"))(t)
	w := &train.Workload{Model: must.Get(models.ByName("vgg16"))(t), Platform: p, Options: train.Options{Batch: 16, OtherMachine: true}}
	must.Do(t, w.Lower())
	s := must.Get(w.Space(p, "", tiling.Of(tiling.Base{Kind: tiling.Default})))(t)
	found := must.Get(best.Find(t.Context(), &s.Space, best.Options{Aim: problem.Aim{Objective: problem.Time, Steady: true}, Nodes: 1000, Brief: true}))(t)
	if found.Strategy == "" || len(found.Tried) < 2 || found.Tried[1].Value < found.Value {
		t.Errorf("%s: %v; %+v", found.Choice, found.Makespan, found.Tried)
	}
}
