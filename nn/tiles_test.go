package nn_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"dahl/dag"
	"dahl/nn"
	"dahl/nn/layers"
)

// rowsOf are the rows of a step's tasks, read from their names, by task. A task whose name says none has all.
func rowsOf(g *dag.Graph, step string, all int) map[string]dag.Range {
	rows := map[string]dag.Range{}
	for i := range g.Tasks {
		name := g.Tasks[i].Name
		if !strings.HasPrefix(name, step+"[") {
			continue
		}
		r := dag.Range{Hi: all}
		if _, text, cut := strings.Cut(name, ",rows="); cut {
			if _, err := fmt.Sscanf(text, "%d:%d", &r.Lo, &r.Hi); err != nil {
				panic(name)
			}
		}
		rows[name] = r
	}
	return rows
}

// TestRowsWaitForTheirHalo: a tile of rows waits for the tiles that have a row of its windows, and for no other.
// conv1 has 11 rows in tiles of 4. Row u of conv2, with a window of 3 at stride 2 and padding 1, reads the rows
// 2u-1 to 2u+1 of conv1, and the gradient of row a of conv1's output reads the rows u with 2u-1 ≤ a ≤ 2u+1, ⌈(a-1)/2⌉ to
// ⌊(a+1)/2⌋. pool1 takes rows 2v and 2v+1 of the 6 of conv2.
func TestRowsWaitForTheirHalo(t *testing.T) {
	m := mustNew(t, "rows", []int{2, 11, 13},
		layers.Conv2D{Filters: 3, Kernel: 3, Pad: 1}, layers.Conv2D{Filters: 5, Kernel: 3, Pad: 1, Stride: 2}, layers.MaxPool{Size: 2}, layers.Flatten{}, layers.Dense{Outputs: 7})
	l := dag.Lowering{Layers: map[string]dag.LayerLowering{
		"conv1": {Forward: dag.Cut{Rows: 4}},
		"conv2": {Forward: dag.Cut{Rows: 2}, InputGradient: dag.Cut{Rows: 3}},
		"pool1": {Forward: dag.Cut{Rows: 1}},
	}}
	g := mustLower(t, m, nn.LowerOptions{Batch: 5, Type: dag.Float64, Train: true, Samples: 7, Lowering: l, Optimizer: keepsGradients})
	for _, c := range []struct {
		step, producer string
		tiles          int
		rows, produced int // extents
		reads          func(dag.Range) dag.Range
	}{
		{"conv2.forward", "conv1.forward", 3, 6, 11, func(r dag.Range) dag.Range { return dag.Range{Lo: 2*r.Lo - 1, Hi: 2*(r.Hi-1) + 2} }},
		{"pool1.forward", "conv2.forward", 3, 3, 6, func(r dag.Range) dag.Range { return dag.Range{Lo: 2 * r.Lo, Hi: 2 * r.Hi} }},
		{"conv2.backward.input", "pool1.backward", 4, 11, 6, func(r dag.Range) dag.Range { return dag.Range{Lo: r.Lo / 2, Hi: r.Hi/2 + 1} }},
	} {
		tasks, producers := rowsOf(g, c.step, c.rows), rowsOf(g, c.producer, c.produced)
		if len(tasks) != c.tiles {
			t.Fatalf("%s has %d tiles, want %d", c.step, len(tasks), c.tiles)
		}
		for name, r := range tasks {
			var want []string
			for p, pr := range producers {
				if overlap(c.reads(r), pr) {
					want = append(want, p)
				}
			}
			got := slices.DeleteFunc(predNames(g, name), func(p string) bool { return !strings.HasPrefix(p, c.producer+"[") })
			slices.Sort(got)
			slices.Sort(want)
			if !slices.Equal(got, want) {
				t.Errorf("%s waits for %v, reads %v", name, got, want)
			}
		}
	}
}

// TestSumsOverInputs: the tasks of a layer that is cut in its inputs each read their inputs, and weights of them, and add to the
// output in their order; the bias comes with the first. A ReLU that the layer would have fused comes behind the sum.
func TestSumsOverInputs(t *testing.T) {
	m := mustNew(t, "inputs", []int{11}, layers.Dense{Outputs: 7}, layers.ReLU{}, layers.Dense{Outputs: 5})
	l := dag.Lowering{Layers: map[string]dag.LayerLowering{"fc1": {Forward: dag.Cut{Inputs: 4}}}}
	g := mustLower(t, m, nn.LowerOptions{Batch: 3, Type: dag.Float64, Train: true, Samples: 13, Lowering: l, Optimizer: keepsGradients})
	operands := map[string]int{}
	for i := range g.Tasks {
		if task := &g.Tasks[i]; task.Labels.Layer == "fc1" && task.Labels.Phase == "forward" {
			operands[task.Name] = len(task.Accesses)
			if x := task.Accesses[1].Box; x == nil || x[1].Len() > 4 {
				t.Errorf("%s reads %v of the input", task.Name, x)
			}
		}
	}
	want := map[string]int{ // y, x, w, and once b
		"fc1.forward[0:3,0:7,inputs=0:4]": 4, "fc1.forward[0:3,0:7,inputs=4:8]": 3, "fc1.forward[0:3,0:7,inputs=8:11]": 3,
	}
	if !maps.Equal(operands, want) {
		t.Errorf("operands by task are %v, want %v", operands, want)
	}
	if unfused := m.Unfused(&l); !slices.Equal(unfused, []string{"relu1"}) {
		t.Errorf("unfused are %v", unfused)
	}
	if preds := predNames(g, "relu1.forward[0:3,0:7]"); !slices.Equal(preds, []string{"fc1.forward[0:3,0:7,inputs=8:11]"}) {
		t.Errorf("the ReLU waits for %v", preds)
	}
}
