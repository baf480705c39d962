package train

import (
	"slices"
	"strings"
	"testing"

	"dahl/must"
	"dahl/nn/models"
	"dahl/plan/space"
	"dahl/plan/tiling"
)

// spaceOf is that of a network on the node, with tiles; none: those of the workload.
func spaceOf(t *testing.T, tiles ...tiling.Tiling) *Space {
	t.Helper()
	m := must.Get(models.ByName("lenet5"))(t)
	p := node(t)
	w := &Workload{Samples: Samples{Train: 16}, Options: Options{OtherMachine: true, Batch: 16}, Model: m, Platform: p}
	must.Do(t, w.Lower())
	return must.Get(w.Space(p, "", tiles...))(t)
}

// TestNear: near every choice there are choices that differ in a layer, for each layer with tasks, the one with the most operations
// first, and for the network, on the same devices. All have programs, of which at least two for each layer are others. A space of given
// tiles has none.
func TestNear(t *testing.T) {
	s := spaceOf(t, tiles("default"), tiles("whole"))
	for _, choice := range append(s.Choices(), space.Choice{Devices: "gpu", Tiles: tiles("default; conv2: 8 samples; fc1: 60 outputs")}) {
		of := must.Get(s.At(choice))(t)
		hash, others := of.Program.Graphs[0].Hash(), 0
		for i, layer := range s.Layers {
			for _, near := range must.Get(s.Neighbourhoods[0](choice, layer))(t) {
				w, err := s.At(near)
				if err != nil || near.Devices != choice.Devices {
					t.Fatalf("%s, near %s: %v", near, choice, err)
				}
				if i == 0 && !strings.Contains(near.Tiles.String(), "; conv2: ") && !strings.Contains(choice.Tiles.String(), "; conv2: ") {
					t.Errorf("%s is the first near %s, and conv2 has the most operations", near, choice)
				}
				if w.Program.Graphs[0].Hash() != hash {
					others++
				}
			}
		}
		layers := map[string]bool{}
		for _, task := range of.Program.Graphs[0].Tasks {
			layers[task.Labels.Layer] = true
		}
		if len(s.Layers) != len(layers)+1 || others < 2*len(layers) {
			t.Errorf("%s: %d of %d layers, %d other graphs", choice, len(s.Layers), len(layers), others)
		}
	}
	for _, layer := range s.Layers {
		for _, near := range must.Get(s.Neighbourhoods[1](space.Choice{Devices: "cpu", Tiles: tiles("default")}, layer))(t) {
			if _, err := s.At(near); err != nil {
				t.Error(err)
			}
		}
	}
	if s := spaceOf(t); s.Neighbourhoods != nil || !slices.Equal(s.Tiles, []tiling.Tiling{{}}) {
		t.Errorf("a space of the tiles %q has others near", s.Tiles)
	}
}

// TestTilesAreRefused: a choice with tiles that no lowering has cannot be priced.
func TestTilesAreRefused(t *testing.T) {
	s := spaceOf(t, tiles("default"))
	for _, text := range []string{"3 samples per task", "default; conv9: 2 samples", "default; conv2: 17 samples"} {
		if _, err := s.Price(space.Choice{Tiles: tiles(text)}); err == nil {
			t.Errorf("tiles %q are taken", text)
		}
	}
	if w, err := s.At(space.Choice{Devices: "cpu", Tiles: tiles("default; fc1: 60 outputs; fc2: 2 gradient accumulators")}); err != nil ||
		w.Lowering.Layers["fc1"].Forward.Outputs != 60 || w.Lowering.Layers["fc2"].WeightGradient.Accumulators != 2 {
		t.Errorf("two layers: %+v, %v", w.Lowering, err)
	}
}

// tiles reads the text of a tiling.
func tiles(text string) tiling.Tiling {
	t, err := tiling.Parse(text)
	if err != nil {
		panic(err)
	}
	return t
}
