package nn

import (
	"fmt"

	"dahl/kernels/calls"
)

// Layer is one kind of computation with its numbers. A new layer is one file with this interface
// and a line in [Layers]; gradient, parity and lowering tests loop over the table. A layer of
// another module needs no line: [New] takes whatever implements the interface. Such a layer may
// bring operations of its own, with a method Kernels() []kernels.Kernel. Other methods that a layer may
// have are those of [Learner] and [Tracker], Traits() Traits, and WithOutputs(n int) Layer of one that can be a model's last for
// any number of classes.
type Layer interface {
	// Kind is the layer's name in Layers and in model files.
	Kind() string
	// Output is the shape of one sample after the layer, given those of its inputs, or an error if
	// these do not fit.
	Output(in [][]int) ([]int, error)
	// Flops is the work of the forward computation of one sample.
	Flops(in [][]int, out []int) float64
	// Forward adds the tasks that fill the layer's output.
	Forward(n *Node)
	// Backward adds the tasks that fill the gradients of the parameters, and of each input that
	// Needs one. It is not called where nothing is needed.
	Backward(n *Node)
}

// Learner is a layer with parameters, weight before bias, whose names are without the layer's.
type Learner interface {
	Params(in [][]int) []Parameter
}

// Tracker is a layer with statistics that its forward pass carries from batch to batch. Their names are without the
// layer's.
type Tracker interface {
	Running(in [][]int) []Parameter
}

// Traits are what a lowering must know of a layer beside its tasks. A layer that has any states them with a method Traits() Traits.
type Traits struct {
	// Weight says that the layer's work is the product of its first parameter and its input. The rows of the parameter are outputs.
	Weight bool
	// Grouped says that such a sum is over the channels of one group, of which a task has all.
	Grouped bool
	// WholeSample says that tasks have all channels of a sample unless a lowering asks for less.
	WholeSample bool
	// View says that the output is the input in another shape, without a task: Forward is [Node.View].
	View bool
	// TrainsOnly says the same of an evaluation.
	TrainsOnly bool
	// Passes says that the gradient of each input is that of the output, or channels of it, without a task.
	Passes bool
	// Joins says that the output is the channels of the inputs behind each other, which other layers may write there.
	Joins bool
	// Normalises says that the layer before may take the moments of what it writes, and that the layer behind may
	// normalise what it reads.
	Normalises bool
	// Integers says that the output is of type int32. It has no gradient.
	Integers bool
	// Takes is the layers before it that operations of the layer compute with it: [calls.Norm] for one that normalises, and
	// [calls.Mapped] for a view of a map.
	Takes calls.Attributes
}

// Elementwise is the part of a layer with one input and no parameters that all layers have alike
// whose outputs depend on the inputs at the same place. Such layers embed it.
type Elementwise struct{}

// Output implements [Layer].
func (Elementwise) Output(in [][]int) ([]int, error) { return one(in) }

// Flops implements [Layer] with one operation per element.
func (Elementwise) Flops(_ [][]int, out []int) float64 { return float64(elems(out)) }

// one is the shape of the only input of a layer.
func one(in [][]int) ([]int, error) {
	if len(in) != 1 {
		return nil, fmt.Errorf("%d inputs; want one", len(in))
	}
	return in[0], nil
}

// oneImage is the same of a layer that needs an image.
func oneImage(in [][]int, layer string) ([]int, error) {
	shape, err := one(in)
	if err == nil && len(shape) != 3 {
		err = fmt.Errorf("%s needs C×H×W", layer)
	}
	return shape, err
}

// LayerKind is a line of the table of layers.
type LayerKind struct {
	Kind   string
	Prefix string // of automatic names
	Doc    string
	// Keys are the numbers and flags that a model file may give and that New reads.
	Keys []Key
	New  func(s Settings) Layer
	// Curve describes a layer that applies one function to every element; zero for any other
	// layer.
	Curve Curve
}

// Curve bounds a function f, except at kinks. Tests derive from it how errors grow.
type Curve struct {
	Slope  float64 // |f(a) - f(b)| ≤ Slope·|a - b|
	Bend   float64 // |f'(a) - f'(b)| ≤ Bend·|a - b|
	AtZero float64 // |f(0)|
}

// Key is one setting of a layer in a model file: a whole number, a fraction, or a flag.
type Key struct {
	Name     string
	Min, Max float64
	Default  float64
	Needed   bool // there is no default
	Flag     bool
	Fraction bool // any number between the limits
	// Sides is how many numbers a list may have that stands in place of one: 2 for rows and columns,
	// or 4 for top, left, bottom and right, of which it may then also have 2. 0: there is no list.
	Sides int
	Doc   string
}

// Settings are the values of a layer's keys, flags as 0 and 1; defaults are filled in. The further
// numbers of a list are behind the key with their position, as "kernel[1]".
type Settings map[string]float64

// Set gives a key a number, or a list of them.
func (s Settings) Set(key string, values ...float64) {
	for i, v := range values {
		if i > 0 {
			s[fmt.Sprintf("%s[%d]", key, i)] = v
		} else {
			s[key] = v
		}
	}
}

// list is the numbers of a key.
func (s Settings) list(key string) []int {
	all := []int{s.count(key)}
	for {
		v, more := s[fmt.Sprintf("%s[%d]", key, len(all))]
		if !more {
			return all
		}
		all = append(all, int(v))
	}
}

// count is a setting that is a whole number.
func (s Settings) count(key string) int { return int(s[key]) }

const maxExtent = 1 << 24 // of one number in a model file

// Layers is the table of layers.
func Layers() []LayerKind {
	return append([]LayerKind{
		{
			Kind: "conv2d", Prefix: "conv", Doc: "convolution (cross-correlation, as PyTorch's)",
			Keys: []Key{
				{Name: "filters", Min: 1, Max: maxExtent, Needed: true, Doc: "output channels"},
				{Name: "kernel", Min: 1, Max: maxExtent, Needed: true, Sides: 2, Doc: "height and width of the kernel"},
				{Name: "pad", Min: 0, Max: maxExtent, Default: 0, Sides: 4, Doc: "zeros on each side"},
				{Name: "stride", Min: 1, Max: maxExtent, Default: 1, Sides: 2, Doc: "distance between neighbouring windows"},
				{Name: "dilation", Min: 1, Max: maxExtent, Default: 1, Sides: 2, Doc: "distance between neighbouring taps of the kernel"},
				{Name: "groups", Min: 1, Max: maxExtent, Default: 1, Doc: "into which channels and filters fall; as many as channels: depthwise"},
				{Name: "bias", Max: 1, Default: 1, Flag: true, Doc: "whether a bias per filter is added"},
			},
			New: conv2dOf,
		},
		{
			Kind: "dense", Prefix: "fc", Doc: "fully connected: y = x·wᵀ + b",
			Keys: []Key{
				{Name: "outputs", Min: 1, Max: maxExtent, Needed: true, Doc: "output features"},
				{Name: "bias", Max: 1, Default: 1, Flag: true, Doc: "whether a bias per output is added"},
			},
			New: func(s Settings) Layer { return Dense{Outputs: s.count("outputs"), NoBias: s["bias"] == 0} },
		},
		{
			Kind: "relu", Prefix: "relu", Doc: "max(x, 0), gradient 0 at 0",
			New:   func(Settings) Layer { return ReLU{} },
			Curve: Curve{Slope: 1},
		},
		{
			Kind: "batchnorm", Prefix: "bn", Doc: "each channel less its mean, by its deviation, times a weight, plus a bias",
			Keys: []Key{
				{Name: "eps", Min: 1e-12, Max: 1, Default: defaultEps, Fraction: true, Doc: "added to the variance"},
				{Name: "momentum", Min: 1e-12, Max: 1, Default: defaultMomentum, Fraction: true, Doc: "part of a batch in the running mean and variance"},
			},
			New: func(s Settings) Layer { return BatchNorm{Eps: s["eps"], Momentum: s["momentum"]} },
		},
		{
			Kind: "maxpool", Prefix: "pool", Doc: "maximum of windows",
			Keys: poolKeys(),
			New:  func(s Settings) Layer { return poolOf(s) },
		},
		{
			Kind: "avgpool", Prefix: "pool", Doc: "average of windows",
			Keys: poolKeys(),
			New:  func(s Settings) Layer { return AvgPool(poolOf(s)) },
		},
		{
			Kind: "dropout", Prefix: "drop", Doc: "elements at random 0 in training steps, the others times 1/(1-p)",
			Keys: []Key{{Name: "p", Min: 0, Max: 1, Default: defaultP, Fraction: true, Doc: "probability of 0"}},
			New:  func(s Settings) Layer { return Dropout{P: s["p"]} },
		},
		{
			Kind: "flatten", Prefix: "flatten", Doc: "C×H×W as one vector: another view, no task",
			New: func(Settings) Layer { return Flatten{} },
		},
		{
			Kind: "add", Prefix: "add", Doc: "sum of two or more inputs of one shape",
			New: func(Settings) Layer { return Add{} },
		},
		{
			Kind: "concat", Prefix: "concat", Doc: "the channels or features of two or more inputs behind each other",
			New: func(Settings) Layer { return Concat{} },
		},
		{
			Kind: "globalavgpool", Prefix: "pool", Doc: "average of all pixels of each channel",
			New: func(Settings) Layer { return GlobalAvgPool{} },
		},
	}, activations()...)
}

func poolKeys() []Key {
	return []Key{
		{Name: "size", Min: 1, Max: maxExtent, Needed: true, Sides: 2, Doc: "height and width of the window"},
		{Name: "stride", Min: 0, Max: maxExtent, Default: 0, Sides: 2, Doc: "distance between neighbouring windows; 0: size"},
		{Name: "pad", Min: 0, Max: maxExtent, Default: 0, Sides: 4, Doc: "on each side, at most half of the window; of a maximum nothing, of an average zeros"},
	}
}

func (k LayerKind) name() string { return k.Kind }

// LayerByName finds a line of the table of layers.
func LayerByName(kind string) (LayerKind, error) { return byName("layer", kind, Layers()) }

// Named gives a layer its own name instead of an automatic one, and names its inputs.
type Named struct {
	Name string // "": automatic
	Layer
	Inputs []string // names of earlier layers, or "input", the model's own; nil: the layer before

	// Shares names what this layer has of earlier ones: all parameters of "fc1", or its "fc1.weight" alone. Each is one
	// parameter, whose gradient is the sum of those of all layers that have it. Running statistics are never shared.
	Shares []string

	// StateName begins the names of parameters and running statistics; "": Name does.
	StateName string
}

// Of is a layer of named inputs, as in Of(Add{}, "conv3", "pool1").
func Of(layer Layer, inputs ...string) Named { return Named{Layer: layer, Inputs: inputs} }
