package files_test

import (
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode"

	"dahl/dag"
	"dahl/must"
	"dahl/nn"
	"dahl/nn/files"
	"dahl/nn/layers"
	"dahl/nn/models"
)

// TestExampleModel checks that the shipped model file says what lenet5 is in Go.
func TestExampleModel(t *testing.T) {
	m := must.Get(files.LoadModel("../examples/model.toml"))(t)
	want := must.Get(models.ByName("lenet5"))(t)
	// The file writes out what Go leaves at 0, where 0 means the same.
	opt := nn.LowerOptions{Batch: 7, Type: dag.Float32, Train: true, Samples: 11, Lowering: dag.Lowering{}}
	got, wanted := lowered(t, m, opt), lowered(t, want, opt)
	if !reflect.DeepEqual(got.Tasks, wanted.Tasks) || !reflect.DeepEqual(got.Buffers, wanted.Buffers) {
		t.Error("../examples/model.toml lowers to another graph than lenet5")
	}
	if m.Name != want.Name || m.Defaults.Batch != want.Defaults.Batch || m.Defaults.String() != want.Defaults.String() {
		t.Errorf("defaults are %+v, want %+v", m.Defaults, want.Defaults)
	}
}

// TestExampleOfBranches: the shipped model file with branches lowers, and its comment lists every
// kind of layer and all settings.
func TestExampleOfBranches(t *testing.T) {
	m := must.Get(files.LoadModel("../examples/residual.toml"))(t)
	lowered(t, m, nn.LowerOptions{Batch: 7, Type: dag.Float32, Train: true, Samples: 11, Lowering: nn.DefaultLowering(m, 7, 0, dag.Float32)})
	text := must.Get(os.ReadFile("../examples/residual.toml"))(t)
	comment, _, _ := strings.Cut(string(text), "\nname")
	words := strings.FieldsFunc(comment, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '_' })
	for _, kind := range layers.All() {
		for _, word := range append([]string{kind.Kind}, keyNames(kind.Keys)...) {
			if !slices.Contains(words, word) {
				t.Errorf("the comment lacks %q of kind %q", word, kind.Kind)
			}
		}
	}
}

// TestExampleOfSequences: the shipped model file takes tokens, 32·24 numbers of which are in the table and 16·24 in the positions, beside a
// dense layer of 24·24 + 24. Its last layer has the table.
func TestExampleOfSequences(t *testing.T) {
	m := must.Get(files.LoadModel("../examples/tagger.toml"))(t)
	if m.Vocabulary() != 32 || m.NumWeights() != 32*24+16*24+24*24+24 || m.Classes() != 32 || !slices.Equal(m.Positions(), []int{16}) {
		t.Errorf("%d tokens, %d weights, %d classes at %v", m.Vocabulary(), m.NumWeights(), m.Classes(), m.Positions())
	}
}

func keyNames(keys []layers.Key) (names []string) {
	for _, k := range keys {
		names = append(names, k.Name)
	}
	return names
}

func TestExampleLowering(t *testing.T) {
	l := must.Get(files.LoadLowering("../examples/lowering.toml"))(t)
	want := dag.LayerLowering{Forward: dag.Cut{Samples: 8, Outputs: 3}, WeightGradient: dag.Cut{Samples: 8, Outputs: 6, Accumulators: 2}, Recompute: true}
	if l.Of("conv1") != want || l.Of("relu1").Forward.Samples != 8 {
		t.Errorf("lowering is %+v", l)
	}
	m, _ := models.ByName("lenet5")
	lowered(t, m, nn.LowerOptions{Batch: 32, Type: dag.Float32, Train: true, Samples: 32, Lowering: l})

	l = must.Get(files.LoadLowering("../examples/stages.toml"))(t)
	if stages := []dag.Stage{{From: "conv1", Device: "cpu"}, {From: "fc1", Device: "gpu"}}; !reflect.DeepEqual(l.Stages, stages) || l.Order != "1f1b" || l.MicroBatches != 8 {
		t.Errorf("lowering is %+v", l)
	}
	lowered(t, m, nn.LowerOptions{Batch: 32, Type: dag.Float32, Train: true, Samples: 32, Lowering: l})
}

// TestLoweringRoundTrip writes and reads the default lowering of every model.
func TestLoweringRoundTrip(t *testing.T) {
	for _, info := range models.All() {
		want := nn.DefaultLowering(info.New(), 17, 1<<19, dag.Float64)
		want.MicroBatches, want.Stash, want.VerticalSync, want.Order, want.Stages = 5, true, true, "gpipe", []dag.Stage{{From: "input", Device: "a \"b\""}, {From: "fc1", Devices: []string{"c", "d\\"}, Along: dag.AlongRows, Sum: dag.Ring}, {From: "fc2", Devices: []string{"c", "d"}, Shares: []int{5, 3}, BucketBytes: 77, Statistics: dag.OnEach}}
		want.Recompute = []string{"h.*.attn", "fc\"?"}
		want.Default = dag.LayerLowering{Forward: dag.Cut{Samples: 3}, WeightGradient: dag.Cut{Accumulators: 2}, Recompute: true}
		var text strings.Builder
		must.Do(t, files.WriteLowering(&text, want))
		got, err := files.ParseLowering([]byte(text.String()), "written")
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v: read %+v, want %+v", info.Name, err, got, want)
		}
	}
}

// TestFileErrors checks that an error names file, line, key, value and the fix.
func TestFileErrors(t *testing.T) {
	const ok = "name = \"m\"\ninput = [1, 8, 8]\n"
	for _, c := range []struct{ src, want string }{
		{"", `f.toml:1: name is missing; write name = "lenet5"`},
		{"name = \"m\"\n", "f.toml:1: input is missing; write input = the shape of one sample"},
		{"input = [1, 8, 8]\n", `f.toml:1: name is missing; write name = "lenet5"`},
		{"name = 7\ninput = [7]\n", "f.toml:1: name = 7: want a text in quotes"},
		{"name = \"m\"\ninput = [1, 0, 8]\n", "f.toml:2: input = [1 0 8]: write the shape"},
		{"name = \"m\"\ninput = [1, 2, 3, 4, 5]\n[[layer]]\nkind = \"relu\"\n", "f.toml:2: model \"m\": input: shape 1×2×3×4×5; want 1 to 4 dimensions"},
		{ok, "f.toml:1: layer is missing; write at least one [[layer]]"},
		{ok + "colour = 3\n", "f.toml:3: colour: unknown key; known are name, input, [[layer]], [[block]], train"},
		{ok + "[[layer]]\nkind = \"relu\"\n[[layer]]\nkind = \"conv\"\n", `f.toml:6: layer 2: kind = "conv": write one of conv2d, dense,`},
		{ok + "[[layer]]\nkind = \"dense\"\noutputs = -3\n", "f.toml:5: layer 1: outputs = -3: want a whole number from 1 to"},
		{ok + "[[layer]]\nkind = \"dense\"\noutputs = 2.5\n", "f.toml:5: layer 1: outputs = 2.5: want a whole number"},
		{ok + "[[layer]]\nkind = \"dense\"\n", "f.toml:3: layer 1: outputs is missing; write outputs = a whole number from 1 to"},
		{ok + "[[layer]]\nkind = \"leaky_relu\"\nslope = 1.5\n", "f.toml:5: layer 1: slope = 1.5: want a number from 0 to 1"},
		{ok + "[[layer]]\nkind = \"relu\"\nsize = 2\n", "f.toml:5: layer 1: size: unknown key; known are kind, name, input"},
		{ok + "[[layer]]\nkind = \"dense\"\noutputs = 3\n", "layer \"fc1\" (dense) of input 1×8×8: a dense layer needs a vector; put a flatten before it"},
		{ok + "[[layer]]\nkind = \"conv2d\"\nfilters = 2\nkernel = 9\n", "layer \"conv1\" (conv2d) of input 1×8×8: window 9 is larger than the input, 8 with padding"},
		{ok + "[[layer]]\nkind = \"maxpool\"\nsize = 3\npad = 2\n", "f.toml:3: model \"m\": layer \"pool1\" (maxpool) of input 1×8×8: pad 2; want 0 to 1, half of the window"},
		{ok + "[[layer]]\nkind = \"conv2d\"\nfilters = 2\nkernel = [3, 0]\n", "f.toml:6: layer 1: kernel = [3 0]: want [rows, columns], whole numbers from 1 to 16777216"},
		{ok + "[[layer]]\nkind = \"conv2d\"\nfilters = 2\nkernel = 3\npad = [1, 2, 3]\n", "f.toml:7: layer 1: pad = [1 2 3]: want [rows, columns], whole numbers from 0 to 16777216, or [top, left, bottom, right]"},
		{ok + "[[layer]]\nkind = \"conv2d\"\nfilters = 2\nkernel = 3\ndilation = [1, 4]\n", "layer \"conv1\" (conv2d) of input 1×8×8: window 9 is larger than the input, 8 with padding"},
		{ok + "[[layer]]\nkind = \"conv2d\"\nfilters = 6\nkernel = 3\ngroups = 2\n", "layer \"conv1\" (conv2d) of input 1×8×8: 2 groups; want a divisor of the 1 channels and the 6 filters"},
		{ok + "[[layer]]\nkind = \"flatten\"\nname = \"loss\"\n", "names beginning with \"loss\" are for dahl's own buffers"},
		{ok + "[[layer]]\nkind = \"relu\"\n[train]\nlr = nan\n", "f.toml:6: train: lr = NaN: write a number of at least 0"},
		{ok + "[[layer]]\nkind = \"relu\"\n[train]\noptimizer = \"adamw\"\ndecay_dims = 5\n", "f.toml:7: train: decay_dims = 5: want a whole number from 0 to 4"},
		{ok + "[[layer]]\nkind = \"relu\"\n[train]\nnesterov = true\n", "f.toml:5: train: sgd: nesterov needs a momentum above 0"},
		{ok + "[[layer]]\nkind = \"relu\"\n[train]\noptimizer = \"lbfgs\"\n", `f.toml:6: train: optimizer = "lbfgs": write one of sgd, adam, adamw`},
		{ok + "[[layer]]\nkind = \"relu\"\n[train]\nloss = \"hinge\"\n", `f.toml:5: train: loss "hinge" is not one of cross_entropy, mse`},
		{ok + "[[layer]]\nkind = \"relu\"\n[train]\nloss = \"mse\"\nlabel_smoothing = 0.1\n", "f.toml:5: train: label smoothing belongs to cross_entropy; the loss is mse"},
		{ok + "[[layer]]\nkind = \"relu\"\n[train]\nclip_norm = -1\n", "f.toml:6: train: clip_norm = -1: write a number of at least 0"},
		{ok + "[[layer]]\nkind = \"relu\"\n[train]\nschedule = \"step\"\n", `f.toml:6: train: schedule = "step": schedule step: every=: write a number of epochs`},
		{ok + "x = = 3\n", "f.toml:3: "},
	} {
		_, err := files.ParseModel([]byte(c.src), "f.toml")
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: error %v, want one line with %q", c.src, err, c.want)
		}
	}
	for _, c := range []struct{ src, want string }{
		{"fused = 1\n", "f.toml:1: fused = 1: write true or false"},
		{"fused = false\n", "f.toml:1: fused = false: layers that one operation computes are one task: write true, or leave the line out"},
		{"fused = true\nlayout = \"nchw\"\n", "f.toml:2: layout = \"nchw\": images have their channels last: write \"nhwc\", or leave the line out"},
		{"[layer.conv1]\nsamples = -1\n", "f.toml:2: layer: conv1: samples = -1: want a whole number from 0 to"},
		{"[layer.conv1]\nrecompute = \"yes\"\n", "f.toml:2: layer: conv1: recompute = \"yes\": write true or false"},
		{"[layer.conv1]\ntile = 1\n", "f.toml:2: layer: conv1: tile: unknown key; known are samples,"},
		{"layer = 3\n", "f.toml:1: layer = 3: want a table"},
		{"order = \"1f1b\"\n", "f.toml:1: order = \"1f1b\": only stages have an order; write at least one [[stage]], or leave the line out"},
		{"micro_batches = 2\n[[stage]]\nfrom = \"fc1\"\n", "f.toml:2: stage 1: device is missing; write device = the name of a device, a unit or a kind"},
		{"[[stage]]\nfrom = \"fc1\"\ndevice = \"gpu\"\nto = 3\n", "f.toml:4: stage 1: to: unknown key; known are from, device"},
		{"[[stage]]\nfrom = \"fc1\"\ndevices = [\"a\", \"b\"]\nsum = \"rings\"\n", `f.toml:4: stage 1: sum = "rings": sum "rings" is not one of direct, ring, tree, hierarchical; did you mean ring`},
		{"[[stage]]\nfrom = \"fc1\"\ndevices = [\"a\", \"b\"]\ndevice = \"a\"\n", `f.toml:4: stage 1: device = "a": write device or devices`},
		{"[[stage]]\nfrom = \"fc1\"\ndevices = [\"a\", \"b\"]\nreplicas = 3\n", "f.toml:4: stage 1: replicas = 3: want a whole number from 0 to 2"},
		{"[[stage]]\nfrom = \"fc1\"\ndevices = []\n", "f.toml:3: stage 1: devices = \"[]\": write the names of the devices that share the stage"},
	} {
		_, err := files.ParseLowering([]byte(c.src), "f.toml")
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: error %v, want %q", c.src, err, c.want)
		}
	}
}

// FuzzParseModel checks that no input panics, and that a model that parses has a
// consistent shape and lowers.
func FuzzParseModel(f *testing.F) {
	example := must.Get(os.ReadFile("../examples/model.toml"))(f)
	branches := must.Get(os.ReadFile("../examples/residual.toml"))(f)
	f.Add(string(example))
	f.Add(string(branches))
	f.Add("name = \"m\"\ninput = [7]\n[[layer]]\nkind = \"dense\"\noutputs = 3\n")
	f.Add("name = \"m\"\ninput = [16777216, 16777216, 16777216]\n[[layer]]\nkind = \"flatten\"\n")
	f.Add("name = \"m\"\ninput = [1, 2, 3]\nlayer = [{kind = \"relu\"}, 3]\n")
	f.Add("[train]\nlr = inf\n[[layer]]\n[[layer]]\nkind = []\n")
	f.Fuzz(func(t *testing.T, src string) {
		m, err := files.ParseModel([]byte(src), "fuzz")
		if err != nil {
			return
		}
		for _, s := range m.Stages {
			if slices.ContainsFunc(append(s.In, s.Out), func(shape []int) bool { return nn.Elems(shape) > 1<<20 }) {
				return // fine, but slow to lower
			}
		}
		opt := nn.LowerOptions{Batch: 3, Type: dag.Float32, Train: true, Samples: 5, Lowering: nn.DefaultLowering(m, 3, 1<<20, dag.Float32)}
		if _, err := m.Lower(opt); err != nil {
			t.Errorf("a model that parses does not lower: %v\n%s", err, src)
		}
	})
}

// FuzzParseLowering checks that no input panics.
func FuzzParseLowering(f *testing.F) {
	example := must.Get(os.ReadFile("../examples/lowering.toml"))(f)
	f.Add(string(example))
	f.Add(string(must.Get(os.ReadFile("../examples/stages.toml"))(f)))
	f.Add("[[stage]]\nfrom = \"input\"\ndevices = [\"a\", \"b\"]\nalong = \"rows\"\nsum = \"ring\"\nreplicas = 2\nshares = [2, 3]\n")
	f.Add("micro_batches = 2\nstash = true\n[[stage]]\nfrom = \"input\"\ndevice = \"a\"\n[[stage]]\nfrom = \"fc1\"\ndevice = \"b\"\n")
	f.Add("layer = {a = {samples = 3}, b = 4}\n")
	f.Add("[layer.\"x y\"]\nsamples = 9223372036854775807\n")
	f.Fuzz(func(t *testing.T, src string) {
		l, err := files.ParseLowering([]byte(src), "fuzz")
		if err != nil {
			return
		}
		m, _ := models.ByName("dahl-cnn")
		// Whatever it says, lowering gives a graph or an error.
		if g, err := m.Lower(nn.LowerOptions{Batch: 3, Type: dag.Float32, Train: true, Samples: 3, Lowering: l}); err == nil && g.NumTasks() == 0 {
			t.Error("a graph without tasks")
		}
	})
}
