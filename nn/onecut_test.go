package nn

import (
	"maps"
	"strings"
	"testing"

	"dahl/dag"
)

// TestLayerCuts: each cut makes three tasks of forward pass, input gradient and weight gradient where these have the dimension with
// at least three indices, and leaves them whole where not: a dense layer has no rows, the image of the first layer one channel, and no gradient.
// No other layer's operations are cut.
func TestLayerCuts(t *testing.T) {
	const batch, parts = 7, 3
	m := lenet5()
	whole := WholeLowering(m, batch, 0, dag.Float32)
	tasksOf := func(l dag.Lowering) map[string]int {
		g, err := m.Lower(LowerOptions{Batch: batch, Type: dag.Float32, Lowering: l, Train: true, Samples: batch})
		if err != nil {
			t.Fatal(err)
		}
		count := map[string]int{}
		for i := range g.Tasks {
			step, _, _ := strings.Cut(g.Tasks[i].Name, "[")
			count[step]++
		}
		return count
	}
	before, images := tasksOf(whole), map[string]bool{"conv1": true, "conv2": true}
	for _, cut := range LayerCuts(m, batch, parts) {
		l := whole
		l.Layers = maps.Clone(whole.Layers)
		l.Layers[cut.Layer] = cut.LayerLowering
		of, cuttable := tasksOf(l), images[cut.Layer] || cut.Along < dag.AlongRows
		cuttable = cuttable && !(cut.Layer == "conv1" && cut.Along == dag.AlongInputs)
		for i := range m.Stages {
			s := &m.Stages[i]
			for _, step := range []string{".forward", ".backward.input", ".backward.weight"} {
				want := before[s.Name+step]
				if want > 0 && s.Name == cut.Layer && cuttable && len(s.Params) > 0 {
					want = parts
				}
				if got := of[s.Name+step]; got != want && len(s.Params) > 0 {
					t.Errorf("%s cut along %s: %d tasks %s%s, want %d", cut.Layer, cut.Along, got, s.Name, step, want)
				}
			}
		}
	}
}
