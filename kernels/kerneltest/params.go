package kerneltest

import (
	"slices"

	"dahl/dag"
	"dahl/kernels"
)

// FirstModes is the first mode of each operand.
func FirstModes(k *kernels.Kernel) []dag.Mode {
	var modes []dag.Mode
	for _, o := range k.Operands {
		modes = append(modes, o.Modes[0])
	}
	return modes
}

// ConvParams are the parameters of a convolution with the same padding above and to the left.
func ConvParams(pad, stride float64) dag.Params { return slidingParams(stride, pad, pad) }

func slidingParams(stride, top, left float64) dag.Params {
	return dag.Params{{Name: "stride", Value: stride}, {Name: "top", Value: top}, {Name: "left", Value: left}}
}

// ConvReLUParams are the parameters of a channels-last convolution.
func ConvReLUParams(pad, stride, relu float64) dag.Params {
	return append(ConvParams(pad, stride), dag.Param{Name: "relu", Value: relu})
}

// ConvPoolParams are the parameters of a convolution with pooling.
func ConvPoolParams(pad, stride, size, step float64) dag.Params {
	return append(ConvParams(pad, stride), dag.Param{Name: "size", Value: size}, dag.Param{Name: "step", Value: step})
}

// PoolParams are the parameters of a pooling by squares without padding.
func PoolParams(size, stride float64) dag.Params { return PoolWindowParams(stride, 0, 0, size, size) }

// PoolWindowParams are the parameters of any pooling.
func PoolWindowParams(stride, top, left, height, width float64) dag.Params {
	return append(slidingParams(stride, top, left), dag.Param{Name: "height", Value: height}, dag.Param{Name: "width", Value: width})
}

// SGDParams are the parameters of sgd and dense.dw.sgd, and the last parameters of other
// gradients with their step.
func SGDParams(momentum, nesterov, decay float64) dag.Params {
	return dag.Params{{Name: "momentum", Value: momentum}, {Name: "nesterov", Value: nesterov}, {Name: "weight_decay", Value: decay}}
}

// ClipParams are the parameters of clip.
func ClipParams(maxNorm float64) dag.Params {
	return dag.Params{{Name: "max_norm", Value: maxNorm}}
}

// SmoothingParams are the parameters of losses that know no batch.
func SmoothingParams(smoothing float64) dag.Params {
	return dag.Params{{Name: "smoothing", Value: smoothing}}
}

// LossParams are the parameters of gradients of the loss.
func LossParams(batch, smoothing float64) dag.Params {
	return append(dag.Params{{Name: "batch", Value: batch}}, SmoothingParams(smoothing)...)
}

// FunctionParams are the parameters of a dense layer with a function.
func FunctionParams(name string, setting float64) dag.Params {
	of := slices.IndexFunc(kernels.Functions(), func(f kernels.Function) bool { return f.Name == name })
	return dag.Params{{Name: "function", Value: float64(of)}, {Name: "setting", Value: setting}}
}

// AdamParams are PyTorch's defaults with a weight decay, which 1 decouples from the gradient.
func AdamParams(decay, decoupled float64) dag.Params {
	return dag.Params{{Name: "beta1", Value: 0.9}, {Name: "beta2", Value: 0.999}, {Name: "eps", Value: 1e-8},
		{Name: "weight_decay", Value: decay}, {Name: "decoupled", Value: decoupled}}
}

// LogitParams are the parameters of gradients of the loss behind logits that are not kept.
func LogitParams(batch, first float64) dag.Params {
	return dag.Params{{Name: "batch", Value: batch}, {Name: "first", Value: first}}
}
