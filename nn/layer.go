package nn

import "dahl/kernels/calls"

// Layer is one kind of computation with its numbers. A new layer is one file with this interface, in package layers
// with a line in its table, over which gradient, parity and lowering tests loop. A layer of
// another module needs no line: [New] takes whatever implements the interface. Such a layer may
// bring operations of its own, with a method Kernels() []kernels.Kernel. A layer may implement [Learner], [Tracker] and
// [Fuser], and have these methods: Traits() Traits; Prefix() string, if automatic names do not begin with its kind;
// WithOutputs(n int) Layer, if it can be the last layer for any number of classes; Vocabulary() int, the number of tokens, if its input is tokens.
type Layer interface {
	// Kind is the layer's name in model files.
	Kind() string
	// Output is the shape of one sample after the layer. It fails if the shapes of the inputs do not fit.
	Output(in [][]int) ([]int, error)
	// Flops is the work of the forward computation of one sample.
	Flops(in [][]int, out []int) float64
	// Forward adds the tasks that fill the layer's output.
	Forward(n *Node)
	// Backward adds the tasks of the gradients of the parameters, and of each input that Needs one. It is not called if
	// there are none.
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

// Traits tell a lowering all that it must know of a layer in addition to its tasks. A layer states them with a method
// Traits() Traits.
type Traits struct {
	// Weight says that the layer's work is the product of its first parameter and its input. The rows of the parameter are outputs.
	Weight bool
	// Grouped says that such a sum is over the channels of one group. A task has all channels of a group.
	Grouped bool
	// WholeSample says that tasks have all channels of a sample unless a lowering asks for less.
	WholeSample bool
	// View says that the output is the input in another shape, without a task: Forward is [Node.View].
	View bool
	// TrainsOnly says the same of an evaluation.
	TrainsOnly bool
	// Passes says that the gradient of the output, or channels of it, is the gradient of each input, without a task.
	Passes bool
	// Joins says that the output is the channels of the inputs behind each other. The layers before may write them there.
	Joins bool
	// Normalises says that the layer before may write the moments, and the layer behind may normalise its own input.
	Normalises bool
	// Integers says that the output has type int32. It has no gradient.
	Integers bool
	// Rectifies says that the output is 0 exactly where no gradient passes.
	Rectifies bool
	// JoinsLoss says that there are operations for the layer together with a loss behind it, see [Node.SumLogits].
	JoinsLoss bool
	// Stops says that the layer, if [Node.Stops] asks for it, writes 0 into the gradient of its input where the input is
	// 0.
	Stops bool
	// Pointwise says that each element of the output depends on the element of the input at the same place alone.
	Pointwise bool
	// Slopes says that the layer, if [Node.Slope] asks for it, multiplies the gradient of its input by the slope of the function before it.
	Slopes bool
	// Takes is the layers before it that operations of the layer compute with it: [calls.Norm] for one that normalises,
	// [calls.Mapped] for a view of a map, and [calls.Sum] for a sum of two.
	Takes calls.Attributes
	// Blocks are the proportions of blocks of the input's channels. A task with some of the outputs reads its part of each block.
	Blocks []int
}

// Fuser is a layer whose tasks may compute layers behind it, too. [Node.Fused] tells it which they compute. Patterns are tried in order.
type Fuser interface {
	Patterns() []Pattern
}

// Pattern is layers that the tasks of the layer before them compute where each is the only reader of the one before it. Behind has
// a layer of each type. A sum has two inputs, and the other one comes earlier in the model.
//
// A ReLU that is fused keeps no mask. Its output is 0 exactly where no gradient passes, so the layers that
// read it can stop their input gradients there.
type Pattern struct {
	Behind     []Layer
	Evaluation bool // it is one of evaluations alone
	Epilogue   bool // it is one of lowerings that ask for [dag.Lowering.Epilogues]
	Stops      bool // all readers of the last layer have the trait Stops; if not, the layers stay tasks of their own

	Fits func(behind []Layer) bool // whether there is an operation for these layers. Nil means always.
}

// Named gives a layer its own name instead of an automatic one, and names its inputs.
type Named struct {
	Name string // Empty means automatic.
	Layer
	Inputs []string // names of earlier layers, or "input", the model's own. Nil means the layer before.

	// Shares names what this layer has of earlier ones: all parameters of "fc1", or its "fc1.weight" alone. Each is one
	// parameter. Its gradient is the sum of the gradients of all layers that have it. Running statistics are never shared.
	Shares []string

	// StateName begins the names of parameters and running statistics. Empty means Name does.
	StateName string
}

// Of is a layer of named inputs, as in Of(Add{}, "conv3", "pool1").
func Of(layer Layer, inputs ...string) Named { return Named{Layer: layer, Inputs: inputs} }
