package strategy

import (
	"dahl/dag"
	"dahl/schedule"
)

// tensorParallel cuts the weights. Of two layers with weights the first one is cut along its outputs, and the second one along its inputs, which
// are these outputs. So a device computes a part of both without data of others. The results of the second layer are sums over the devices, and
// so are the gradients of the first one's inputs: one all-reduce forward, and one backward, for each pair.
//
// Layers without weights are cut along their outputs. Where such a layer follows the second of a pair, each device adds its part of the sum only.
var tensorParallel = Strategy{
	doc: schedule.Doc{
		Name: "tensor-parallel", Sentence: "weights in parts: of two layers the first one along its outputs, the second one along its inputs",
		Paper: "M. Shoeybi et al., Megatron-LM: training multi-billion parameter language models using model parallelism, arXiv:1909.08053, 2019",
	},
	Arguments: []string{"devices"}, Words: sums,
	Says: "slowest share, and for each pair of layers the results forward and the gradients of its inputs backward: ring 2(p-1)(a + bytes/(pB))",
	split: func(n []int) Split {
		return Split{Devices: n[0], Images: dag.AlongOutputs, Features: dag.AlongOutputs, Pairs: true, Sum: dag.Ring}
	},
}

// spatial gives each device some rows of all images, and of layers behind those with rows some of the samples. A convolution reads
// rows of its neighbours: at each border half of the rows of its kernel.
var spatial = Strategy{
	doc: schedule.Doc{
		Name: "spatial", Sentence: "images in parts: each device has some rows of all samples, and of dense layers some samples",
		Paper: "N. Dryden et al., Improving strong-scaling of CNN training by exploiting finer-grained parallelism, IPDPS 2019",
	},
	Arguments: []string{"devices"}, Words: sums,
	Says: "slowest share, for each layer two messages of the rows at a border, then the gradients: ring 2(p-1)(a + bytes/(pB))",
	split: func(n []int) Split {
		return Split{Devices: n[0], Images: dag.AlongRows, Features: dag.AlongSamples, Sum: dag.Ring}
	},
}

// oneWeirdTrick cuts convolutions along samples and dense layers along outputs: the former have most of the computing, and the latter most
// of the weights.
var oneWeirdTrick = Strategy{
	doc: schedule.Doc{
		Name: "owt", Sentence: "one weird trick: convolutions in parts of the samples, dense layers in parts of their outputs",
		Paper: "A. Krizhevsky, One weird trick for parallelizing convolutional neural networks, arXiv:1404.5997, 2014",
	},
	Arguments: []string{"devices"}, Optional: true,
	Says: "slowest share, the inputs of each dense layer to all and the sums of their gradients back, and the gradients of convolutions: ring 2(p-1)(a + bytes/(pB))",
	split: func(n []int) Split {
		return Split{Devices: n[0], Images: dag.AlongSamples, Features: dag.AlongOutputs, Sum: dag.Ring}
	},
}
