package nn_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"dahl/dag"
	"dahl/must"
	"dahl/nn"
	"dahl/nn/files"
	"dahl/nn/layers"
)

// sharedCases are networks whose layers have parameters of others: "tied" convolutions and dense layers, of which
// the first one reads features that lie channels last; a bias alone; and batch normalisations, one of which has a ReLU.
func sharedCases(t testing.TB) map[string]*nn.Model {
	t.Helper()
	of := func(layer nn.Layer, names ...string) nn.Named { return nn.Named{Layer: layer, Shares: names} }
	conv := layers.Conv2D{Filters: 3, Kernel: 3, Pad: 1}
	return map[string]*nn.Model{
		"tied": mustNew(t, "tied", []int{3, 7, 9}, conv, layers.ReLU{}, of(conv, "conv1"), of(conv, "conv2"), layers.ReLU{}, layers.MaxPool{Size: 4},
			layers.Flatten{}, layers.Dense{Outputs: 6}, layers.ReLU{}, of(layers.Dense{Outputs: 6}, "fc1"), of(layers.Dense{Outputs: 6, NoBias: true}, "fc1.weight")),
		"bias": mustNew(t, "bias", []int{5}, layers.Dense{Outputs: 7}, nn.Named{Name: "last", Layer: layers.Dense{Outputs: 7}, Shares: []string{"fc1.bias"}}),
		"norms": mustNew(t, "norms", []int{3, 7, 9}, conv, layers.BatchNorm{}, layers.ReLU{}, conv, of(layers.BatchNorm{}, "bn1"), of(conv, "conv2"),
			of(layers.BatchNorm{}, "bn2.weight"), layers.Flatten{}, layers.Dense{Outputs: 5}),
	}
}

// untied is a network with the same layers, each with parameters of its own.
func untied(t testing.TB, m *nn.Model) *nn.Model {
	all := m.Named()
	for i := range all {
		n := all[i].(nn.Named)
		n.Shares = nil
		all[i] = n
	}
	return mustNew(t, m.Name, m.Input, all...)
}

// TestSharedGradientsAreSums: the gradient is the sum of those that the layers have apart, with equal numbers in them, to the
// bit: the last layer's and the one's before it are added to the first's.
func TestSharedGradientsAreSums(t *testing.T) {
	const batch = 7
	for name, m := range sharedCases(t) {
		for _, l := range []dag.Lowering{{}, {Default: dag.LayerLowering{
			Forward: dag.Cut{Samples: 2, Outputs: 2}, WeightGradient: dag.Cut{Samples: 2, Outputs: 2, Accumulators: 2}}}, {MicroBatches: 2}} {
			if l.MicroBatches > 0 && isTracked(m) {
				continue
			}
			opt := nn.LowerOptions{Batch: batch, Type: dag.Float64, Train: true, Samples: batch, Lowering: l, Optimizer: keepsGradients}
			other := untied(t, m)
			one, many := newInterpreter(t, mustLower(t, m, opt), map[string][]uint64{}), newInterpreter(t, mustLower(t, other, opt), map[string][]uint64{})
			one.fill(m, "train", 3)
			copy(many.bytes("data.train.images"), one.bytes("data.train.images"))
			copy(many.ints("data.train.labels"), one.ints("data.train.labels"))
			of := m.SharedNames()
			for _, p := range other.Parameters() {
				from := p.Name
				if of[from] != "" {
					from = of[from]
				}
				many.setFloats(p.Name, one.floats(from))
			}
			one.step(indices(0, batch), 0, 1)
			many.step(indices(0, batch), 0, 1)
			for _, p := range m.Parameters() {
				want := many.floats("grad." + p.Name)
				for _, q := range slices.Backward(other.Parameters()) {
					if of[q.Name] != p.Name {
						continue
					}
					for i, v := range many.floats("grad." + q.Name) {
						want[i] += v
					}
				}
				if got := one.floats("grad." + p.Name); !slices.Equal(got, want) {
					t.Errorf("%s, %+v: grad.%s is %v, want %v", name, l, p.Name, got, want)
				}
			}
		}
	}
}

// TestSharedParametersAreOne: a parameter of several layers is counted, begins and is updated once. "tied" has convolutions
// of 3·3·9 weights and 3 biases and dense layers of 36 and 6, "bias" 7·5 and 7·7 weights and one bias of 7,
// and "norms" 84 for each of two convolutions, two weights and one bias of 3 each and a dense layer of 3·63·5 + 5.
func TestSharedParametersAreOne(t *testing.T) {
	for name, want := range map[string]struct {
		weights int
		updates string
	}{
		"tied":  {81 + 3 + 36 + 6, "conv1.bias conv1.weight fc1.bias fc1.weight"},
		"bias":  {35 + 49 + 7, "fc1.bias fc1.weight last.weight"},
		"norms": {2*84 + 3 + 3 + 3 + 945 + 5, "bn1.bias bn1.weight bn3.bias conv1.bias conv1.weight conv2.bias conv2.weight fc1.bias fc1.weight"},
	} {
		m := sharedCases(t)[name]
		if got := m.NumWeights(); got != want.weights {
			t.Errorf("%s has %d weights, want %d", name, got, want.weights)
		}
		for _, clip := range []float64{0, 1} {
			g := mustLower(t, clippedAt(m, clip), nn.LowerOptions{Batch: 5, Type: dag.Float32, Train: true, Samples: 5, Lowering: nn.DefaultLowering(m, 5, 0, dag.Float32)})
			updated := map[string]int{}
			for i := range g.Tasks {
				for _, a := range g.Tasks[i].Accesses {
					if b := &g.Buffers[g.Storage(a.Buffer)]; b.Role == dag.Parameter && a.Mode.Writes() {
						updated[b.Name]++
					}
				}
			}
			var names []string
			for p, times := range updated {
				if names = append(names, p); times != 1 && !strings.HasPrefix(p, "fc1") {
					t.Errorf("%s: %s is updated by %d tasks", name, p, times)
				}
			}
			slices.Sort(names)
			if got := strings.Join(names, " "); got != want.updates {
				t.Errorf("%s: updates of %s, want %s", name, got, want.updates)
			}
		}
	}
}

// TestWeightsOf: a model file names the layer whose parameters a layer has, within a block by a name of the block.
func TestWeightsOf(t *testing.T) {
	const head = "name = \"m\"\ninput = [5]\n[[layer]]\nkind = \"dense\"\nname = \"a\"\noutputs = 5\n"
	for src, want := range map[string]string{
		head + "[[layer]]\nkind = \"dense\"\noutputs = 5\nweights_of = \"a\"\n":        "map[fc2.bias:a.bias fc2.weight:a.weight]",
		head + "[[layer]]\nkind = \"dense\"\noutputs = 5\nweights_of = \"a.weight\"\n": "map[fc2.weight:a.weight]",
		head + "[[block]]\nkind = \"pair\"\nlayer = [{kind = \"dense\", name = \"a\", outputs = 5}, {kind = \"dense\", name = \"b\", outputs = 5, weights_of = \"a\"}]\n" +
			"[[layer]]\nkind = \"pair\"\nname = \"p\"\n": "map[p.b.bias:p.a.bias p.b.weight:p.a.weight]",
	} {
		m := must.Get(files.ParseModel([]byte(src), "f.toml"))(t)
		fitted := must.Get(m.For([]int{5}, 5))(t)
		for _, m := range []*nn.Model{m, fitted} {
			if got := fmt.Sprint(m.SharedNames()); got != want {
				t.Errorf("%s: %s, want %s", src, got, want)
			}
		}
	}
	_, err := files.ParseModel([]byte(head+"[[layer]]\nkind = \"dense\"\noutputs = 5\nweights_of = \"b\"\n"), "f.toml")
	if want := `f.toml:10: model "m": layer "fc2": it shares "b", and no layer with weights before it has this name; there are a`; err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}

// TestSharingErrors: what cannot be one parameter is refused by the names of both.
func TestSharingErrors(t *testing.T) {
	for want, list := range map[string][]nn.Layer{
		`layer "fc2": it shares "fc3", and no layer with weights before it has this name; there are fc1`: {layers.Dense{Outputs: 5}, nn.Named{Layer: layers.Dense{Outputs: 5}, Shares: []string{"fc3"}}},
		`layer "fc2": it shares "fc1": its weight has shape 5×7, and that of this layer 5×5`:             {layers.Dense{Outputs: 5}, nn.Named{Layer: layers.Dense{Outputs: 5}, Shares: []string{"fc1"}}},
		`layer "fc2": it shares "fc1.bias": this layer has no bias`:                                      {layers.Dense{Outputs: 7}, nn.Named{Layer: layers.Dense{Outputs: 7, NoBias: true}, Shares: []string{"fc1.bias"}}},
	} {
		if _, err := nn.New("m", []int{7}, list...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}
