package layerwise

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"testing"
	"time"

	"dahl/dag"
	"dahl/must"
	"dahl/plan/problem"
	"dahl/platform"
	"dahl/platforms/testmachine"
	"dahl/schedule"
)

const (
	us      = 1000 // ns
	samples = 6
)

// chain is a network of two layers. "first" writes 6 samples of 5 numbers, each in 2.5 us. "second" reads them and writes as much, each sample in
// 3.5 us, or adds all samples up, each in 2 us, and two accumulators in 1 us.
func chain(t *testing.T, p *platform.Platform, sums bool, devices map[string]string) *Model {
	t.Helper()
	b := dag.NewBuilder("chain")
	x := b.Buffer(dag.Buffer{Name: "x", Shape: []int{samples, 5}, Type: dag.Float32})
	shape, mode := []int{samples, 5}, dag.Write
	if sums {
		shape, mode = []int{1, 5}, dag.Reduce
	}
	y := b.Buffer(dag.Buffer{Name: "y", Shape: shape, Type: dag.Float32})
	part := func(buffer dag.BufferID, r dag.Range, mode dag.Mode) dag.Access {
		box := dag.Box{r, {Hi: 5}}
		if buffer == y && sums {
			box[0] = dag.Range{Hi: 1}
		}
		return dag.Access{Region: dag.Region{Buffer: buffer, Box: box}, Mode: mode}
	}
	first := func(r []dag.Range) dag.Task {
		return dag.Task{Name: "first", Op: "first", Labels: dag.Labels{Layer: "first"}, Accesses: []dag.Access{part(x, r[0], dag.Write)}}
	}
	second := func(r []dag.Range) dag.Task {
		return dag.Task{Name: "second", Op: "second", Labels: dag.Labels{Layer: "second"}, Accesses: []dag.Access{part(y, r[0], mode), part(x, r[0], dag.Read)}}
	}
	whole := []dag.Range{{Hi: samples}}
	b.Task(first(whole))
	last := second(whole)
	last.Accesses[0].Mode = dag.Write
	b.Task(last)
	g := must.Get(b.Build())(t)
	operation := func(task int, part func([]dag.Range) dag.Task, summed bool) dag.Operation {
		o := dag.Operation{Graph: g, Task: g.Tasks[task], Part: part, Cut: func(ll dag.LayerLowering) dag.Cut { return ll.Forward }}
		o.Sides = []dag.Side{{Along: dag.AlongSamples, Extent: samples, Block: samples, Summed: summed, Cuttable: true}}
		o.Tiles = func(cut dag.Cut) (tiles []dag.Tile, err error) {
			n := o.Sides[0].Parts(&cut)
			task := g.Tasks[task]
			task.Shape = fmt.Sprint(samples / n)
			tiles = append(tiles, dag.Tile{Task: task, Count: n})
			if summed && cut.Accumulators > 1 {
				tiles = append(tiles, dag.Tile{Task: dag.Task{Op: "add", Labels: dag.Labels{Layer: "second", Phase: "reduce"}}, Count: cut.Accumulators - 1})
			}
			return tiles, nil
		}
		return o
	}
	perSample := map[string]float64{"first": 2.5 * us, "second": 3.5 * us}
	if sums {
		perSample["second"] = 2 * us
	}
	return New(Network{
		Operations: dag.Operations{All: []dag.Operation{operation(0, first, false), operation(1, second, sums)}},
		Machine:    func(string) (*platform.Platform, error) { return p, nil },
		Price: func(_ *dag.Graph, tasks []dag.Task, p *platform.Platform) (rows [][]schedule.Cost, err error) {
			for i := range tasks {
				n, ns := 0, 1.0*us
				if _, err := fmt.Sscan(tasks[i].Shape, &n); err == nil {
					ns = float64(n) * perSample[tasks[i].Op]
				}
				row := make([]schedule.Cost, len(p.Devices))
				for d := range row {
					if row[d].Duration = -1; devices == nil || devices[tasks[i].Op] == p.Devices[d].Name {
						row[d].Duration = time.Duration(ns / p.Devices[d].ClockInForce().Scale)
					}
				}
				rows = append(rows, row)
			}
			return rows, nil
		},
	})
}

// lowering cuts both layers.
func lowering(first, second dag.Cut) *dag.Lowering {
	return &dag.Lowering{Layers: map[string]dag.LayerLowering{"first": {Forward: first}, "second": {Forward: second}}}
}

// TestEstimates: each case says how its step goes.
func TestEstimates(t *testing.T) {
	two := dag.Cut{Samples: 2}
	for _, c := range []struct {
		what          string
		units         int
		sums, steady  bool
		first, second dag.Cut
		us            float64
	}{
		{"one unit does 6·2.5 + 6·3.5", 1, false, false, two, two, 36},
		// One unit has the first tiles 0 and 2 from 0 to 10 us, and the other one tile 1 until 5. From there on that
		// one has a second tile until 12 and the last one until 19, and the former unit one until 17.
		{"tiles of 5 and of 7 us on two units, met one by one", 2, false, false, two, two, 19},
		{"the second layer waits for all three tiles, on two units", 2, false, false, two, dag.Cut{}, 10 + 21},
		// The next step overwrites what the second layer reads.
		{"whole layers in many steps", 2, false, true, dag.Cut{}, dag.Cut{}, 15 + 21},
		// Of three terms of 4 us two add to one accumulator, one after the other. One sum of accumulators follows.
		{"two accumulators", 3, true, false, two, dag.Cut{Samples: 2, Accumulators: 2}, 5 + 8 + 1},
		{"three accumulators, whose two sums follow each other", 3, true, false, two, dag.Cut{Samples: 2, Accumulators: 3}, 5 + 4 + 2},
		{"one accumulator", 3, true, false, two, dag.Cut{Samples: 2, Accumulators: 1}, 5 + 12},
	} {
		m := chain(t, testmachine.Shared(t, testmachine.CPU(c.units)), c.sums, nil)
		e := must.Get(m.Of("", lowering(c.first, c.second), c.steady))(t)
		if got := e.Seconds * 1e6; math.Abs(got-c.us) > 1e-9 {
			t.Errorf("%s: %g us, want %g", c.what, got, c.us)
		}
	}
}

// TestJoules: two units draw 1 W each while they are idle, and 3 W while they are busy. In the 19 us of the step above they are busy for 36.
func TestJoules(t *testing.T) {
	m := chain(t, testmachine.Shared(t, testmachine.CPU(2, 1, 3)), false, nil)
	two := dag.Cut{Samples: 2}
	e := must.Get(m.Of("", lowering(two, two), false))(t)
	if want := 19e-6*2 + 36e-6*2; math.Abs(e.Joules-want) > 1e-12 {
		t.Errorf("%g J, want %g", e.Joules, want)
	}
	aim := problem.Aim{Objective: problem.Energy, Deadline: 20 * time.Microsecond}
	if e.Value(aim) != e.Joules {
		t.Error("a step within the deadline is not worth its joules")
	}
	if aim.Deadline = 18 * time.Microsecond; !(e.Value(aim) > 1) {
		t.Error("a step after the deadline is worth as much as others")
	}
}

// TestTransfers: the first layer runs on a core and the second one on a GPU. 120 bytes take 120 ns on the way. Cut in three, the
// parts of 40 bytes leave one by one. The GPU then has the first part at 5.04 us and is busy for 21 us.
func TestTransfers(t *testing.T) {
	p := testmachine.Node(t, testmachine.CPU(1), testmachine.GPU("gpu"))
	m := chain(t, p, false, map[string]string{"first": "cpu", "second": "gpu"})
	two := dag.Cut{Samples: 2}
	for _, c := range []struct {
		cut dag.Cut
		us  float64
	}{{dag.Cut{}, 15 + 0.12 + 21}, {two, 5 + 0.04 + 21}} {
		e := must.Get(m.Of("", lowering(c.cut, c.cut), false))(t)
		if got := e.Seconds * 1e6; math.Abs(got-c.us) > 1e-6 {
			t.Errorf("%+v: %g us, want %g", c.cut, got, c.us)
		}
	}
}

// TestRank: of one and of two units two are better where both work, and the cuts that the ranking finds let them. The least time of a
// step among many is half of the work.
func TestRank(t *testing.T) {
	one, two := testmachine.Shared(t, testmachine.CPU(1)), testmachine.Shared(t, testmachine.CPU(2))
	m := chain(t, two, false, nil)
	m.network.Machine = func(devices string) (*platform.Platform, error) {
		return map[string]*platform.Platform{"one": one, "two": two, "": two}[devices], nil
	}
	ranked := must.Get(m.Rank(context.Background(), []string{"one", "two"}, problem.Aim{Objective: problem.Time, Steady: true}, 1))(t)
	if len(ranked) != 2 || ranked[0].Devices != "two" || math.Abs(ranked[0].Value-18e-6) > 1e-12 || math.Abs(ranked[1].Value-36e-6) > 1e-12 {
		t.Errorf("ranked %+v", ranked)
	}
}

// TestRankEqual: two GPUs differ in their names, so that the second one comes last, with the cuts and the value of the first one. Once its context has ended a
// ranking has looked at no sets.
func TestRankEqual(t *testing.T) {
	p := testmachine.Node(t, testmachine.CPU(1), testmachine.GPU("g0"), testmachine.GPU("g1"))
	m := chain(t, p, false, nil)
	m.network.Machine = func(devices string) (*platform.Platform, error) {
		if devices == "" {
			return p, nil
		}
		return p.Select(devices)
	}
	aim := problem.Aim{Objective: problem.Time, Steady: true}
	ranked := must.Get(m.Rank(context.Background(), []string{"g0", "g1", "cpu"}, aim, 1))(t)
	if len(ranked) != 3 || ranked[2].Devices != "g1" || !slices.ContainsFunc(ranked[:2], func(r Ranked) bool {
		return r.Devices == "g0" && r.Value == ranked[2].Value && maps.Equal(r.Layers, ranked[2].Layers)
	}) {
		t.Errorf("ranked %+v", ranked)
	}
	ended, end := context.WithCancel(context.Background())
	end()
	if ranked := must.Get(m.Rank(ended, []string{"g0", "g1", "cpu"}, aim, 1))(t); len(ranked) > 0 {
		t.Errorf("ranked %+v after the end", ranked)
	}
}

// TestClocks: a core does the 36 us of work, at 3 W in 36 us or at 1.25 W in 72 us. So a step has 108 or 90 uJ, and a product of 3888 or 6480 ps·J.
func TestClocks(t *testing.T) {
	core := testmachine.CPU(1, 1, 3)
	core.Clocks = []platform.Clock{
		{Name: "fast", Scale: 1, Idle: core.IdleWatts, Busy: core.Busy},
		{Name: "slow", Scale: 0.5, Idle: 0.5, Busy: platform.BusyPower{UnitWatts: 1.25}},
	}
	m := chain(t, testmachine.Shared(t, core), false, nil)
	for objective, want := range map[problem.Objective]float64{problem.Time: 36e-6, problem.Energy: 90e-6, problem.EDP: 3888e-12} {
		aim := problem.Aim{Objective: objective, Steady: true}
		ranked := must.Get(m.Rank(context.Background(), []string{""}, aim, 1))(t)
		if len(ranked) != 1 || math.Abs(ranked[0].Value/want-1) > 1e-9 {
			t.Errorf("%s: ranked %+v, want %g", objective, ranked, want)
		}
		if got := must.Get(m.Value("", lowering(dag.Cut{}, dag.Cut{}), aim))(t); math.Abs(got/want-1) > 1e-9 {
			t.Errorf("%s: %g, want %g", objective, got, want)
		}
	}
}
