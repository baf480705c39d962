package nn

import "dahl/dag"

// Layer is one kind of computation with its numbers. A new layer is one file with this interface
// and a line in [Layers]. Gradient, parity and lowering tests loop over the table.
type Layer interface {
	// Kind is the layer's name in Layers and in model files.
	Kind() string
	// Output is the shape of one sample after the layer, or an error if the input does not fit.
	Output(in []int) ([]int, error)
	// Params are the layer's parameters, weight before bias, without the layer's name.
	Params(in []int) []Parameter
	// flops is the work of the forward computation of one sample.
	flops(in, out []int) float64
	// layout is the layout in which the layer computes ("" or dag.NHWC), given those of the
	// lowering and of its input. An input in another layout is converted.
	layout(chosen, in string) string
	// forward adds the layer's output buffer and the tasks that fill it.
	forward(l *lowerer, n *node)
	// backward adds the tasks that fill the gradients of the parameters. If n.in has a gradient,
	// it also fills that of the input.
	backward(l *lowerer, n *node)
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

// Key is one setting of a layer in a model file.
type Key struct {
	Name     string
	Min, Max int
	Default  int // -1: must be given
	Flag     bool
	Doc      string
}

// Settings are the values of a layer's keys, flags as 0 and 1; defaults are filled in.
type Settings map[string]int

const maxExtent = 1 << 24 // of one number in a model file

// Layers is the table of layers.
func Layers() []LayerKind {
	return []LayerKind{
		{
			Kind: "conv2d", Prefix: "conv", Doc: "convolution (cross-correlation, as PyTorch's) with a square kernel",
			Keys: []Key{
				{Name: "filters", Min: 1, Max: maxExtent, Default: -1, Doc: "output channels"},
				{Name: "kernel", Min: 1, Max: maxExtent, Default: -1, Doc: "height and width of the kernel"},
				{Name: "pad", Min: 0, Max: maxExtent, Default: 0, Doc: "zeros on each side"},
				{Name: "stride", Min: 1, Max: maxExtent, Default: 1, Doc: "distance between neighbouring windows"},
				{Name: "bias", Max: 1, Default: 1, Flag: true, Doc: "whether a bias per filter is added"},
			},
			New: func(s Settings) Layer {
				return Conv2D{Filters: s["filters"], Kernel: s["kernel"], Pad: s["pad"], Stride: s["stride"], NoBias: s["bias"] == 0}
			},
		},
		{
			Kind: "dense", Prefix: "fc", Doc: "fully connected: y = x·wᵀ + b",
			Keys: []Key{
				{Name: "outputs", Min: 1, Max: maxExtent, Default: -1, Doc: "output features"},
				{Name: "bias", Max: 1, Default: 1, Flag: true, Doc: "whether a bias per output is added"},
			},
			New: func(s Settings) Layer { return Dense{Outputs: s["outputs"], NoBias: s["bias"] == 0} },
		},
		{
			Kind: "relu", Prefix: "relu", Doc: "max(x, 0), gradient 0 at 0",
			New:   func(Settings) Layer { return ReLU{} },
			Curve: Curve{Slope: 1},
		},
		{
			Kind: "maxpool", Prefix: "pool", Doc: "maximum of square windows",
			Keys: poolKeys(),
			New:  func(s Settings) Layer { return MaxPool{Size: s["size"], Stride: s["stride"]} },
		},
		{
			Kind: "avgpool", Prefix: "pool", Doc: "average of square windows",
			Keys: poolKeys(),
			New:  func(s Settings) Layer { return AvgPool{Size: s["size"], Stride: s["stride"]} },
		},
		{
			Kind: "flatten", Prefix: "flatten", Doc: "C×H×W as one vector: another view, no task",
			New: func(Settings) Layer { return Flatten{} },
		},
	}
}

func poolKeys() []Key {
	return []Key{
		{Name: "size", Min: 1, Max: maxExtent, Default: -1, Doc: "height and width of the window"},
		{Name: "stride", Min: 0, Max: maxExtent, Default: 0, Doc: "distance between neighbouring windows; 0: size"},
	}
}

func (k LayerKind) name() string { return k.Kind }

// LayerByName finds a line of the table of layers.
func LayerByName(kind string) (LayerKind, error) { return byName("layer", kind, Layers()) }

// Named gives a layer its own name instead of an automatic one.
type Named struct {
	Name string
	Layer
}

// node is a group of layers while it is lowered.
type node struct {
	group
	next    *group // nil: the loss
	in, out tensor
	before  *tensor           // the input before a conversion to the layer's layout, nil: none
	tiles   dag.LayerLowering // no tile is 0 or larger than its extent
	weights []dag.BufferID    // as Stage.Params
	grads   []dag.BufferID    // as Stage.Params
	weight  weight            // form in which forward reads the weight and the gradient is summed
	packing *packing          // of weight, nil: the parameter itself
	turned  *weight           // form in which a convolution's input gradient reads the weight; nil until it exists
	saved   dag.BufferID      // data that backward needs beside in: a mask or an index
	params  dag.Params        // shared by the layer's tasks
}
