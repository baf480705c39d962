package dag

import (
	"bytes"
	"encoding/json"
	"path"
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
	// on a device, or on several that share it. None means that layers run anywhere.
	Stages []Stage `json:",omitempty"`
	// Stash makes each micro-batch a mini-batch with an update of its own. Stages then go on with other mini-batches, and keep the weights
	// of their forward passes.
	Stash bool `json:",omitzero"`
	// VerticalSync lets a mini-batch have weights behind equally many updates in all stages.
	VerticalSync bool `json:",omitzero"`
	// JoinLoss lets the operations of the last layer compute its loss, too, so that its outputs are never in memory. The gradients compute them again.
	JoinLoss bool `json:",omitzero"`
	// Epilogues lets dense layers compute the function behind them, and layer normalisations the sum before them, where nothing else is between. It changes no bit, but for
	// activations in bfloat16.
	Epilogues bool `json:",omitzero"`
	// Order is the name of the policy that orders the micro-batches of the stages. Empty means that no policy is named.
	Order string `json:",omitzero"`
	// Recompute has patterns of names of layers to recompute, in addition to [LayerLowering.Recompute]. They are as [path.Match] has them, so that
	// "h.*.attn" is the attention of every block.
	Recompute []string `json:",omitempty"`
	// Fold lets the device of a stage stand for several equal ones, which share the stage. The zero value is one that stands for itself.
	Fold Fold `json:",omitzero"`
}

// Fold is a grid of equal devices, of which a graph has the first one. All others do the same at the same time on other data. So an exchange of all is
// a task of this device, such as "all_gather", and takes as long.
type Fold struct {
	Tensor int `json:"tensor"` // devices that share each layer, in equal parts of its weights and heads. Zero means no fold.
	Data   int `json:"data"`   // rows of these, with equal parts of the samples and of what an optimiser keeps
	// Whole says that each device has all positions of the values between two pairs of layers, and not a part of these.
	Whole bool `json:"whole,omitzero"`
}

// Devices is the number of devices of the grid.
func (f Fold) Devices() int { return max(1, f.Tensor) * max(1, f.Data) }

// Recomputes reports whether a layer is recomputed.
func (l *Lowering) Recomputes(layer string) bool {
	return l.Of(layer).Recompute || slices.ContainsFunc(l.Recompute, func(pattern string) bool {
		match, _ := path.Match(pattern, layer)
		return match
	})
}

// RecomputesAny reports whether the lowering asks for recomputation at all.
func (l *Lowering) RecomputesAny() bool {
	any := l.Default.Recompute || len(l.Recompute) > 0
	for _, ll := range l.Layers {
		any = any || ll.Recompute
	}
	return any
}

// Stage is a part of a network that runs on one device, or is shared by several.
type Stage struct {
	From   string `json:"from"`             // its first layer
	Device string `json:"device,omitempty"` // as [Placement] has it

	// Devices share the stage in place of one device. Number k of n, from 0 on, has the part from ⌊k·e/n⌋ to ⌊(k + 1)·e/n⌋ of the extent e of a
	// dimension: of samples (replicas), outputs (parts of weights) or rows (parts of images).
	Devices []string  `json:"devices,omitempty"`
	Along   Dimension `json:"along,omitzero"`
	Sum     Exchange  `json:"sum,omitzero"` // of what the devices have summed over their parts

	// Replicas is the number of rows if the devices are a grid, one row after the other in the list. Each row has a part of the samples, and its devices
	// share that along the dimension. 0 means one row.
	Replicas int `json:"replicas,omitzero"`

	// PerNode is the number of devices of a node, which follow one another in the list. 0 means that one node has all of them.
	PerNode int `json:"per_node,omitzero"`

	// BucketBytes is how many bytes of small gradients one exchange has at least, where layers have as many; 0 means as many as begin to take slices.
	BucketBytes int64 `json:"bucket_bytes,omitzero"`

	Statistics Statistics `json:"statistics,omitzero"` // of a batch, over the devices

	// Shares are proportions of samples, one for each device: the first k devices have the part from 0 to ⌊e·s/t⌋ of e samples if the first k numbers
	// add up to s, and all to t. Nil means equal parts.
	Shares []int `json:"shares,omitempty"`
}

// Statistics says where devices that share samples or rows sum the statistics of a batch.
type Statistics int

// The places. The first device takes two messages of each other one, with a number for each sample and channel. Sums of their own are a task more on each device, and
// a message and a task in each round of a tree.
const (
	ByNumber Statistics = iota // as OnEach where three and more devices share, else as OnFirst
	OnFirst                    // the sums of all samples on the first device
	OnEach                     // each device its own samples, then a tree over the devices
)

var statisticsNames = [...]string{"number", "first", "each"}

func (s Statistics) String() string { return nameOf(statisticsNames[:], int(s)) }

// MarshalText implements [encoding.TextMarshaler].
func (s Statistics) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText implements [encoding.TextUnmarshaler].
func (s *Statistics) UnmarshalText(text []byte) error {
	return unmarshalName(s, "statistics", statisticsNames[:], text)
}

// Shared reports whether several devices share the stage.
func (s *Stage) Shared() bool { return len(s.Devices) > 1 }

// Grid is the number of replicas, and of the devices that share each.
func (s *Stage) Grid() (replicas, each int) {
	replicas = max(1, s.Replicas)
	return replicas, len(s.Devices) / replicas
}

// Proportions are the shares of n devices, which are equal where nobody says others.
func (s *Stage) Proportions(n int) []int {
	if s.Shares != nil {
		return s.Shares
	}
	return slices.Repeat([]int{1}, n)
}

// Places are the devices of the stage.
func (s *Stage) Places() []string {
	if s.Devices != nil {
		return s.Devices
	}
	return []string{s.Device}
}

// ShareOf is the part of device k among n in a dimension of some extent. It is empty where there are more devices than elements.
func ShareOf(k, extent, n int) Range { return Range{k * extent / n, (k + 1) * extent / n} }

// Part is a range of a dimension that a device of a stage has.
type Part struct {
	Range
	Device int // by its place among the devices of the stage
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

// MarshalText implements [encoding.TextMarshaler].
func (d Dimension) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText implements [encoding.TextUnmarshaler].
func (d *Dimension) UnmarshalText(text []byte) error {
	return unmarshalName(d, "dimension", dimensionNames[:NumDimensions], text)
}

// unmarshalName sets a number to the place of its name among all.
func unmarshalName[T ~int](to *T, what string, all []string, text []byte) error {
	i, err := parseName(what, all, string(text))
	*to = T(i)
	return err
}

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
