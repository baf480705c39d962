package nn

import (
	"fmt"
	"maps"
	"slices"

	"dahl/dag"
)

// Limits of the default lowering. They are about the cost of a task (about 0.3 µs
// to dispatch) and the cache, never about the number of workers, so that a model's
// results do not depend on where it runs.
const (
	minTiles        = 8       // per layer, while a tile is worth it
	tileFlops       = 1e6     // a tile with more work is split further
	minTileElems    = 1 << 14 // below this an elementwise task is mostly dispatch
	privateBytes    = 1 << 16 // larger weight gradients are split, not privatised
	maxAccumulators = 4       // each more is one more merge of weight and of bias
	defaultL2       = 1 << 20 // where the platform does not say
)

// DefaultLowering chooses a granularity for every layer from the shapes, the batch
// and the size of the second-level cache (0: 1 MiB):
//
//   - a layer's tile reads and writes at most half of the cache, while it has more
//     than one sample or output to give up
//   - at least 8 tiles per layer while a tile has more than 1 MFLOP
//   - layers without weights take the tiles of the layer before them, or several
//     at once where those are tiny, or fewer channels where a sample is large
//   - weight gradients up to 64 KiB are summed in up to 4 private accumulators;
//     larger ones are split by filters or features and not privatised
func DefaultLowering(m *Model, batch, l2Bytes int, t dag.DType) dag.Lowering {
	if l2Bytes <= 0 {
		l2Bytes = defaultL2
	}
	d := chooser{batch: batch, half: l2Bytes / 2, elemBytes: int(t.SizeBytes())}
	lowering := dag.Lowering{Fused: true, Layers: map[string]dag.LayerLowering{}}
	before := dag.LayerLowering{SampleTile: batch}
	for i := range m.Stages {
		s := &m.Stages[i]
		if s.Layer.flops(s.In, s.Out) == 0 {
			continue // a view
		}
		ll := d.elementwise(s, before.SampleTile)
		if len(s.Params) > 0 {
			ll = d.weighted(s)
		}
		if len(lowering.Layers) == 0 {
			lowering.Layers["input"] = dag.LayerLowering{SampleTile: d.grow(ll.SampleTile, elems(m.Input))}
		}
		lowering.Layers[s.Name] = ll
		before = ll
	}
	lowering.Layers["loss"] = dag.LayerLowering{SampleTile: d.grow(before.SampleTile, m.Classes())}
	return lowering
}

type chooser struct{ batch, half, elemBytes int }

// weighted is the granularity of a layer with weights.
func (d *chooser) weighted(s *Stage) dag.LayerLowering {
	in, out := elems(s.In)*d.elemBytes, elems(s.Out)*d.elemBytes
	weights := s.Params[0].Elems() * d.elemBytes
	flops := s.Layer.flops(s.In, s.Out)
	outputs := s.Out[0]
	ll := dag.LayerLowering{SampleTile: d.batch, OutputTile: outputs}
	part := func(bytes int) int { return bytes / outputs * ll.OutputTile }
	tileBytes := func() int { return ll.SampleTile*(in+part(out)) + part(weights) }

	for part(weights) > d.half/2 && ll.OutputTile > 1 && part(weights) > in {
		ll.OutputTile = halve(ll.OutputTile)
	}
	for tileBytes() > d.half && ll.SampleTile > 1 {
		ll.SampleTile = halve(ll.SampleTile)
	}
	for tileBytes() > d.half && ll.OutputTile > 1 && part(out) > in/4 {
		ll.OutputTile = halve(ll.OutputTile)
	}
	work := func() float64 { return flops / float64(outputs) * float64(ll.OutputTile) * float64(ll.SampleTile) }
	tiles := func() int { return parts(d.batch, ll.SampleTile) * parts(outputs, ll.OutputTile) }
	for tiles() < minTiles && work() > tileFlops && ll.SampleTile*ll.OutputTile > 1 {
		if ll.SampleTile > 1 {
			ll.SampleTile = halve(ll.SampleTile)
		} else {
			ll.OutputTile = halve(ll.OutputTile)
		}
	}
	d.gradient(s, &ll, weights, flops)
	return ll
}

// gradient chooses how the weight gradient is split and summed.
func (d *chooser) gradient(s *Stage, ll *dag.LayerLowering, weights int, flops float64) {
	outputs := s.Out[0]
	ll.GradTile, ll.Accumulators = outputs, 1
	ll.GradSampleTile = d.batch
	if weights <= privateBytes {
		ll.GradSampleTile = ll.SampleTile
		ll.Accumulators = min(maxAccumulators, parts(d.batch, ll.GradSampleTile))
		return
	}
	work := func() float64 { return flops / float64(outputs) * float64(ll.GradTile) * float64(ll.GradSampleTile) }
	for (parts(outputs, ll.GradTile) < minTiles && work() > tileFlops || weights/outputs*ll.GradTile > d.half/2) && ll.GradTile > 1 {
		ll.GradTile = halve(ll.GradTile)
	}
	// A convolution's inputs are larger than its gradient: sum over samples in tiles
	// that stay in the cache.
	if len(s.In) == 3 {
		ll.GradSampleTile = ll.SampleTile
	}
}

// elementwise is the granularity of a layer without weights, after one with tiles
// of some samples.
func (d *chooser) elementwise(s *Stage, before int) dag.LayerLowering {
	ll := dag.LayerLowering{SampleTile: d.grow(before, elems(s.In)), OutputTile: s.Out[0]}
	channel := (elems(s.In) + elems(s.Out)) * d.elemBytes / s.Out[0]
	for ll.SampleTile*ll.OutputTile*channel > d.half && ll.SampleTile*ll.OutputTile > 1 {
		if ll.SampleTile > 1 {
			ll.SampleTile = halve(ll.SampleTile)
		} else {
			ll.OutputTile = halve(ll.OutputTile)
		}
	}
	return ll
}

// grow doubles a number of samples while a task over them is tiny.
func (d *chooser) grow(samples, sampleElems int) int {
	for samples < d.batch && samples*sampleElems < minTileElems {
		samples *= 2
	}
	return min(samples, d.batch)
}

func halve(n int) int { return (n + 1) / 2 }

// checkLowering refuses names and numbers that cannot be meant.
func (m *Model) checkLowering(l *dag.Lowering) error {
	names := []string{"input", "loss"}
	for i := range m.Stages {
		names = append(names, m.Stages[i].Name)
	}
	if err := checkGranularity("default", l.Default); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(l.Layers)) {
		if !slices.Contains(names, name) {
			return fmt.Errorf("lowering: the model has no layer %q; it has %v", name, names)
		}
		if err := checkGranularity(name, l.Layers[name]); err != nil {
			return err
		}
	}
	return nil
}

func checkGranularity(layer string, ll dag.LayerLowering) error {
	for _, n := range []struct {
		what  string
		value int
	}{
		{"samples", ll.SampleTile}, {"outputs", ll.OutputTile}, {"grad_outputs", ll.GradTile},
		{"grad_samples", ll.GradSampleTile}, {"accumulators", ll.Accumulators},
	} {
		if n.value < 0 {
			return fmt.Errorf("lowering: layer %q: %s is %d; want at least 0, where 0 is not split", layer, n.what, n.value)
		}
	}
	return nil
}
