package plan

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"dahl/dag"
	"dahl/plan/tiling"
	"dahl/schedule"
)

// TestSearch: a step is the layer's four samples, one task after the other, each of which
// takes 7 us and 2 us for each of its samples, and 1 us less with half of the outputs or fewer. With tiles of 1, 2 and 4 samples
// that is 36, 22 and 15 us, and with 4 samples and 6 outputs 14. From there it tries 2 samples again, and no graph twice.
// The search takes the best of those that do run.
func TestSearch(t *testing.T) {
	n := tiling.Network{Layer: "fc", Batch: 4, Default: dag.Lowering{Layers: map[string]dag.LayerLowering{"fc": {Forward: dag.Cut{Samples: 2, Outputs: 12}, WeightGradient: dag.Cut{Samples: 2}}}},
		Extents: map[string]dag.LayerLowering{"fc": {Forward: dag.Cut{Samples: 4, Outputs: 12}}}}
	search := func(refused int) (*TileSearch, error) {
		lower := func(l dag.Lowering) (*dag.Program, error) {
			tile, cost := l.Layers["fc"].Forward.Samples, 7000
			if tile == refused {
				return nil, errors.New("no room")
			}
			if l.Layers["fc"].Forward.Outputs <= 6 {
				cost -= 1000
			}
			var tasks []string
			for i := range 4 / tile {
				tasks = append(tasks, fmt.Sprintf(`{"name": "t%d", "updates": ["x"], "labels": {"layer": "fc"}, "ns": {"cpu": %d}}`, i, cost+2000*tile))
			}
			prog, _ := parsed(t, `"buffers": [{"name": "x", "bytes": 3}], "tasks": [`+strings.Join(tasks, ",")+`]`, unlikePlatform)
			prog.Order[0].Steps = 5 // a search is for one
			return prog, nil
		}
		return SearchTiles(t.Context(), &n, lower, func(prog *dag.Program) (*schedule.Decision, error) {
			_, p := parsed(t, `"tasks": []`, unlikePlatform)
			return Decide(prog, p, schedule.Unbound, schedule.Choice{})
		})
	}
	found, err := search(0)
	if err != nil {
		t.Fatal(err)
	}
	if want := []TileTry{{tiles("default"), 2, 22e-6, ""}, {tiles("whole"), 1, 15e-6, ""}, {tiles("1 sample per task"), 4, 36e-6, ""}, {tiles("whole; fc: 6 outputs"), 1, 14e-6, ""},
		{tiles("whole; fc: 2 samples; fc: 6 outputs"), 2, 20e-6, ""}}; !slices.Equal(found.Tries, want) {
		t.Errorf("tries %+v, want %+v", found.Tries, want)
	}
	if found.Layer != "fc" || found.Default != 2 || found.Chosen != tiles("whole; fc: 6 outputs") {
		t.Errorf("found %+v", found)
	}
	if found, err = search(4); err != nil || found.Chosen != tiles("default; fc: 6 outputs") || found.Of(tiles("whole")).Error != "no room" {
		t.Errorf("without tiles of 4: %+v, %v", found, err)
	}
	if _, err = search(2); err == nil {
		t.Error("the default does not run, and the search says nothing")
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
