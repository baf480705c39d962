package dag

import (
	"bytes"
	"encoding/json"
	"slices"
)

// Lowering says how a network becomes a graph: the granularity of every layer, and the layers to compute twice.
// It is data, so
// that a planner can search over it without knowing the network. Zero values mean "not split" and
// 1 accumulator.
type Lowering struct {
	// Default holds for layers that Layers does not name.
	Default LayerLowering
	Layers  map[string]LayerLowering
	// MicroBatches is the number of parts of samples into which a training step cuts its batch.
	// Each part passes the network
	// forward and backward by itself, with activations of its own. The gradients are sums over all parts,
	// and one update follows. A part has ⌈batch/MicroBatches⌉ samples, and the last one what is left, so that there
	// may be fewer parts. 0 means 1.
	MicroBatches int `json:",omitzero"`
	// Stages form a pipeline: each has the layers from its first one to the next stage, in the order of the network, and runs
	// on a device. None means that layers run anywhere.
	Stages []Stage `json:",omitempty"`
	// Stash makes each micro-batch a mini-batch with an update of its own. Stages then go on with other mini-batches, and keep the weights
	// of their forward passes.
	Stash bool `json:",omitzero"`
	// Order is the name of the policy that orders the micro-batches of the stages. Empty means that no policy is named.
	Order string `json:",omitzero"`
}

// Stage is a part of a network that runs on one device.
type Stage struct {
	From   string `json:"from"`   // its first layer
	Device string `json:"device"` // as [Placement] has it
}

// UnmarshalJSON also takes the form of older runs and plans. They named the layout of images, and whether layers are
// fused. It keeps neither. The hash of its graph tells a plan apart that was made for another form.
func (l *Lowering) UnmarshalJSON(data []byte) error {
	type fields Lowering // without this method
	older := struct {
		*fields
		Layout string
		Fused  bool
	}{fields: (*fields)(l)}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	return dec.Decode(&older)
}

// Dimension is a dimension of a layer's computation, along which it may be cut.
type Dimension int

// The dimensions. Outputs and inputs are the layer's channels or features. Rows and columns belong to its output.
const (
	AlongSamples Dimension = iota
	AlongOutputs
	AlongInputs
	AlongRows
	AlongColumns
	NumDimensions
	// Accumulators is no dimension. It stands for the number of accumulators among the numbers of a [Cut].
	Accumulators = NumDimensions
	NumNumbers   = NumDimensions + 1
)

var dimensionNames = [...]string{"samples", "outputs", "inputs", "rows", "columns", "accumulators"}

func (d Dimension) String() string { return nameOf(dimensionNames[:], int(d)) }

// Cut is the extent of a task of one operation along each dimension; 0 is the full extent. Extents that
// a tile does not divide end in a shorter tile.
type Cut struct {
	Samples int `json:"samples,omitzero"`
	Outputs int `json:"outputs,omitzero"`
	Inputs  int `json:"inputs,omitzero"`
	Rows    int `json:"rows,omitzero"`
	Columns int `json:"columns,omitzero"`

	// Accumulators is the number of private accumulators of a sum with cut terms. Its dimensions are absent from the
	// operation's result. 0 means 1.
	Accumulators int `json:"accumulators,omitzero"`
}

// Of is the tile in one dimension, or the number of accumulators.
func (c *Cut) Of(d Dimension) *int {
	return [...]*int{&c.Samples, &c.Outputs, &c.Inputs, &c.Rows, &c.Columns, &c.Accumulators}[d]
}

// Pass is one of the computations of a layer, each of which has a cut of its own.
type Pass int

// The passes.
const (
	ForwardPass Pass = iota
	InputGradientPass
	WeightGradientPass
	NumPasses
)

// passes are the names of passes, as keys of files, and the dimensions that they sum over.
var passes = [...]struct {
	name string
	sums []Dimension
}{
	{"forward", []Dimension{AlongInputs}},
	{"input_gradient", []Dimension{AlongOutputs}},
	{"weight_gradient", []Dimension{AlongSamples, AlongRows, AlongColumns}},
}

func (p Pass) String() string { return passes[p].name }

// Sums reports whether the pass sums over a dimension.
func (p Pass) Sums(over Dimension) bool { return slices.Contains(passes[p].sums, over) }

// LayerLowering is the granularity of one layer, and whether it is computed twice.
type LayerLowering struct {
	Forward Cut `json:"forward,omitzero"`
	// Rows and columns of InputGradient belong to the input. If it is zero, there are as many parts of samples, rows
	// and columns as in the forward pass, and as many of inputs as of outputs.
	InputGradient  Cut `json:"input_gradient,omitzero"`
	WeightGradient Cut `json:"weight_gradient,omitzero"`
	// Recompute drops the results of the layer's forward pass when the forward pass has read them, and computes them
	// again for the backward pass.
	Recompute bool `json:"recompute,omitzero"`
}

// Cut is the cut of one pass.
func (l *LayerLowering) Cut(p Pass) *Cut {
	return [...]*Cut{&l.Forward, &l.InputGradient, &l.WeightGradient}[p]
}

// Of returns the granularity of a layer.
func (l *Lowering) Of(layer string) LayerLowering {
	if ll, ok := l.Layers[layer]; ok {
		return ll
	}
	return l.Default
}
