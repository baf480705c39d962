package plan

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"dahl/dag"
	"dahl/schedule"
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

func TestScaleTiles(t *testing.T) {
	base := dag.Lowering{Fused: true, Layers: map[string]dag.LayerLowering{
		"conv1": {Forward: dag.Cut{Samples: 8, Outputs: 6}, WeightGradient: dag.Cut{Samples: 8}},
		"fc1":   {Forward: dag.Cut{Samples: 64, Outputs: 30}, WeightGradient: dag.Cut{Samples: 32}},
		"pool1": {Forward: dag.Cut{Samples: 2, Outputs: 3}},
	}}
	got := ScaleTiles(&base, 2, 8, 64) // a quarter
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
	if wide := ScaleTiles(&base, 64, 8, 64); wide.Layers["fc1"].Forward.Samples != 64 || wide.Layers["conv1"].Forward.Samples != 64 {
		t.Errorf("tiles beyond the batch: %+v", wide.Layers)
	}
}

// TestChooseTiles: the least period wins; of equals the default, and then the smallest
// tile; a size without a prediction never. With whole sums the same.
func TestChooseTiles(t *testing.T) {
	for _, c := range []struct {
		periods map[int]float64 // by tile; 0: it does not run
		want    int
	}{
		{map[int]float64{1: 5, 2: 4, 4: 3, 8: 2}, 8},
		{map[int]float64{1: 5, 2: 2, 4: 2, 8: 2}, 4},
		{map[int]float64{1: 1, 2: 1, 4: 2, 8: 2}, 1},
		{map[int]float64{1: 0, 2: 3, 4: 2, 8: 0}, 4},
	} {
		s := TileSearch{Default: 4}
		for _, samples := range []int{1, 2, 4, 8} {
			try := TileTry{Tiling: Tiling{Samples: samples}, PeriodS: c.periods[samples]}
			if try.PeriodS == 0 {
				try.Error = "it does not fit"
			}
			s.Tries = append(s.Tries, try)
		}
		if s.choose(); s.Chosen != c.want {
			t.Errorf("of %v with default 4: %d, want %d", c.periods, s.Chosen, c.want)
		}
		if s.WholeSums {
			t.Errorf("of %v, all with split sums, one with whole ones is chosen", c.periods)
		}
		whole := TileTry{Tiling: Tiling{2, true}, PeriodS: 1.5}
		s.Tries = append(s.Tries, whole)
		if s.choose(); s.WholeSums != (c.want != 1) || s.WholeSums && s.Chosen != 2 {
			t.Errorf("of %v and 1.5 with whole sums: %d, %v", c.periods, s.Chosen, s.WholeSums)
		}
	}
}

// TestSearch: a step is the layer's four samples, one task after the other, each of which
// takes 7 us and 2 us for each of its samples. With tiles of 1, 2 and 4 that is 36, 22 and
// 15 us. The search takes the last, or the best of those that do run.
func TestSearch(t *testing.T) {
	tilings := Tilings{Layer: "fc", Batch: 4, Base: dag.Lowering{Layers: map[string]dag.LayerLowering{"fc": {Forward: dag.Cut{Samples: 2}, WeightGradient: dag.Cut{Samples: 2}}}}}
	search := func(refused int) (*TileSearch, error) {
		lower := func(l dag.Lowering) (*dag.Program, error) {
			tile := l.Layers["fc"].Forward.Samples
			if tile == refused {
				return nil, errors.New("no room")
			}
			var tasks []string
			for i := range 4 / tile {
				tasks = append(tasks, fmt.Sprintf(`{"name": "t%d", "updates": ["x"], "ns": {"cpu": %d}}`, i, 7000+2000*tile))
			}
			prog, _ := parsed(t, `"buffers": [{"name": "x", "bytes": 3}], "tasks": [`+strings.Join(tasks, ",")+`]`, unlikePlatform)
			prog.Order[0].Steps = 5 // a search is for one
			return prog, nil
		}
		return tilings.Search(t.Context(), lower, func(prog *dag.Program) (*schedule.Decision, error) {
			_, p := parsed(t, `"tasks": []`, unlikePlatform)
			return Decide(prog, p, schedule.Unbound, schedule.Choice{})
		})
	}
	found, err := search(0)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []TileTry{{Tiling{Samples: 1}, 4, 36e-6, ""}, {Tiling{Samples: 2}, 2, 22e-6, ""}, {Tiling{Samples: 4}, 1, 15e-6, ""}} {
		if got := found.Tries[i]; got != want {
			t.Errorf("try %+v, want %+v", got, want)
		}
	}
	if found.Layer != "fc" || found.Default != 2 || found.Best() != (Tiling{Samples: 4}) {
		t.Errorf("found %+v", found)
	}
	if found, err = search(4); err != nil || found.Chosen != 2 || found.Of(Tiling{Samples: 4}).Error != "no room" {
		t.Errorf("without tiles of 4: %+v, %v", found, err)
	}
	if _, err = search(2); err == nil {
		t.Error("the default does not run, and the search says nothing")
	}
}
