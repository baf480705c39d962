package nn

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"

	"dahl/dag"
)

// Limits of the default lowering. They follow from a core that does about 200 GFLOP/s in float32,
// the cost of a task (about 0.3 µs to dispatch) and the cache. They never depend on the number of
// workers, so a model's results do not depend on how many cores of a machine it runs on.
const (
	flopBytesPerNs  = 800     // 200 flop/ns on 4-byte elements, 100 on 8-byte ones
	bytesPerNs      = 40      // of activations, in second-level caches
	vectorBytes     = 64      // outputs that do not fill a vector take the time of a full one
	minTiles        = 8       // per layer, while splitting pays: work for two to eight workers
	filterTiles     = 4       // per convolution of many filters: eight parts together take up to 1.4 times as long
	maxTiles        = 64      // parts of a weight that is split to fit the cache: each part reads the activations again
	taskNs          = 20_000  // a task shorter than this is not split for more tiles
	smallTaskNs     = 1_500   // a task shorter than this, five dispatches, is not split to follow the tiles before it
	mergeShare      = 10      // merging accumulators takes at most 1/10 of the time of summing them
	mergeBytesPerNs = 16      // of an accumulator; a merge reads two and writes one
	maxAccumulators = 4       // each further one is one more merge of weight and of bias
	reuse           = 8       // times the bytes of its filters that a convolution's tile has of activations, though these leave the cache
	minTileElems    = 1 << 13 // below this an elementwise task is mostly dispatch
	defaultL2       = 1 << 20 // where the platform does not say
)

// DefaultLowering chooses a granularity for every layer. It uses
// the shapes, the batch and the size of the second-level cache (0 means 1 MiB). It estimates a task by
// its operations and the activations that it reads and writes:
//
//   - Where activations are larger than weights, a tile is some samples of all outputs. If it has
//     more than one sample, it reads and writes at most half of the cache. A tile of a convolution has more samples
//     where its activations would be less than 8 times its filters, which each task reads and rearranges.
//   - Where a dense layer's weights are larger, a tile is all samples of some outputs. Their weights take at most
//     a quarter of the cache, in up to 64 parts, and are read once. Of a sequence it has 8 tiles: its kernels keep blocks of the weights
//     in the cache for all positions.
//   - Where the filters of a convolution take more than a quarter of the cache, a tile is some outputs of some samples, so that
//     tasks together read the fewest bytes of filters and of images again. It has four tiles, and its gradient eight.
//   - A layer has at least 8 tiles while a task takes more than 20 µs.
//   - A small layer follows the tiles of the one before it, down to 1.5 µs per task, so that a
//     chain of tasks stays with its samples.
//   - Layers without weights take the tiles of the last layer with weights. They take several at
//     once where those are tiny, and fewer channels where a sample is large, but for normalisations. Of few long sequences a layer has 8 tiles or as many
//     as the layer before it, along positions if it is a normalisation.
//   - Tiles sum weight gradients in up to 4 private accumulators where merging takes less than a
//     tenth of summing. Other weight gradients are split by outputs.
//
// Operations have [dag.Lowering.Epilogues], but for activations in bfloat16.
//
// Layers that are fused with one before them have an entry too, so that the same numbers serve where a cut parts them.
func DefaultLowering(m *Model, batch, l2Bytes int, t dag.DType) dag.Lowering {
	return forCache(m, batch, l2Bytes, reuse, t)
}

// FewCores is up to how many cores [DefaultLowering] is for. It leaves the others of a larger machine idle in convolutions of
// many filters.
const FewCores = 8

// FineLowering is [DefaultLowering] for machines of more than [FewCores] cores. Their number counts for more than how fast a task is, so
// a convolution's tile stays within the cache however many filters it has, down to one sample.
func FineLowering(m *Model, batch, l2Bytes int, t dag.DType) dag.Lowering {
	return forCache(m, batch, l2Bytes, 0, t)
}

func forCache(m *Model, batch, l2Bytes, reuse int, t dag.DType) dag.Lowering {
	if l2Bytes <= 0 {
		l2Bytes = defaultL2
	}
	d := chooser{batch: batch, half: l2Bytes / 2, reuse: reuse, elemBytes: int(t.SizeBytes()), tiles: minTiles, devices: 1}
	lowering := d.lowering(m)
	lowering.Epilogues = t != dag.BFloat16 && m.Epilogues() // in which the values between two operations are rounded
	return lowering
}

// WholeLowering chooses layers that are not split. It is for one device that
// spreads each task over all of itself, as a GPU does, so fewer tasks are better. It splits a
// task only if its operands would take more than half of the device's memory (0 means not limited), as
// [DefaultLowering] does for a cache.
func WholeLowering(m *Model, batch int, memoryBytes int64, t dag.DType) dag.Lowering {
	if memoryBytes <= 0 {
		memoryBytes = math.MaxInt64
	}
	d := chooser{batch: batch, half: int(memoryBytes / 2), elemBytes: int(t.SizeBytes()), tiles: 1, devices: 1}
	return d.lowering(m)
}

// PartsLowering is [WholeLowering] with the batch in parts, one for each of several devices with memories of their own.
// Each part of a layer sums its weight gradient in an accumulator. Layers stay whole from the first one on whose weights,
// once in each memory, have more bytes than a batch of its input: to move the samples
// to one device takes less than to move gradients and weights between all.
func PartsLowering(m *Model, batch, devices int, t dag.DType) dag.Lowering {
	d := chooser{batch: batch, half: math.MaxInt64 / 2, elemBytes: int(t.SizeBytes()), tiles: 1, devices: devices}
	return d.lowering(m)
}

// chooser chooses the granularity of layers.
type chooser struct {
	batch, elemBytes int
	half             int // number of bytes in which a task's operands should stay
	reuse            int // of a convolution's filters, for which a task may leave these bytes. Zero means filters are as other weights.
	tiles            int // per layer at least, while splitting pays
	devices          int // among which the layers to come divide the batch
}

func (d *chooser) lowering(m *Model) dag.Lowering {
	lowering := dag.Lowering{Layers: map[string]dag.LayerLowering{}}
	groups := m.groups(&lowering)
	if i := slices.IndexFunc(groups, func(g group) bool { return g.Traits.Weight }); i < 0 || !d.divides(groups[i].Stage) {
		d.devices = 1
	}
	// By stage, the samples per tile of the last layer with weights on the way of its first inputs.
	along := map[int]int{ModelInput: dag.CeilDiv(d.batch, d.devices)}
	before := along[ModelInput]
	for i := range groups {
		g := &groups[i]
		before = along[g.Inputs[0]]
		ll := d.elementwise(g.Stage, before)
		if g.Traits.Weight {
			ll = d.weighted(g, m.written(g), before)
			before = ll.Forward.Samples
		}
		for _, s := range g.stages {
			along[s] = before
		}
		if i == 0 {
			lowering.Layers["input"] = dag.LayerLowering{Forward: dag.Cut{Samples: d.grow(ll.Forward.Samples, Elems(m.Input))}}
		}
		lowering.Layers[g.Name] = ll
		for _, s := range []*Stage{g.relu, g.pool, g.function} {
			if s != nil {
				lowering.Layers[s.Name] = d.elementwise(s, before)
			}
		}
	}
	lowering.Layers["loss"] = dag.LayerLowering{Forward: dag.Cut{Samples: before}}
	return lowering
}

// streams reports whether tiles of a layer on a processor need not fit the cache: the positions of all samples are its rows, and pass through.
func (d *chooser) streams(s *Stage) bool { return d.tiles > 1 && len(s.Out) == 2 }

// lanes is the number of outputs that fill a vector.
func (d *chooser) lanes() int { return vectorBytes / d.elemBytes }

// workNs estimates, in nanoseconds, the forward pass of a layer with weights over a tile: its
// operations, with outputs that fill whole vectors, and its activations once.
func (d *chooser) workNs(s *Stage, samples, outputs int) float64 {
	filled := float64(dag.CeilDiv(outputs, d.lanes()) * d.lanes())
	flops := s.Layer.Flops(s.In, s.Out) / float64(Channels(s.Out)) * filled * float64(samples)
	bytes := samples * (s.inElems() + Elems(s.Out)/Channels(s.Out)*outputs) * d.elemBytes
	return flops*float64(d.elemBytes)/flopBytesPerNs + float64(bytes)/bytesPerNs
}

// weighted is the granularity of a layer with weights, of whose group written is in memory. The
// layer before it has tiles of before samples.
func (d *chooser) weighted(g *group, written *Stage, before int) dag.LayerLowering {
	s := g.Stage
	in, out := s.inElems()*d.elemBytes, Elems(written.Out)*d.elemBytes/Channels(s.Out)
	weights := s.Params[0].Elems() * d.elemBytes
	ll := dag.LayerLowering{Forward: dag.Cut{Samples: d.batch, Outputs: Channels(s.Out)}}
	part := func() int { return weights / Channels(s.Out) * ll.Forward.Outputs }
	work := func() float64 { return d.workNs(s, ll.Forward.Samples, ll.Forward.Outputs) }
	tiles := func() int {
		return dag.CeilDiv(d.batch, ll.Forward.Samples) * dag.CeilDiv(Channels(s.Out), ll.Forward.Outputs)
	}

	if d.divides(s) {
		return d.part(s)
	}
	d.devices = 1
	convolves := len(s.Out) == 3 && d.reuse > 0
	if !convolves && weights > max(d.half/2, d.batch*in) {
		// Each part of the weights is read once, with all samples.
		for ll.Forward.Outputs > d.lanes() && work() > taskNs && (tiles() < d.tiles || part() > d.half/2 && tiles() < maxTiles && !d.streams(s)) {
			ll.Forward.Outputs = halve(ll.Forward.Outputs)
		}
		return d.gradient(s, ll, true)
	}
	sample := in + out*ll.Forward.Outputs
	for ll.Forward.Samples > 1 && ll.Forward.Samples*sample+weights > d.half {
		if convolves && halve(ll.Forward.Samples)*sample < d.reuse*weights {
			break
		}
		ll.Forward.Samples = halve(ll.Forward.Samples)
	}
	if convolves && weights > d.half/2 {
		for tiles() < min(d.tiles, filterTiles) && work() > taskNs && d.halveCheaper(s, &ll.Forward, weights, d.batch) {
		}
		return d.filterGradient(s, ll, weights)
	}
	for tiles() < d.tiles && work() > taskNs && ll.Forward.Samples > 1 {
		ll.Forward.Samples = halve(ll.Forward.Samples)
	}
	for tiles() < d.tiles && ll.Forward.Samples > before && work() > 2*smallTaskNs {
		ll.Forward.Samples = max(before, halve(ll.Forward.Samples))
	}
	for ll.Forward.Samples == 1 && tiles() < d.tiles && work() > taskNs && ll.Forward.Outputs > d.lanes() {
		ll.Forward.Outputs = halve(ll.Forward.Outputs)
	}
	return d.gradient(s, ll, false)
}

// halveCheaper halves the samples or the outputs of a convolution's tile, whichever moves fewer bytes. A further part of the
// batch moves perSamples bytes, and a further part of the outputs moves the images again. The batch gets at most maxParts
// parts. halveCheaper reports whether there was anything to halve.
func (d *chooser) halveCheaper(s *Stage, c *dag.Cut, perSamples, maxParts int) bool {
	bySamples := dag.CeilDiv(d.batch, c.Samples) * perSamples
	byOutputs := dag.CeilDiv(Channels(s.Out), c.Outputs) * d.batch * s.inElems() * d.elemBytes
	canSamples := c.Samples > 1 && dag.CeilDiv(d.batch, halve(c.Samples)) <= maxParts
	canOutputs := c.Outputs > d.lanes()
	switch {
	case canSamples && (bySamples <= byOutputs || !canOutputs):
		c.Samples = halve(c.Samples)
	case canOutputs:
		c.Outputs = halve(c.Outputs)
	}
	return canSamples || canOutputs
}

// filterGradient chooses how the gradient of a convolution's many filters is split. Each part of the batch has an
// accumulator of its own; to merge one reads two and writes one.
func (d *chooser) filterGradient(s *Stage, ll dag.LayerLowering, weights int) dag.LayerLowering {
	g := &ll.WeightGradient
	*g = dag.Cut{Samples: d.batch, Outputs: Channels(s.Out)}
	for dag.CeilDiv(d.batch, g.Samples)*dag.CeilDiv(Channels(s.Out), g.Outputs) < d.tiles && d.workNs(s, g.Samples, g.Outputs) > taskNs &&
		d.halveCheaper(s, g, 3*weights, maxAccumulators) {
	}
	g.Accumulators = dag.CeilDiv(d.batch, g.Samples)
	return ll
}

// divides reports whether the devices divide the batch of a layer with weights.
func (d *chooser) divides(s *Stage) bool {
	return d.devices > 1 && s.Params[0].Elems()*d.devices <= d.batch*s.inElems()
}

// part is the granularity of a layer of which each device has its part of the batch.
func (d *chooser) part(s *Stage) dag.LayerLowering {
	samples := dag.CeilDiv(d.batch, d.devices)
	return dag.LayerLowering{
		Forward:        dag.Cut{Samples: samples, Outputs: Channels(s.Out)},
		WeightGradient: dag.Cut{Samples: samples, Outputs: Channels(s.Out), Accumulators: dag.CeilDiv(d.batch, samples)},
	}
}

// gradient chooses how the weight gradient is split and summed. Big weights are never copied into
// private accumulators.
func (d *chooser) gradient(s *Stage, ll dag.LayerLowering, big bool) dag.LayerLowering {
	outputs := Channels(s.Out)
	g := &ll.WeightGradient
	*g = dag.Cut{Samples: d.batch, Outputs: outputs, Accumulators: 1}
	if big {
		g.Outputs = ll.Forward.Outputs
		return ll
	}
	merge := float64(3 * s.Params[0].Elems() * d.elemBytes / mergeBytesPerNs)
	byMerging := int(d.workNs(s, d.batch, outputs) / (mergeShare * merge)) // accumulators after the first
	if byMerging > 0 {
		g.Samples = ll.Forward.Samples
		g.Accumulators = min(maxAccumulators, 1+byMerging, dag.CeilDiv(d.batch, g.Samples))
		return ll
	}
	for g.Outputs >= 2*d.lanes() && dag.CeilDiv(outputs, g.Outputs) < d.tiles && d.workNs(s, d.batch, g.Outputs) > taskNs {
		g.Outputs = halve(g.Outputs)
	}
	if d.tiles > 1 && d.workNs(s, d.batch, g.Outputs) > 2*taskNs && d.batch > 1 {
		g.Samples, g.Accumulators = halve(d.batch), 2
	}
	return ll
}

// elementwise is the granularity of a layer without weights. The layer before it has tiles of
// before samples.
func (d *chooser) elementwise(s *Stage, before int) dag.LayerLowering {
	ll := dag.LayerLowering{Forward: dag.Cut{Samples: d.grow(before, s.inElems()), Outputs: Channels(s.Out)}}
	channel := (s.inElems() + Elems(s.Out)) * d.elemBytes / Channels(s.Out)
	for ll.Forward.Samples*ll.Forward.Outputs*channel > d.half && ll.Forward.Samples*ll.Forward.Outputs > 1 {
		if ll.Forward.Samples > 1 {
			ll.Forward.Samples = halve(ll.Forward.Samples)
		} else if s.Traits.WholeSample {
			if parts := dag.CeilDiv(d.tiles, d.batch); len(s.Out) == 2 && parts > 1 {
				ll.Forward.Rows = dag.CeilDiv(s.Out[0], parts)
			}
			break
		} else if d.streams(s) && dag.CeilDiv(d.batch, ll.Forward.Samples)*dag.CeilDiv(Channels(s.Out), ll.Forward.Outputs) >= d.tiles {
			break
		} else {
			ll.Forward.Outputs = halve(ll.Forward.Outputs)
		}
	}
	return ll
}

// grow doubles a number of samples while a task over them is tiny.
func (d *chooser) grow(samples, sampleElems int) int {
	for d.devices == 1 && samples < d.batch && samples*sampleElems < minTileElems {
		samples *= 2
	}
	return min(samples, d.batch)
}

func halve(n int) int { return (n + 1) / 2 }

// lowered lists what has an entry of its own in a lowering.
func (m *Model) lowered() []string {
	names := []string{"input", "loss"}
	for i := range m.Stages {
		names = append(names, m.Stages[i].Name)
	}
	return names
}

// checkLowering refuses names and numbers that make no sense.
func (m *Model) checkLowering(l *dag.Lowering, batch int) error {
	names := m.lowered()
	if l.MicroBatches < 0 || l.MicroBatches > batch {
		return fmt.Errorf("lowering: micro_batches is %d; want 1 to %d, the samples of a batch, or 0 for one", l.MicroBatches, batch)
	}
	if err := cmp.Or(m.checkStages(l.Stages), checkGranularity("default", l.Default)); err != nil {
		return err
	}
	for _, pattern := range l.Recompute {
		if alone := (&dag.Lowering{Recompute: []string{pattern}}); !slices.ContainsFunc(names, alone.Recomputes) {
			return fmt.Errorf("lowering: recompute: no layer of the model is like %q; it has %v", pattern, names)
		}
	}
	if l.JoinLoss {
		if err := m.checkJoinLoss(); err != nil {
			return err
		}
	}
	known := map[string]bool{}
	for _, name := range names {
		known[name] = true
	}
	for _, name := range slices.Sorted(maps.Keys(l.Layers)) {
		if !known[name] {
			return fmt.Errorf("lowering: the model has no layer %q; it has %v", name, names)
		}
		if err := checkGranularity(name, l.Layers[name]); err != nil {
			return err
		}
	}
	return nil
}
