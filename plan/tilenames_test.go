package plan

import (
	"cmp"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"dahl/dag"
)

// namedTilings is a network of a layer with weights whose gradient is split like it, one whose gradient is
// whole, one without weights, and the input, which has samples only.
func namedTilings() *Tilings {
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
	return &Tilings{Layer: "conv1", Batch: 48, Extents: extents, MostParts: 4, OfBatch: whole, Base: dag.Lowering{Layers: map[string]dag.LayerLowering{
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
		{DefaultTiles, "conv1", []string{"conv1: 4 samples", "conv1: 4 samples; conv1: 4 gradient samples", "conv1: 16 samples", "conv1: 16 samples; conv1: 16 gradient samples",
			"conv1: 3 outputs", "conv1: 4 gradient samples", "conv1: 16 gradient samples", "conv1: 48 gradient samples", "conv1: 3 gradient outputs",
			"conv1: 2 gradient accumulators", "conv1: 8 gradient accumulators"}},
		{DefaultTiles, "input", []string{"input: 8 samples", "input: 32 samples"}},
		{"1 sample per task", "input", []string{"input: 1 sample", "input: 4 samples"}}, // an eighth of conv1's 8, and so 2 of the input's 16
		{WholeTiles, "pool1", []string{"pool1: 24 samples", "pool1: 3 outputs"}},
		{"4 samples per task and whole gradients; input: 4 samples", "input", []string{"input: 2 samples", ""}}, // 8 are what it has by this name
		{"default; fc1: 24 gradient samples", "pool1", []string{"fc1: 24 gradient samples; pool1: 4 samples", "fc1: 24 gradient samples; pool1: 16 samples", "fc1: 24 gradient samples; pool1: 3 outputs"}},
	} {
		checkNear(t, (*Tilings).Near, c.name, c.layer, c.want)
	}
}

// TestFurther: of a pooling of 8 samples in 7 × 3 windows half of the windows of a row are 4 or 3, and of its input gradient, which has the
// forward pass's parts until it has numbers of its own, half
// and twice the samples, half of the channels and of 13 × 11 pixels. Of a
// dense layer half of the inputs are summed in one accumulator or in two.
func TestFurther(t *testing.T) {
	checkNear(t, (*Tilings).Further, "default", "pool1", []string{"pool1: 4 samples", "pool1: 3 outputs", "pool1: 4 rows", "pool1: 2 columns", "pool1: 3 rows", "pool1: 1 column",
		"pool1: 4 input-gradient samples; pool1: 6 input-gradient inputs", "pool1: 16 input-gradient samples; pool1: 6 input-gradient inputs",
		"pool1: 8 input-gradient samples; pool1: 3 input-gradient inputs", "pool1: 8 input-gradient samples; pool1: 6 input-gradient inputs; pool1: 6 input-gradient rows",
		"pool1: 8 input-gradient samples; pool1: 6 input-gradient inputs; pool1: 5 input-gradient columns"})
	names, err := namedTilings().Further("default", "fc1")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"default; fc1: 35 inputs", "default; fc1: 35 inputs; fc1: 2 accumulators", "default; fc1: 35 gradient inputs",
		"default; fc1: 36 inputs; fc1: 2 accumulators; fc1: 36 gradient inputs; fc1: 48 input-gradient samples; fc1: 18 input-gradient inputs"} {
		if !slices.Contains(names, want) {
			t.Errorf("near fc1 there is no %s, but %q", want, names)
		}
	}
}

// TestMixed: a pooling may be whole, or in two or four parts of its 48 samples, 6 outputs, 7 rows or 3 columns.
func TestMixed(t *testing.T) {
	checkNear(t, (*Tilings).Mixed, "default", "pool1", []string{"pool1: 48 samples", "pool1: 24 samples", "pool1: 12 samples", "pool1: 48 samples; pool1: 3 outputs",
		"pool1: 48 samples; pool1: 2 outputs", "pool1: 48 samples; pool1: 4 rows", "pool1: 48 samples; pool1: 2 rows", "pool1: 48 samples; pool1: 2 columns", "pool1: 48 samples; pool1: 1 column"})
}

func checkNear(t *testing.T, near func(t *Tilings, name, layer string) ([]string, error), name, layer string, changes []string) {
	t.Helper()
	got, err := near(namedTilings(), name, layer)
	if err != nil {
		t.Fatal(err)
	}
	base, _, _ := strings.Cut(name, layerSeparator)
	var want []string
	for _, c := range changes {
		want = append(want, strings.TrimSuffix(base+layerSeparator+c, layerSeparator))
	}
	if !slices.Equal(got, want) {
		t.Errorf("near %s of %s: %q, want %q", layer, name, got, want)
	}
}

// TestInParts: the operations of a layer with weights are cut along one dimension, with an accumulator for each part of what they sum.
// Four parts of 6 outputs are three of 2. Two parts of rows are 7 of 13 and 9 of the input's 17, and a dense layer has none.
func TestInParts(t *testing.T) {
	tilings := namedTilings()
	whole := tilings.OfBatch(1).Layers
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
		l, err := tilings.ByName(c.name)
		if err != nil {
			t.Fatal(err)
		}
		if got := l.Layers[c.layer]; got != c.want {
			t.Errorf("%s: %s is %+v, want %+v", c.name, c.layer, got, c.want)
		}
	}
}

// Every name is read back as the lowering that it was given to: from each one 80 steps in which a layer changes, by any
// number. No name is of two lowerings, and no number leaves its extent.
func TestNamesAreReadBack(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 2))
	tilings := namedTilings()
	layers := append(slices.Sorted(maps.Keys(tilings.Base.Layers)), "")
	seen, cut := map[string]dag.Lowering{}, map[string]bool{}
	for _, base := range tilings.Names() {
		name := base
		for range 80 {
			l, err := tilings.ByName(name)
			if err != nil {
				t.Fatal(err)
			}
			if before, ok := seen[name]; ok && !reflect.DeepEqual(before, l) {
				t.Fatalf("%q is %+v and %+v", name, before, l)
			}
			seen[name] = l
			for layer, ll := range l.Layers {
				extents := tilings.Extents[layer]
				for _, q := range quantities {
					if value, most := *q.in(&ll), *q.in(&extents); value < 0 || value > max(most, 1) {
						t.Fatalf("%q: %s has %s", name, layer, q.text(value))
					} else if 0 < value && value < most {
						cut[q.name] = true
					}
				}
			}
			for _, neighbourhood := range []func(*Tilings, string, string) ([]string, error){(*Tilings).Near, (*Tilings).Further, (*Tilings).Mixed} {
				near, err := neighbourhood(tilings, name, layers[r.IntN(len(layers))])
				if err != nil || slices.Contains(near, name) {
					t.Fatalf("near %q are %q, %v", name, near, err)
				}
				if len(near) > 0 && r.IntN(2) == 0 {
					name = near[r.IntN(len(near))]
				}
			}
		}
	}
	if len(seen) < 1000 || len(cut) != len(quantities) {
		t.Errorf("%d names, %d of %d quantities: the test tests little", len(seen), len(cut), len(quantities))
	}
	if unchanged := namedTilings(); !reflect.DeepEqual(tilings.Base, unchanged.Base) || !reflect.DeepEqual(tilings.Extents, unchanged.Extents) {
		t.Error("the lowering that was varied has changed")
	}
}

// TestNamesRefused: a name that says what no lowering has, or says it otherwise than another, is refused with the reason.
func TestNamesRefused(t *testing.T) {
	for name, want := range map[string]string{
		"":                                            "the layers cannot be cut so",
		"3 samples per task":                          "the layers cannot be cut so",
		"best; conv1: 4 samples":                      "the layers cannot be cut so",
		"default; ":                                   "is none of the numbers of a layer",
		"default; conv2: 4 samples":                   "is none of the numbers of a layer",
		"default; conv1: four samples":                "is none of the numbers of a layer",
		"default; conv1: 4 filters":                   `is none of the numbers of a layer, such as "conv1: 2 samples"`,
		"default; conv1: 0 samples":                   "layer conv1 cannot have 0 samples",
		"default; conv1: 49 samples":                  "layer conv1 cannot have 49 samples",
		"default; conv1: 7 outputs":                   "layer conv1 cannot have 7 outputs",
		"default; pool1: 2 gradient samples":          "layer pool1 cannot have 2 gradient samples",
		"1 samples per task":                          "the layers cannot be cut so",
		"default; 49 micro-batches":                   "a batch of 48 cannot have 49 micro-batches",
		"default; 1 micro-batches":                    "a batch of 48 cannot have 1 micro-batches",
		"default; conv1: 4 samples; 2 micro-batches":  `their name is "default; 2 micro-batches; conv1: 4 samples"`,
		"default; conv1: 1 samples":                   `their name is "default; conv1: 1 sample"`,
		"default; conv1: 4 sample":                    `their name is "default; conv1: 4 samples"`,
		"default; conv1: 8 samples":                   `their name is "default"`,
		"default; conv1: +4 samples":                  `their name is "default; conv1: 4 samples"`,
		"default; fc1: 4 samples; conv1: 4 samples":   `their name is "default; conv1: 4 samples; fc1: 4 samples"`,
		"default; conv1: 2 samples; conv1: 4 samples": `their name is "default; conv1: 4 samples"`,
	} {
		if _, err := namedTilings().ByName(name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", name, err, want)
		}
	}
}

// Whatever text is read as a name is the name of what it was read as.
func FuzzTileNames(f *testing.F) {
	for _, text := range []string{"default", "whole; conv1: 4 samples", "4 samples per task; fc1: 24 gradient samples; input: 1 sample", "default; fc1: 2 gradient accumulators"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		tilings := namedTilings()
		l, err := tilings.ByName(text)
		if err != nil {
			return
		}
		base, _, _ := strings.Cut(text, layerSeparator)
		of, err := tilings.ByName(base)
		if own := nameOf(base, &of, &l); err != nil || own != text {
			t.Errorf("%q is read as %q, %v", text, own, err)
		}
	})
}
