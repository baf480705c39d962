package nn_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"dahl/dag"
	"dahl/must"
	"dahl/nn"
	"dahl/nn/files"
	"dahl/nn/layers"
	"dahl/nn/models"
)

// pricesOf counts the tiles of all operations under a lowering, by what distinguishes tasks of one price.
func pricesOf(t *testing.T, o *dag.Operations, l *dag.Lowering) map[string]int {
	all := map[string]int{}
	apart := make([]bool, len(o.All))
	add := func(of *dag.Operation) {
		for _, tile := range must.Get(of.Tiles(of.Cut(l.Of(of.Task.Labels.Layer))))(t) {
			all[priceOf(&tile.Task)] += tile.Count
		}
	}
	for i := range o.Fused {
		f := &o.Fused[i]
		if !f.Applies(l.Of(f.Task.Labels.Layer)) {
			continue
		}
		add(&f.Operation)
		for _, of := range f.Of {
			apart[of] = true
		}
	}
	for i := range o.All {
		if !apart[i] {
			add(&o.All[i])
		}
	}
	return all
}

func priceOf(t *dag.Task) string {
	if t.Op == "clip" {
		return t.Op // its shape counts the updates of the lowering
	}
	return fmt.Sprintf("%s %s %s %s %v %g %d", t.Labels.Layer, t.Labels.Phase, t.Op, t.Shape, t.Type, t.Flops, t.MovedBytes)
}

// TestOperations compares the tiles of operations with the tasks of random lowerings that part no fused layers.
func TestOperations(t *testing.T) {
	const batch, samples = 7, 11
	rng := rand.New(rand.NewPCG(3, 14))
	cases := layerCases(t)
	maps.Copy(cases, fusionCases(t))
	maps.Copy(cases, branchCases(t))
	for _, c := range cutCases() {
		cases[c.what] = c.model(t)
	}
	cases["lenet5"] = must.Get(models.ByName("lenet5"))(t)
	cases["residual"] = must.Get(files.LoadModel("examples/residual.toml"))(t)
	clipped := must.Get(files.LoadModel("examples/residual.toml"))(t)
	clipped.Defaults.ClipNorm = 1
	cases["clipped"] = clipped
	tied := nn.Named{Name: "fc2", Layer: layers.Dense{Outputs: 13}, Shares: []string{"fc1"}}
	cases["tied"] = mustNew(t, "tied", []int{13}, layers.Dense{Outputs: 13}, layers.ReLU{}, tied, layers.Dense{Outputs: 5})
	exact, tries := 0, 2
	if testing.Short() {
		tries = 1
	}
	for _, name := range slices.Sorted(maps.Keys(cases)) {
		m := cases[name]
		for try := range tries + 1 { // the last one is an evaluation
			opt := nn.LowerOptions{Batch: batch, Samples: samples, Type: dag.Float32, Train: try < tries}
			opt.Optimizer = []nn.Optimizer{nn.DefaultSGD(), nn.DefaultAdam()}[(try+len(name))%2]
			o := must.Get(m.Operations(opt))(t)
			opt.Lowering = randomLowering(m, rng)
			keepFused(&opt.Lowering, isTracked(m))
			got := pricesOf(t, o, &opt.Lowering)
			want := map[string]int{}
			g := mustLower(t, m, opt)
			for i := range g.Tasks {
				want[priceOf(&g.Tasks[i])]++
			}
			exact++
			for _, key := range slices.Sorted(maps.Keys(want)) {
				if got[key] != want[key] {
					t.Errorf("%s, try %d: %d tasks %s, want %d", name, try, got[key], key, want[key])
				}
			}
			for _, key := range slices.Sorted(maps.Keys(got)) {
				if want[key] == 0 {
					t.Errorf("%s, try %d: %d tasks %s, want none", name, try, got[key], key)
				}
			}
			if t.Failed() {
				t.Fatalf("under %+v", opt.Lowering)
			}
		}
	}
	if exact < 50 {
		t.Errorf("%d lowerings: the test tests little", exact)
	}
}

// keepFused leaves out the cuts that part fused layers.
func keepFused(l *dag.Lowering, normalises bool) {
	keep := func(ll dag.LayerLowering) dag.LayerLowering {
		ll.Forward.Inputs, ll.InputGradient.Outputs = 0, 0
		if normalises {
			ll.Forward.Rows, ll.Forward.Columns = 0, 0
		}
		return ll
	}
	l.Default = keep(l.Default)
	for name, ll := range l.Layers {
		l.Layers[name] = keep(ll)
	}
}
