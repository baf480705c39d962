package nn_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"dahl/dag"
	"dahl/nn"
	"dahl/nn/files"
	"dahl/nn/layers"
)

// branchCases are networks whose layers read others than the one before. In "twice" a rectified
// value is read by two convolutions, so that it may be fused, and another by a convolution and a
// sum, so that it may not. "joined" concatenates a convolution with the input, which is copied. "tied" has
// layers with parameters of others.
func branchCases(t testing.TB) map[string]*nn.Model {
	t.Helper()
	input := []int{2, 11, 13}
	conv := func(filters, kernel int) layers.Conv2D {
		return layers.Conv2D{Filters: filters, Kernel: kernel, Pad: kernel / 2}
	}
	return map[string]*nn.Model{
		"twice": mustNew(t, "twice", input,
			conv(5, 3), layers.ReLU{}, conv(3, 3), nn.Named{Name: "beside", Layer: conv(3, 5), Inputs: []string{"relu1"}},
			nn.Of(layers.Add{}, "conv2", "beside"), layers.ReLU{}, conv(3, 1), nn.Of(layers.Add{}, "relu2", "conv4"), layers.Flatten{}, layers.Dense{Outputs: 7}),
		"joined": mustNew(t, "joined", input,
			conv(3, 3), nn.Of(layers.Concat{}, "conv1", "input"), conv(7, 3), layers.ReLU{}, layers.MaxPool{Size: 2},
			layers.Flatten{}, layers.Dense{Outputs: 17}, layers.ReLU{}, nn.Of(layers.Concat{}, "flatten1", "relu2"), layers.Dense{Outputs: 5}),
		"tied": sharedCases(t)["tied"],
	}
}

// TestBranches checks the tasks of sums and copies.
//
// In "twice" relu1 has two readers: conv2, which is listed first, adds its part to that of beside.
// relu2 goes to conv4 and to add2: the part of add2 is the gradient of its sum. In "joined" the
// input and the flattened values are copied into their concatenations; flatten1 gets its gradient
// from fc1, to which the part of concat2 is added.
func TestBranches(t *testing.T) {
	for name, want := range map[string]string{
		"twice":  "add1.forward add2.forward relu2.backward.add.add2 conv1.backward.add.conv2",
		"joined": "concat1.forward.2 concat2.forward.1 flatten1.backward.add.concat2",
	} {
		var tasks []string
		g := mustLower(t, branchCases(t)[name], nn.LowerOptions{Batch: 3, Type: dag.Float32, Train: true, Samples: 3})
		for i := range g.Tasks {
			if op := g.Tasks[i].Op; op == "sum" || op == "add" || op == "copy" {
				step, _, _ := strings.Cut(g.Tasks[i].Name, "[")
				tasks = append(tasks, step)
			}
		}
		if got := strings.Join(tasks, " "); got != want {
			t.Errorf("%s: tasks %s, want %s", name, got, want)
		}
	}
}

// TestSumsOfGradientsAreNoBarrier: a tile of a sum of gradients waits for the tiles of both parts
// that it adds, and for nothing else. The input gradients of conv2 and beside have other tiles than
// conv1, whose output both read.
func TestSumsOfGradientsAreNoBarrier(t *testing.T) {
	g := mustLower(t, branchCases(t)["twice"], nn.LowerOptions{Batch: 17, Type: dag.Float32, Train: true, Samples: 17, Lowering: dag.Lowering{
		Layers: map[string]dag.LayerLowering{
			"conv1": {Forward: dag.Cut{Samples: 4, Outputs: 2}}, "conv2": {Forward: dag.Cut{Samples: 3}}, "beside": {Forward: dag.Cut{Samples: 5, Outputs: 2}},
		}}})
	sums := tilesOf(g, "conv1.backward.add.conv2")
	if len(sums) != 5*3 {
		t.Fatalf("%d tiles of the sum, want 15", len(sums))
	}
	for name, tl := range sums {
		var want []string
		for _, step := range []string{"conv2.backward.input", "beside.backward.input"} {
			for p, pt := range tilesOf(g, step) {
				if overlap(tl.samples, pt.samples) && overlap(tl.channels, pt.channels) {
					want = append(want, p)
				}
			}
		}
		got := predNames(g, name)
		slices.Sort(want)
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("%s waits for %v, reads %v", name, got, want)
		}
	}
}

// TestConcatenatedBuffers: convolutions write their channels of one buffer, also where one
// concatenation is within another, and read the gradient from there.
func TestConcatenatedBuffers(t *testing.T) {
	conv := layers.Conv2D{Filters: 3, Kernel: 1}
	m := mustNew(t, "nested", []int{2, 5, 7}, conv, conv, nn.Of(layers.Concat{}, "conv1", "conv2"), layers.Conv2D{Filters: 5, Kernel: 1},
		nn.Of(layers.Concat{}, "conv3", "concat1"), layers.Flatten{}, layers.Dense{Outputs: 13})
	g := mustLower(t, m, nn.LowerOptions{Batch: 11, Type: dag.Float32, Train: true, Samples: 11})
	for task, want := range map[string]string{ // channels of the outer concatenation: 5 of conv3, 3 of conv1, 3 of conv2
		"conv3.forward[0:11,0:5]":         "concat2.out 0:5",
		"conv1.forward[0:11,0:3]":         "concat2.out 5:8",
		"conv2.forward[0:11,0:3]":         "concat2.out 8:11",
		"conv3.backward.weight[0:11,0:5]": "grad.concat2.out 0:5",
	} {
		id, ok := g.TaskByName(task)
		if !ok {
			t.Errorf("no task %s", task)
			continue
		}
		at := 0
		if strings.Contains(task, "backward") {
			at = 1 // dy
		}
		a := g.Tasks[id].Accesses[at]
		if got := g.Buffers[a.Buffer].Name + " " + fmt.Sprintf("%d:%d", a.Box[3].Lo, a.Box[3].Hi); got != want {
			t.Errorf("%s: operand %d is %s, want %s", task, at, got, want)
		}
	}
	if n := countOp(g, "copy"); n != 0 {
		t.Errorf("%d copies", n)
	}
}

// TestInputErrors: wrong inputs are named in one line, with that of the model file.
func TestInputErrors(t *testing.T) {
	const head = "name = \"m\"\ninput = [2, 8, 8]\n[[layer]]\nkind = \"conv2d\"\nfilters = 3\nkernel = 1\n"
	const end = "[[layer]]\nkind = \"flatten\"\n[[layer]]\nkind = \"dense\"\noutputs = 5\n"
	for _, c := range []struct{ layers, want string }{
		{"[[layer]]\nkind = \"add\"\ninput = [\"conv1\", \"conv2\"]\n" + end, `f.toml:9: model "m": layer "add1": input "conv2" is not a layer before it; there are input, conv1`},
		{"[[layer]]\nkind = \"add\"\n" + end, `f.toml:7: model "m": layer "add1" (add) of input 3×8×8: 1 inputs; want two or more, as in input = ["conv1", "conv2"]`},
		{"[[layer]]\nkind = \"add\"\ninput = [\"conv1\", \"input\"]\n" + end, `f.toml:9: model "m": layer "add1" (add) of input 3×8×8, 2×8×8: the inputs of a sum have one shape`},
		{"[[layer]]\nkind = \"maxpool\"\nsize = 2\n[[layer]]\nkind = \"concat\"\ninput = [\"conv1\", \"pool1\"]\n" + end,
			`f.toml:12: model "m": layer "concat1" (concat) of input 3×8×8, 3×4×4: inputs differ in more than their number of channels`},
		{"[[layer]]\nkind = \"relu\"\ninput = [\"conv1\", \"conv1\"]\n" + end, `f.toml:9: model "m": layer "relu1" (relu) of input 3×8×8, 3×8×8: 2 inputs; want one`},
		{"[[layer]]\nkind = \"relu\"\n[[layer]]\nkind = \"flatten\"\ninput = [\"conv1\"]\n[[layer]]\nkind = \"dense\"\noutputs = 5\n",
			`f.toml:7: model "m": layer "relu1": no layer reads its output; write its name into the input of a later layer, or leave it out`},
		{"[[layer]]\nkind = \"relu\"\ninput = []\n" + end, `f.toml:9: layer 2: input = "[]": write the names of earlier layers, or leave it out for the layer before`},
	} {
		_, err := files.ParseModel([]byte(head+c.layers), "f.toml")
		if err == nil || !strings.HasPrefix(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("error %v, want %s", err, c.want)
		}
	}
}

// TestKindsAreOfOneType: layers of two types of one kind are not in one network.
func TestKindsAreOfOneType(t *testing.T) {
	_, err := nn.New("m", []int{3}, layers.Dense{Outputs: 3}, falseDense{})
	if err == nil || !strings.Contains(err.Error(), `its kind "dense" is that of layers.Dense`) {
		t.Errorf("error %v", err)
	}
}

type falseDense struct{ layers.ReLU }

func (falseDense) Kind() string { return "dense" }
