package files_test

import (
	"math"
	"reflect"
	"strings"
	"testing"

	"dahl/dag"
	"dahl/must"
	"dahl/nn"
	"dahl/nn/files"
	"dahl/nn/models"
)

// TestExampleOfBlocks: the shipped file with blocks is the built-in network of the same name.
func TestExampleOfBlocks(t *testing.T) {
	m := must.Get(files.LoadModel("../examples/resnet18.toml"))(t)
	built, _ := models.ByName("resnet18")
	opt := nn.LowerOptions{Batch: 3, Type: dag.Float32, Train: true, Samples: 5, Lowering: dag.Lowering{}}
	got, want := lowered(t, m, opt), lowered(t, built, opt)
	if got.Hash() != want.Hash() || !reflect.DeepEqual(m.State(), built.State()) || m.Defaults.String() != built.Defaults.String() || m.Defaults.Batch != built.Defaults.Batch {
		t.Errorf("the networks differ: %v, want %v", m.Defaults, built.Defaults)
	}
}

// TestExampleOfRepeatedBlocks: the shipped GPT is the built-in one, whose parameters have another beginning of their names.
func TestExampleOfRepeatedBlocks(t *testing.T) {
	m := must.Get(files.LoadModel("../examples/gpt.toml"))(t)
	built, _ := models.ByName("gpt-tiny")
	opt := nn.LowerOptions{Batch: 3, Type: dag.Float32, Train: true, Samples: 5}
	got, want := lowered(t, m, opt), lowered(t, built, opt)
	if m.NumWeights() != built.NumWeights() || m.Defaults.String() != built.Defaults.String() || len(got.Tasks) != len(want.Tasks) {
		t.Errorf("%d weights, %d tasks, %v; want %d, %d, %v", m.NumWeights(), len(got.Tasks), m.Defaults, built.NumWeights(), len(want.Tasks), built.Defaults)
	}
	for i := range got.Tasks {
		if a, b := &got.Tasks[i], &want.Tasks[i]; a.Name != b.Name || a.Op != b.Op || a.Shape != b.Shape {
			t.Fatalf("task %s, want %s", a.Name, b.Name)
		}
	}
	for i, p := range m.State() {
		if want := built.State()[i]; "transformer."+p.Name != want.Name || !reflect.DeepEqual(p.Shape, want.Shape) || math.Abs(p.Deviation-want.Deviation) > 1e-5 {
			t.Errorf("parameter %+v, want %+v", p, want)
		}
	}
}

const blockFile = `name = "m"
input = [2, 7, 5]
[[block]]
kind = "pair"
keys = ["f"]
layer = [
  { kind = "conv2d", name = "a", filters = "f", kernel = 1 },
  { kind = "add", name = "b", input = ["a", "input"] },
]
[[layer]]
kind = "relu"
name = "r"
[[layer]]
kind = "pair"
name = "p"
f = 2
[[layer]]
kind = "pair"
name = "q"
input = ["r"]
f = 2
[[layer]]
kind = "add"
input = ["p", "q"]
[[layer]]
kind = "flatten"
[[layer]]
kind = "dense"
outputs = 3
`

// TestBlocks: kinds are counted with those within blocks. "p" reads the layer before it, "q" the one that it names, and a later layer names the ends of both.
func TestBlocks(t *testing.T) {
	m := must.Get(files.ParseModel([]byte(blockFile), "m.toml"))(t)
	var stages []string
	for _, s := range m.Stages {
		text := s.Name
		for _, i := range s.Inputs {
			if i == nn.ModelInput {
				text += " input"
			} else {
				text += " " + m.Stages[i].Name
			}
		}
		stages = append(stages, text)
	}
	const want = "r input, p.a r, p.b p.a r, q.a r, q.b q.a r, add3 p.b q.b, flatten1 add3, fc1 flatten1"
	if got := strings.Join(stages, ", "); got != want {
		t.Errorf("layers are %s, want %s", got, want)
	}
}

// TestBlockErrors: mistakes are told in one line with the place in the file.
func TestBlockErrors(t *testing.T) {
	for _, c := range []struct{ old, new, want string }{
		{"f = 2\n[[layer]]\nkind = \"pair\"", "[[layer]]\nkind = \"pair\"", `m.toml:13: layer "p": f is missing; write f = a value for the block`},
		{`kind = "pair"` + "\nkeys", `kind = "relu"` + "\nkeys", `m.toml:4: block 1: kind = "relu": is a kind of layer already; write another`},
		{`keys = ["f"]`, `keys = ["name"]`, `m.toml:5: block 1: keys = "name": every layer has it; write another`},
		{`filters = "f"`, `filters = "g"`, `m.toml:6: layer "p": block 1: layer "a": filters = "g": want a whole number from 1 to 16777216`},
		{`filters = "f"`, `magic = "f"`, `m.toml:6: layer "p": block 1: layer "a": filters is missing`},
		{`name = "a", `, ``, `layer 1: name is missing; write name = "conv1"`},
		{`input = ["a", "input"]`, `input = ["z", "input"]`, `input "p.z" is not a layer before it`},
		{`name = "r"`, ``, `m.toml:13: layer "p": the layer before it has no name; write one there, or write input = ["…"]`},
		{`input = ["r"]`, `input = ["r", "p"]`, `want one name; a block reads one layer`},
		{`kind = "pair"` + "\nname = \"p\"", `kind = "pear"` + "\nname = \"p\"", `gelu_tanh, silu, leaky_relu, pair`},
		{"name = \"p\"", "name = \"p\"\nrepeat = 0", `m.toml:16: layer "p": repeat = 0: want a whole number from 1 to 16384`},
		{`keys = ["f"]`, `keys = ["repeat"]`, `keys = "repeat": every layer has it; write another`},
		{`name = "p"`, ``, `name is missing; write name = "layer1"`},
		{"f = 2\n[[layer]]\nkind = \"pair\"", "f = 3\n[[layer]]\nkind = \"pair\"", `layer "p.b" (add) of input 3×7×5, 2×7×5: the inputs of a sum have one shape`},
	} {
		if !strings.Contains(blockFile, c.old) {
			t.Fatalf("the file has no %q", c.old)
		}
		_, err := files.ParseModel([]byte(strings.Replace(blockFile, c.old, c.new, 1)), "m.toml")
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("error %v, want %s", err, c.want)
		}
	}
}
