// Package nn describes networks and lowers their training to task graphs.
//
// Read first: [Model], then [Model.Lower]. A model is a list of layers with the
// shapes between them. Lower turns one whole training step into one graph:
//
//	feed → load tiles → forward → loss → backward → reductions → updates
//	                                  └→ mean, count → fetch (sinks: nothing waits for them)
//
// [NewProgram] puts the graphs of a training run together: the step, the short last
// batch of an epoch, evaluation on a test set and its short last batch.
//
// # Partition
//
// A partition is nothing but regions. Each layer computes its output in tiles of
// samples × output channels (or features), as [dag.LayerLowering] says, and each
// task reads exactly the box it needs of its producer's buffer: a convolution
// all channels of its samples, a pooling or ReLU its own channels, a dense layer
// all features of its samples. There is no task that gathers or scatters, and a
// flatten is another view of the same storage. So a task waits for the tiles that
// it reads, and for nothing else.
//
// Weight gradients are split by filters or features (GradTile) and summed over
// tiles of samples (GradSampleTile) in accumulators, as dag.Reduce accesses that
// [dag.Expand] turns into chains and a merge tree. The update of a parameter is
// split as its gradient is, so an update waits only for its own part.
//
// # Names
//
// Parameters are named by the key of the PyTorch twin's state_dict
// ("conv1.weight"), gradients "grad.conv1.weight", optimiser state
// "state.conv1.weight.v", a layer's output "conv1.out", the data set
// "data.train.images" and "data.train.labels" (or "data.test…"), a step's inputs
// "step.index" and "step.hyper", its results "loss" and "correct". A task's name
// is a function of layer, phase and tile: "conv1.forward[0:8,0:4]". In "[0:8,0:4]"
// the first range is of samples and the second of output channels or features;
// for input gradients the second is of input channels; updates have one range,
// of rows of the parameter.
//
// # Units
//
// Shapes are C×H×W or a number of features, per sample; buffers have the batch in
// front. Work is in floating-point operations, working sets in bytes.
package nn
