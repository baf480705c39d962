package dag

// Lowering says how a network becomes a graph: the granularity of every layer. It is data, so
// that a planner can search over it without knowing the network. Zero values mean "not split" and
// 1 accumulator.
type Lowering struct {
	// Default holds for layers that Layers does not name.
	Default LayerLowering
	Layers  map[string]LayerLowering
	// Layout is the order of the dimensions of images between layers: NCHW (the
	// default, as data and parameters have it) or NHWC, channels last.
	Layout string
	// Fused computes consecutive layers in one task where an operation exists for them in this
	// layout, and also the softmax cross-entropy and weight gradients with their updates. False
	// lowers each layer by itself, and the loss as a chain of small operations.
	Fused bool
}

// The layouts of a Lowering. An empty one is NCHW.
const (
	NCHW = "nchw"
	NHWC = "nhwc"
)

// LayerLowering is the granularity of one layer. A tile of 0 is the full extent;
// extents that a tile does not divide end in a shorter tile.
type LayerLowering struct {
	SampleTile   int // samples per task
	OutputTile   int // output channels or features per task
	GradTile     int // output channels or features per weight-gradient task
	Accumulators int // private accumulators per weight-gradient reduction

	// GradSampleTile is the samples per weight-gradient task. 0 means the whole batch, which
	// leaves nothing to accumulate.
	GradSampleTile int
}

// Of returns the granularity of a layer.
func (l *Lowering) Of(layer string) LayerLowering {
	if ll, ok := l.Layers[layer]; ok {
		return ll
	}
	return l.Default
}
