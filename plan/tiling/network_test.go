package tiling

import (
	"slices"
	"testing"

	"dahl/dag"
)

func TestTileSizes(t *testing.T) {
	for _, c := range []struct {
		tile, batch int
		want        []int
	}{
		{8, 64, []int{1, 2, 4, 8, 16, 32, 64}},
		{64, 64, []int{1, 2, 4, 8, 16, 32, 64}},
		{5, 48, []int{1, 2, 5, 10, 20, 40, 48}}, // halves are rounded down, the batch is the last
		{1, 1, []int{1}},
	} {
		if got := tileSizes(c.tile, c.batch); !slices.Equal(got, c.want) {
			t.Errorf("tiles from %d in a batch of %d: %v, want %v", c.tile, c.batch, got, c.want)
		}
	}
}

func TestScale(t *testing.T) {
	base := dag.Lowering{Layers: map[string]dag.LayerLowering{
		"conv1": {Forward: dag.Cut{Samples: 8, Outputs: 6}, WeightGradient: dag.Cut{Samples: 8}},
		"fc1":   {Forward: dag.Cut{Samples: 64, Outputs: 30}, WeightGradient: dag.Cut{Samples: 32}},
		"pool1": {Forward: dag.Cut{Samples: 2, Outputs: 3}},
	}}
	got := Scale(&base, 2, 8, 64) // a quarter
	want := map[string]dag.LayerLowering{
		"conv1": {Forward: dag.Cut{Samples: 2, Outputs: 6}, WeightGradient: dag.Cut{Samples: 2}},
		"fc1":   {Forward: dag.Cut{Samples: 16, Outputs: 30}, WeightGradient: dag.Cut{Samples: 32}}, // its gradient has a tile of its own
		"pool1": {Forward: dag.Cut{Samples: 1, Outputs: 3}},
	}
	for name, ll := range want {
		if got.Layers[name] != ll {
			t.Errorf("%s: %+v, want %+v", name, got.Layers[name], ll)
		}
	}
	if base.Layers["conv1"].Forward.Samples != 8 {
		t.Error("the lowering that was scaled has changed")
	}
	if wide := Scale(&base, 64, 8, 64); wide.Layers["fc1"].Forward.Samples != 64 || wide.Layers["conv1"].Forward.Samples != 64 {
		t.Errorf("tiles beyond the batch: %+v", wide.Layers)
	}
}
