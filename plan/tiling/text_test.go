package tiling

import (
	"cmp"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"dahl/dag"
	"dahl/must"
)

// network is a network of a layer with weights whose gradient is split like it, one whose gradient is
// whole, one without weights, and the input, which has samples only.
func network() *Network {
	extents := map[string]dag.LayerLowering{
		"conv1": {Forward: dag.Cut{Samples: 48, Outputs: 6, Inputs: 5, Rows: 13, Columns: 11, Accumulators: 5},
			InputGradient:  dag.Cut{Samples: 48, Outputs: 6, Inputs: 5, Rows: 17, Columns: 19, Accumulators: 6},
			WeightGradient: dag.Cut{Samples: 48, Outputs: 6, Inputs: 5, Rows: 13, Columns: 11, Accumulators: 48 * 13 * 11}},
		"fc1": {Forward: dag.Cut{Samples: 48, Outputs: 30, Inputs: 71, Accumulators: 71}, InputGradient: dag.Cut{Samples: 48, Outputs: 30, Inputs: 71, Accumulators: 30},
			WeightGradient: dag.Cut{Samples: 48, Outputs: 30, Inputs: 71, Accumulators: 48}},
		"pool1": {Forward: dag.Cut{Samples: 48, Outputs: 6, Rows: 7, Columns: 3}, InputGradient: dag.Cut{Samples: 48, Inputs: 6, Rows: 13, Columns: 11}},
		"input": {Forward: dag.Cut{Samples: 48}},
	}
	whole := func(int) dag.Lowering {
		l := dag.Lowering{Layers: map[string]dag.LayerLowering{}}
		for name, of := range extents {
			l.Layers[name] = dag.LayerLowering{Forward: dag.Cut{Samples: 48, Outputs: of.Forward.Outputs}, WeightGradient: dag.Cut{Samples: of.WeightGradient.Samples}}
		}
		return l
	}
	return &Network{Layer: "conv1", Batch: 48, Extents: extents, MostParts: 4, OfBatch: whole, Recomputable: []string{"pool1", "conv1", "fc1"}, JoinsLoss: true, Default: dag.Lowering{Layers: map[string]dag.LayerLowering{
		"conv1": {Forward: dag.Cut{Samples: 8, Outputs: 6}, WeightGradient: dag.Cut{Samples: 8, Outputs: 6, Accumulators: 4}},
		"fc1":   {Forward: dag.Cut{Samples: 48, Outputs: 15}, WeightGradient: dag.Cut{Samples: 48, Outputs: 15, Accumulators: 1}},
		"pool1": {Forward: dag.Cut{Samples: 8, Outputs: 6}},
		"input": {Forward: dag.Cut{Samples: 16}},
	}}}
}

// TestNear: of a layer of 8 samples in a batch of 48 there are 4 and 16 samples, with the gradient's 8 or as many; 3 of
// its 6 outputs, and no more; its gradient alone with 4, 16 or all samples, 3 outputs, and half or twice the accumulators.
func TestNear(t *testing.T) {
	for _, c := range []struct {
		name, layer string
		want        []string
	}{
		{"default", "conv1", []string{"conv1: 4 samples", "conv1: 4 samples; conv1: 4 gradient samples", "conv1: 16 samples", "conv1: 16 samples; conv1: 16 gradient samples",
			"conv1: 3 outputs", "conv1: 4 gradient samples", "conv1: 16 gradient samples", "conv1: 48 gradient samples", "conv1: 3 gradient outputs",
			"conv1: 2 gradient accumulators", "conv1: 8 gradient accumulators"}},
		{"default", "input", []string{"input: 8 samples", "input: 32 samples"}},
		{"1 sample per task", "input", []string{"input: 1 sample", "input: 4 samples"}}, // an eighth of conv1's 8, and so 2 of the input's 16
		{"whole", "pool1", []string{"pool1: 24 samples", "pool1: 3 outputs"}},
		{"4 samples per task and whole gradients; input: 4 samples", "input", []string{"input: 2 samples", ""}}, // 8 are what it has by this name
		{"default; fc1: 24 gradient samples", "pool1", []string{"fc1: 24 gradient samples; pool1: 4 samples", "fc1: 24 gradient samples; pool1: 16 samples", "fc1: 24 gradient samples; pool1: 3 outputs"}},
	} {
		checkNear(t, (*Network).Neighbours, c.name, c.layer, c.want)
	}
}

// TestFurther: of a pooling of 8 samples in 7 × 3 windows half of the windows of a row are 4 or 3, and of its input gradient, which has the
// forward pass's parts until it has numbers of its own, half
// and twice the samples, half of the channels and of 13 × 11 pixels. Of a
// dense layer half of the inputs are summed in one accumulator or in two.
func TestFurther(t *testing.T) {
	checkNear(t, (*Network).Further, "default", "pool1", []string{"pool1: 4 samples", "pool1: 3 outputs", "pool1: 4 rows", "pool1: 2 columns", "pool1: 3 rows", "pool1: 1 column",
		"pool1: 4 input-gradient samples; pool1: 6 input-gradient inputs", "pool1: 16 input-gradient samples; pool1: 6 input-gradient inputs",
		"pool1: 8 input-gradient samples; pool1: 3 input-gradient inputs", "pool1: 8 input-gradient samples; pool1: 6 input-gradient inputs; pool1: 6 input-gradient rows",
		"pool1: 8 input-gradient samples; pool1: 6 input-gradient inputs; pool1: 5 input-gradient columns"})
	names := nearest(t, (*Network).Further, "default", "fc1")
	for _, want := range []string{"default; fc1: 35 inputs", "default; fc1: 35 inputs; fc1: 2 accumulators", "default; fc1: 35 gradient inputs",
		"default; fc1: 36 inputs; fc1: 2 accumulators; fc1: 36 gradient inputs; fc1: 48 input-gradient samples; fc1: 18 input-gradient inputs"} {
		if !slices.Contains(names, want) {
			t.Errorf("near fc1 there is no %s, but %q", want, names)
		}
	}
}

// TestSmaller: of a batch of 48 and of three layers that may be recomputed there are first the joined loss, then an eighth, a quarter, a half and
// all of the layers, rounded up, both, and with both ever more micro-batches. What has such a number has no further ones.
func TestSmaller(t *testing.T) {
	var names []string
	for _, to := range network().Smaller(parse(t, "whole; fc1: 5 outputs")) {
		l := must.Get(network().Lowering(to))(t)
		if to != parse(t, to.String()) || !l.JoinLoss && len(l.Recompute) == 0 {
			t.Errorf("%q is %+v", to, l)
		}
		names = append(names, strings.TrimSuffix(strings.TrimPrefix(to.String(), "whole; "), "; fc1: 5 outputs"))
	}
	both := "joined loss; 3 recomputed layers"
	want := []string{"joined loss", "1 recomputed layer", "2 recomputed layers", "3 recomputed layers", both}
	for _, micro := range []string{"2", "4", "8", "16", "32"} {
		want = append(want, micro+" micro-batches; "+both)
	}
	if !slices.Equal(names, want) {
		t.Errorf("%q, want %q", names, want)
	}
	if more := network().Smaller(parse(t, "whole; joined loss")); more != nil {
		t.Errorf("%q are smaller than a joined loss", more)
	}
	checkNear(t, (*Network).Further, "default; 4 micro-batches; 2 recomputed layers", "", []string{"2 micro-batches; 2 recomputed layers", "8 micro-batches; 2 recomputed layers",
		"4 micro-batches; joined loss; 2 recomputed layers", "4 micro-batches; 1 recomputed layer"})
	checkNear(t, (*Network).Further, "default", "", []string{"2 micro-batches"})
}

// TestMixed: a pooling may be whole, or in two or four parts of its 48 samples, 6 outputs, 7 rows or 3 columns.
func TestMixed(t *testing.T) {
	checkNear(t, (*Network).Mixed, "default", "pool1", []string{"pool1: 48 samples", "pool1: 24 samples", "pool1: 12 samples", "pool1: 48 samples; pool1: 3 outputs",
		"pool1: 48 samples; pool1: 2 outputs", "pool1: 48 samples; pool1: 4 rows", "pool1: 48 samples; pool1: 2 rows", "pool1: 48 samples; pool1: 2 columns", "pool1: 48 samples; pool1: 1 column"})
}

// nearest are the texts of a neighbourhood.
func nearest(t *testing.T, near Neighbourhood, name, layer string) (names []string) {
	t.Helper()
	all := must.Get(near(network(), parse(t, name), layer))(t)
	for _, to := range all {
		names = append(names, to.String())
	}
	return names
}

func parse(t *testing.T, text string) Tiling {
	t.Helper()
	return must.Get(Parse(text))(t)
}

func checkNear(t *testing.T, near Neighbourhood, name, layer string, changes []string) {
	t.Helper()
	got := nearest(t, near, name, layer)
	base, _, _ := strings.Cut(name, separator)
	var want []string
	for _, c := range changes {
		want = append(want, strings.TrimSuffix(base+separator+c, separator))
	}
	if !slices.Equal(got, want) {
		t.Errorf("near %s of %s: %q, want %q", layer, name, got, want)
	}
}

// TestInParts: the operations of a layer with weights are cut along one dimension, with an accumulator for each part of what they sum.
// Four parts of 6 outputs are three of 2. Two parts of rows are 7 of 13 and 9 of the input's 17, and a dense layer has none.
func TestInParts(t *testing.T) {
	n := network()
	whole := n.OfBatch(1).Layers
	with := func(layer string, forward, input, weight dag.Cut) dag.LayerLowering {
		ll := whole[layer]
		forward.Samples, forward.Outputs = 48, cmp.Or(forward.Outputs, ll.Forward.Outputs)
		weight.Samples = ll.WeightGradient.Samples
		return dag.LayerLowering{Forward: forward, InputGradient: input, WeightGradient: weight}
	}
	for _, c := range []struct {
		name, layer string
		want        dag.LayerLowering
	}{
		{"4 parts of the outputs", "conv1", with("conv1", dag.Cut{Outputs: 2}, dag.Cut{Outputs: 2, Accumulators: 3}, dag.Cut{Outputs: 2})},
		{"2 parts of the inputs", "fc1", with("fc1", dag.Cut{Inputs: 36, Accumulators: 2}, dag.Cut{Inputs: 36}, dag.Cut{Inputs: 36})},
		{"2 parts of the rows", "conv1", with("conv1", dag.Cut{Rows: 7}, dag.Cut{Rows: 9}, dag.Cut{Rows: 7, Accumulators: 2})},
		{"2 parts of the rows", "fc1", whole["fc1"]},
		{"2 parts of the rows", "pool1", with("pool1", dag.Cut{Rows: 4}, dag.Cut{}, dag.Cut{})},
		{"4 parts of the columns", "pool1", with("pool1", dag.Cut{Columns: 1}, dag.Cut{}, dag.Cut{})},
	} {
		l := must.Get(n.Lowering(parse(t, c.name)))(t)
		if got := l.Layers[c.layer]; got != c.want {
			t.Errorf("%s: %s is %+v, want %+v", c.name, c.layer, got, c.want)
		}
	}
}

// Every tiling is read back from its text: from each base 80 steps in which a layer changes, by any
// number. No two tilings are one lowering's, and no number leaves its extent.
func TestTextsAreReadBack(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 2))
	n := network()
	layers := append(slices.Sorted(maps.Keys(n.Default.Layers)), "")
	seen, cut := map[Tiling]dag.Lowering{}, map[number]bool{}
	for _, to := range n.All() {
		for range 80 {
			if read := parse(t, to.String()); read != to {
				t.Fatalf("%q is read as %q", to, read)
			}
			l := must.Get(n.Lowering(to))(t)
			if before, ok := seen[to]; ok && !reflect.DeepEqual(before, l) {
				t.Fatalf("%q is %+v and %+v", to, before, l)
			}
			seen[to] = l
			for layer, ll := range l.Layers {
				extents := n.Extents[layer]
				for _, of := range numbers {
					if value, most := *of.in(&ll), *of.in(&extents); value < 0 || value > max(most, 1) {
						t.Fatalf("%q: %s has %s", to, layer, of.text(value))
					} else if 0 < value && value < most {
						cut[of] = true
					}
				}
			}
			for _, neighbourhood := range []Neighbourhood{(*Network).Neighbours, (*Network).Further, (*Network).Mixed} {
				near, err := neighbourhood(n, to, layers[r.IntN(len(layers))])
				if err != nil || slices.Contains(near, to) {
					t.Fatalf("near %q are %q, %v", to, near, err)
				}
				if len(near) > 0 && r.IntN(2) == 0 {
					to = near[r.IntN(len(near))]
				}
			}
		}
	}
	if len(seen) < 1000 || len(cut) != len(numbers) {
		t.Errorf("%d tilings, %d of %d numbers: the test tests little", len(seen), len(cut), len(numbers))
	}
	if unchanged := network(); !reflect.DeepEqual(n.Default, unchanged.Default) || !reflect.DeepEqual(n.Extents, unchanged.Extents) {
		t.Error("the lowering that was varied has changed")
	}
}

// TestNamesRefused: a name that says what no lowering has, or says it otherwise than another, is refused with the reason.
func TestNamesRefused(t *testing.T) {
	for name, want := range map[string]string{
		"":                                            "the layers cannot be cut so",
		"49 samples per task":                         "the layers cannot be cut so",
		"best; conv1: 4 samples":                      "the layers cannot be cut so",
		"default; ":                                   "is none of the numbers of a layer",
		"default; conv2: 4 samples":                   "is none of the numbers of a layer",
		"default; conv1: four samples":                "is none of the numbers of a layer",
		"default; conv1: 4 filters":                   `is none of the numbers of a layer, such as "conv1: 2 samples"`,
		"default; conv1: 0 samples":                   `their name is "default; conv1: all samples"`,
		"default; conv1: 49 samples":                  "layer conv1 cannot have 49 samples",
		"default; conv1: 7 outputs":                   "layer conv1 cannot have 7 outputs",
		"default; pool1: 2 gradient samples":          "layer pool1 cannot have 2 gradient samples",
		"1 samples per task":                          "the layers cannot be cut so",
		"default; 49 micro-batches":                   "a network with a batch of 48 cannot have 49 micro-batches",
		"default; 1 micro-batches":                    "a network with a batch of 48 cannot have 1 micro-batches",
		"default; 1 recomputed layers":                `"default; 1 recomputed layers": "1 recomputed layers" is none`,
		"default; 4 recomputed layers":                "cannot have 4 recomputed layers",
		"default; 2 joined loss":                      "is none of the numbers of a layer",
		"default; joined loss; 2 micro-batches":       `their name is "default; 2 micro-batches; joined loss"`,
		"default; conv1: 4 samples; 2 micro-batches":  `their name is "default; 2 micro-batches; conv1: 4 samples"`,
		"default; conv1: 1 samples":                   `their name is "default; conv1: 1 sample"`,
		"default; conv1: 4 sample":                    `their name is "default; conv1: 4 samples"`,
		"default; conv1: 8 samples":                   `their name is "default"`,
		"default; conv1: +4 samples":                  `their name is "default; conv1: 4 samples"`,
		"default; fc1: 4 samples; conv1: 4 samples":   `their name is "default; conv1: 4 samples; fc1: 4 samples"`,
		"default; conv1: 2 samples; conv1: 4 samples": `their name is "default; conv1: 4 samples"`,
	} {
		to, err := Parse(name)
		if err == nil {
			_, err = network().Lowering(to)
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", name, err, want)
		}
	}
}

// Whatever text is read is that of what it was read as.
func FuzzParse(f *testing.F) {
	for _, text := range []string{"default", "whole; conv1: 4 samples", "4 samples per task; fc1: 24 gradient samples; input: 1 sample", "default; fc1: 2 gradient accumulators"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		to, err := Parse(text)
		if err != nil {
			return
		}
		if own := to.String(); own != text {
			t.Errorf("%q is read as %q", text, own)
		}
		n := network()
		l, err := n.Lowering(to)
		if again, errAgain := n.Lowering(to); !reflect.DeepEqual(l, again) || (err == nil) != (errAgain == nil) {
			t.Errorf("%q is %+v, and %+v", text, l, again)
		}
	})
}
