package train

import (
	"reflect"
	"slices"
	"testing"

	"dahl/dag"
	"dahl/must"
	"dahl/nn"
	"dahl/nn/models"
	"dahl/plan/space"
	"dahl/plan/tiling"
)

// TestPartsOfBatch: a machine with four GPUs has lowerings with the batch in two and in four parts, one with a GPU or none has no such
// one, and three samples are no four parts. Sets with fewer GPUs than parts are not listed with them.
func TestPartsOfBatch(t *testing.T) {
	m := must.Get(models.ByName("cifar-cnn"))(t)
	for _, c := range []struct {
		platform string
		batch    int
		parts    []int
	}{{"server", 64, []int{2, 4}}, {"server", 3, []int{2, 3}}, {"server", 1, nil}, {"emulated", 64, nil}, {"manycore", 64, nil}} {
		p := load(t, c.platform)
		w := &Workload{Samples: Samples{Train: c.batch}, Options: Options{Batch: c.batch, OtherMachine: true}, Model: m, Platform: p}
		must.Do(t, w.Lower())
		tiles := must.Get(w.Tiles())(t)
		var parts []int
		for _, to := range tiles {
			if to.Kind == tiling.Parts && to.Along == dag.AlongSamples {
				parts = append(parts, to.Number)
			}
		}
		if !slices.Equal(parts, c.parts) {
			t.Errorf("%s, batch %d: parts %v; want %v", c.platform, c.batch, parts, c.parts)
		}
		s := must.Get(w.Space(p, "", tiles...))(t)
		for _, n := range parts {
			for devices, has := range map[string]int{"": 4, "cpu0:1,gpu0,gpu2": 2, "gpu0": 1, "cpu0:36": 0} {
				choice := space.Choice{Devices: devices, Tiles: tiling.InParts(n, dag.AlongSamples)}
				if slices.Contains(s.Choices(), choice) != (n <= has) {
					t.Errorf("%d parts on %q are listed where there are %d GPUs: %v", n, devices, has, n > has)
				}
				at, err := s.At(choice) // also where a plan of more devices has left some of them without a task
				if err != nil {
					t.Fatal(err)
				}
				if want := nn.PartsLowering(m, c.batch, n, dag.Float32); !reflect.DeepEqual(*at.Lowering, want) {
					t.Errorf("%d parts on %q: lowering %+v; want %+v", n, devices, *at.Lowering, want)
				}
			}
		}
	}
}
