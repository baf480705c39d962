package best

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"dahl/dag"
	"dahl/must"
	"dahl/plan/problem"
	"dahl/plan/space"
	"dahl/plan/tiling"
	"dahl/platforms/testmachine"
	"dahl/schedule"
)

// tiles reads the text of a tiling.
func tiles(text string) tiling.Tiling {
	t, err := tiling.Parse(text)
	if err != nil {
		panic(err)
	}
	return t
}

// twoLayers is a space of two layers on a processor of two cores. Layer a reads what b has written in the step before,
// and b what a writes. Each is one task of 10 us, or two halves: those of a take 5 us, and those of b 12. A step in us:
//
//	          a whole   a halves
//	b whole   20        15
//	b halves  22        17
func twoLayers(t *testing.T) *space.Space {
	t.Helper()
	p := testmachine.Node(t, testmachine.CPU(2, 1, 2))
	price := func(c space.Choice) (*schedule.Priced, error) {
		var halves [2]bool
		switch c.Tiles.String() {
		case "whole":
		case "2 samples per task":
			halves = [2]bool{true, true}
		case "whole; a: 1 sample", "2 samples per task; b: 2 samples":
			halves[0] = true
		case "whole; b: 1 sample", "2 samples per task; a: 2 samples":
			halves[1] = true
		default:
			return nil, fmt.Errorf("no tiles %q", c.Tiles)
		}
		b := dag.NewBuilder("layers")
		in := b.Buffer(dag.Buffer{Name: "w", Shape: []int{2}, Type: dag.Float32, ViewOf: dag.None})
		out := b.Buffer(dag.Buffer{Name: "x", Shape: []int{2}, Type: dag.Float32, ViewOf: dag.None})
		for i, nanos := range [2][2]int64{{10_000, 5_000}, {10_000, 12_000}} {
			parts := []dag.Range{{Lo: 0, Hi: 2}}
			cost := nanos[0]
			if halves[i] {
				parts, cost = []dag.Range{{Lo: 0, Hi: 1}, {Lo: 1, Hi: 2}}, nanos[1]
			}
			for k, part := range parts {
				b.Task(dag.Task{Name: fmt.Sprint("ab"[i:i+1], k), Op: "op", Costs: []dag.Cost{{Key: "*", Ns: cost}}, Accesses: []dag.Access{
					{Region: dag.Region{Buffer: in}, Mode: dag.Read}, {Region: dag.Region{Buffer: out, Box: []dag.Range{part}}, Mode: dag.Write}}})
			}
			in, out = out, in
		}
		g, err := b.Build()
		if err != nil {
			return nil, err
		}
		return schedule.Price(&dag.Program{Name: "layers", Graphs: []*dag.Graph{g}}, p, schedule.Unbound)
	}
	return &space.Space{Devices: []string{""}, Tiles: []tiling.Tiling{tiles("whole"), tiles("2 samples per task")}, Price: price, Layers: []string{"b", "a"},
		Neighbourhoods: []space.Neighbourhood{func(c space.Choice, layer string) ([]space.Choice, error) {
			samples := "1 sample"
			if c.Tiles.Kind == tiling.Samples {
				samples = "2 samples"
			}
			return []space.Choice{{Tiles: tiles(fmt.Sprintf("%s; %s: %s", c.Tiles.Base, layer, samples))}}, nil
		}}}
}

// TestCutLayers: of two tilings of all layers the better takes 17 us, and one layer apart from it 15, which is proven. The
// certificate covers the plan's own tiling too, and is refused without any of its leaves. A brief search finds it without a certificate.
func TestCutLayers(t *testing.T) {
	s := twoLayers(t)
	apart, alike := tiles("2 samples per task; b: 2 samples"), tiles("whole; a: 1 sample") // of one graph
	find := func(o Options) *Result {
		o.Objective, o.Nodes = problem.Time, 10_000
		return must.Get(Find(t.Context(), s, o))(t)
	}
	for _, steady := range []bool{false, true} {
		if found := find(Options{Aim: problem.Aim{Steady: steady}}); found.Makespan != 15_000 || found.Tiles != apart && found.Tiles != alike || !found.Proven {
			t.Errorf("steady %v: %v with tiles %q, proven %v", steady, found.Makespan, found.Tiles, found.Proven)
		}
		if found := find(Options{Aim: problem.Aim{Steady: steady}, Brief: true}); found.Makespan != 15_000 || found.Certificate != nil {
			t.Errorf("steady %v, brief: %v with tiles %q", steady, found.Makespan, found.Tiles)
		}
	}
	c := copyOf(t, find(Options{Aim: problem.Aim{Steady: true}}).Certificate)
	if err := c.Check(s); err != nil || len(c.Further) != 1 || c.Further[0].Tiles != apart && c.Further[0].Tiles != alike {
		t.Fatalf("further choices %q: %v", c.Further, err)
	}
	for i := range c.Leaves {
		mutant := copyOf(t, c)
		mutant.Leaves = slices.Delete(mutant.Leaves, i, i+1)
		if err := mutant.Check(s); err == nil || !strings.Contains(err.Error(), "no leaf bounds all of these plans") {
			t.Errorf("without the leaf of %s: %v", c.Leaves[i].Choice, err)
		}
	}
	if len(c.Leaves) < 3 {
		t.Errorf("%d leaves of two tilings and more: the test tests little", len(c.Leaves))
	}
}
