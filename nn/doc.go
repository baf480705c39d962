// Package nn describes networks and lowers their training to task graphs.
//
// Read first: [Model], then [Model.Lower]. A model is a graph of layers with the shapes between
// them. Lower turns one whole training step into one graph of tasks:
//
//	feed → load tiles → forward → loss → backward → reductions → updates
//	                                  └→ mean, count → fetch (sinks: nothing waits for them)
//
// [NewProgram] puts the graphs of a training run together: the step, the short last batch of an
// epoch, evaluation on a test set and its short last batch. A program without training is an inference, where a graph before all
// steps does what parameters alone decide.
//
// # Layers
//
// A layer is one file, in this package or in another module. It states its shapes, its parameters ([Learner]), what its training
// carries along ([Tracker]) and its [Traits], and adds the tasks of a forward and of a backward pass to a [Node]. For that it
// names operations with their operands: inputs, output, parameters, running statistics, buffers of its own, and the
// gradients of these. The lowerer does the rest. It cuts each operation along samples, outputs and
// whatever else the lowering says, sums gradients of parameters over tasks, micro-batches and layers that share them, and
// updates the parameters. Whether a task reads, writes or changes an operand is in the statement of the operation.
// conformance/testdata/module/layer has normalisations and an embedding that are written so.
//
// # Element types
//
// All numbers of a network are float32 or float64, or its activations are bfloat16 ([Types]): half the bytes to keep and to move. The rest of such
// a network is float32, and so is the arithmetic of every task ([dag.DType.Arithmetic]). A kernel of package kernels takes operands of both types.
//
// # Partition
//
// A partition consists of regions only. [dag.LayerLowering] says how much of each dimension a task of a layer has:
// samples, outputs (channels or features), inputs, rows and columns, each for the forward pass, the gradient of the input
// and the gradient of the weight. Every operation states its iteration space ([kernels.Space]). From the space follows the
// box of each operand that a task reads: rows of an image with their halo, some
// channels of a weight. No layer has code for a particular cut. No task gathers or scatters, and a flatten is another view
// of the same storage. So a task waits for the tiles that it reads, and for nothing else.
//
// Where the dimension that is cut is summed over, as the inputs of a dense layer or the samples of a weight
// gradient, tasks add to accumulators. They are dag.Reduce accesses, which [dag.Expand] turns into
// chains and a merge tree. The bias comes with the first term. A ReLU or a pooling is not linear, so that in
// a fused lowering it comes behind the sum, as a layer of its own.
//
// Of a convolution in groups a task has some channels of one group, or the whole groups that fit its
// size. So a cut by two of three outputs per group makes tiles of two and one. It is not cut along inputs, since
// each filter sums over the channels of its group alone.
//
// The update of a weight is split like its gradient in outputs, so an update waits
// only for its own part. A bias is updated at once.
//
// # Operations
//
// Planners cut a network without lowering it. [Model.Operations] lists the tasks of a step of whole layers as [dag.Operations], each with the sides along which it
// may be cut and with its tiles for any cut. [Model.Work] lists what every lowering has to do, for bounds of all of them: an operation
// there has all forms that fusions give it, and the least bytes of a tile.
//
// # Micro-batches
//
// With [dag.Lowering.MicroBatches] a training step passes its batch through the network in parts, as if the lowering were of
// several small steps with one update: see micro.go. Tiles lie in a micro-batch, and names of tasks count the samples of the batch.
// Values and their gradients have the name of the micro-batch behind theirs, from 1 on: "conv1.out.micro2". Parameters,
// sums of gradients, "labels", "loss.sample" and "loss.correct" belong to the batch. Labels of tasks say the micro-batch,
// or 0 for tasks of the batch. Evaluations have no micro-batches. Where no tile crosses their bounds, the step is the same to the bit.
//
// # Stages
//
// With [dag.Lowering.Stages] consecutive layers run on one device each, with their gradients and updates. The tasks of a stage are placed there
// and say its number: see stages.go. They are the tasks of the lowering without stages, and so give the same bits. Only recomputation differs: what
// passes from stage to stage is kept. With [dag.Lowering.Stash] micro-batches are mini-batches with updates of their own, and stages keep the
// weights of their forward passes, from step to step: "state.conv1.weight.version1" is conv1.weight one update before. See stash.go.
//
// Several devices may share a stage, along samples (replicas), outputs (each has a part of the weights) or rows (parts of images with their halos). Tiles do not cross the bounds of their
// parts. These are cuts with a place: no layer has code for them, and halos, parts of activations and updated weights are transfers as any. Sums over the devices are tasks "add" and "sum" in a fixed
// order, with names like the sums of accumulators: see shares.go and [dag.Exchange]. Devices that share samples and sum in pairs give the bits of a step without stages of the same tiles, with an accumulator for
// each device. Buffers of a device, such as its copy of a weight in another layout, have
// its number behind their names, from 2 on: "conv1.weight.hwio.device2". Devices that share the rows of a sequence may cut the keys of an attention, too. Then they pass parts of these around a ring:
// see ring.go. A batch normalisation takes its statistics over the samples of all devices.
//
// # Branches
//
// A layer reads the layers that it names, or the one before it. Several layers may read one value.
// Its gradient is then the sum of a part from each reader: the last of them, in the order of the
// model, that computes its part writes the buffer of the sum, and tasks "add" add the others' parts
// from the last reader to the first. Each of these tasks adds a tile of the layer that made the
// value ("relu1.backward.add.conv2[0:8,0:4]"), so there is no barrier, and the order of the sum is
// the model's.
//
// A sum of layers has no task for the gradients of its inputs, since each is the gradient of the
// sum. So the way around a residual block costs one task, which reads two and writes one. Input gradients that add to a
// buffer would need a copy of the gradient first, and then read and write as much.
// They would save a write and a read where two convolutions read one value, at the
// price of a second form of every kernel of an input gradient.
//
// A concatenation has no task either: the layers before it write their channels into its buffer
// ("conv2.out" is channels of "concat1.out" then), and the gradient of each is channels of its
// gradient. Some inputs have to be copied: the model's input, a flattened value, a value that a flatten reads too, a value
// in another layout, and a value in another concatenation.
//
// # Shared parameters
//
// Layers may have parameters of earlier ones ([Named.Shares], weights_of in a model file). Each layer has its own gradient
// of such a parameter. Tasks "add" add the gradients of later layers to the gradient of the first layer
// ("fc1.backward.add.fc2.weight[0:64]"), which updates the parameter. See shared.go.
//
// # Statistics
//
// A batch normalisation needs the mean and the variance of each channel over all samples. Tasks take the moments of single samples, and one task
// puts these together in the order of the samples and carries the running statistics on ("bn1.running_mean", as [Model.State]
// lists them). So the bits of the statistics depend on no tiling. Where several devices share the samples, each may put the moments of its own together first
// ("bn1.forward.total", see [dag.Statistics]), and a tree merges these: within each node, then between nodes. What follows waits for all samples of the micro-batch, as
// the definition asks. The gradient has the same form. A dropout keeps no mask: it draws by seed, step, layer, sample and element, in the backward
// pass again. An attention draws by query and key. In an evaluation it has no task.
//
// # Sequences
//
// A sample of two dimensions T×C is a sequence: T positions of C features each, and buffers N×T×C. Positions are to a sequence what rows are to an
// image, so that lowerings cut them as "rows", and stages share them so. A layer that takes each position by itself has no code for them. Its operation
// is one of rows, as of a dense layer, and gets the positions of all samples as rows, by views ("ln1.out.positions"). A tile is then a range of these:
// whole samples, or some positions of one. So where positions are cut, a tile has one sample. Other operations state their positions, as attention does.
// Its rows are queries, and its columns are keys: of an input gradient also the queries over which a tile of keys sums. A part in which no query sees a key is no task.
// Partial results merge in the order of the keys, or by accumulators, with tasks "attention.merge".
//
// A network that begins with an embedding takes tokens, as its [Model.Vocabulary] says. A sample then has the dimension T alone. Rows of the gradient of a table
// are sums in the order of the positions, whatever is cut. A layer that reads the tokens, too, has whole numbers as its output: a mask of padding, or the segments.
// [Defaults.MaskToken] makes a network find tokens that its data hide, instead of the next ones.
//
// # Samples and positions
//
// A sample has up to four dimensions. Its elements are pixels, divided when they are loaded, or numbers of the network's
// type, or tokens: whole numbers that a layer takes as indices. A label of -1 belongs to no class, where the loss says so: it has no part in the mean. The classes are the channels of an image of outputs, or the last dimension of any other output. The other
// dimensions are positions, each with a label of its own. The loss and the count of correct outputs see the positions of all
// samples as rows, by views ("fc1.out.positions").
//
// # Layout
//
// Images are n×h×w×c: channels last. The layout is an attribute of a buffer, and a
// change of layout is a task like any other. Data sets have images as c×h×w. The task that loads a batch turns them,
// unless nothing but flattens reads them.
//
// Convolutions read their weight as (k k c f), copied once per step
// ("conv1.forward.hwio"). For the input gradient they read it turned, as (k k f c)
// ("conv1.backward.hwoi"); a step of layers that are not split makes both copies in one
// task. The gradient is summed as (k k c f) and copied back once ("conv1.backward.oihw").
//
// A flatten gives PyTorch's order of features, c×h×w. Its input is copied, and the gradient copied
// back ("flatten1.forward.nchw", "flatten1.backward.nhwc"). If dense layers with fewer outputs than the batch has samples
// follow, their weights are copied instead, and the gradients copied back ("fc1.forward.nhwc", "fc1.backward.nchw"). A weight that is updated at once has no gradient to copy back.
//
// Parameters, their gradients and the optimiser's state never change their layout.
//
// # Fusion
//
// One task computes a group of layers:
//
//	conv2d + relu + maxpool   the convolution's output is never in memory, nor its
//	                          gradient where the input needs none
//	conv2d + relu             before a convolution or a dense layer
//	dense + relu              before a dense layer
//	conv2d, batchnorm         the convolution also takes the moments of its output
//	batchnorm + relu
//	batchnorm + relu, conv2d  where nothing else reads the normalised map and no pooling is fused: the convolution
//	                          and its weight gradient normalise what they read, and the map is never in memory
//	batchnorm + add + relu    of a sum of two, where the other one comes earlier
//	conv2d + batchnorm + relu in evaluations: filters and biases that normalise, the ReLU if there is one
//	softmax + cross-entropy   the loss
//	gradients of an attention of queries, keys and values, where its tasks have all positions of their samples
//	weight gradient + update  by stochastic gradient descent
//
// With [dag.Lowering.Epilogues], which the default for processors has:
//
//	dense + function          and in a training the values before it, which the slope reads
//	dense.dx * slope          where a dense layer alone reads the function; else the slope is a task of the layer before it
//	sum + layernorm           of two values
//	layernorm.dx + gradient   of the other reader of the same value, a sum behind the normalisation
//
// Layers of two stages stay apart, as do layers of which one alone is computed again, and all layers of devices with one stage. The operations by themselves give the same
// bits, but in bfloat16: there a value between two operations is rounded.
//
// So a residual block of two convolutions has, in addition to the convolutions, 3 passes over activations forward instead
// of 13, and 13 backward instead of 17. A ReLU behind a normalisation keeps no mask either: its sign is computed again.
// Behind a sum the sign is read from the output. The gradient of the sum then takes the place of the gradient of the
// output, and the parts of other readers are added on the way.
//
// Pooling is not fused with a convolution in groups, nor where
// its windows are no squares or have padding. The layers of a group follow each other without a branch:
// see patterns in group.go. A fused ReLU keeps no mask: the layers that read its output write 0 in the gradient where the
// output is 0. So all of them need the trait Stops. So
// "grad.conv1.out" exists and "grad.relu1.out" does not. A group has the name, the labels and the
// granularity of its first layer. The entries of its other layers in a lowering apply when these
// are layers of their own. Its output has the name of its last layer, "pool1.out".
//
// The tasks of the gradient also update weight and bias if each has all samples of
// the batch, so that no other task adds to the sums, such as tasks of other micro-batches and of layers with the same
// parameters, and if gradients are not clipped. Such a task is
// "fc1.backward.weight[0:64,0:128]" in phase "backward", where most of its work is. There is no
// "grad.fc1.weight" then. The result is bit for bit the result of separate tasks for gradient and update, except on a GPU
// for a dense layer with a packed weight. These tasks come behind the gradient of
// the input, which reads the weight before.
//
// # The last layer with its loss
//
// With [dag.Lowering.JoinLoss] the outputs of the last layer, a dense one without a bias, are never in memory. Its tasks are
// "head.forward[0:8,0:4096]", with some classes each, and write three numbers of each position, "head.sums". Tasks "loss.softmax_xent[0:8]" make
// the losses of these. The gradients of weight and input compute the logits again. Nothing else changes, but the bits: sums have another order.
//
// # Recomputation
//
// If [dag.LayerLowering] says so, or a pattern of names in [dag.Lowering], the results of the forward pass of a layer are dropped, and computed again for the
// backward pass. The second tasks are in phase "recompute". They are named like the first tasks, but with this phase
// ("conv1.recompute[0:8,0:4]"), and their buffers like the first buffers, with ".recomputed" at the end. They
// start when the backward pass has come to them; see recompute.go. A layer of which the backward pass reads nothing is
// computed once, as are all in an evaluation. A chain needs least memory where about every √n-th of its n layers keeps
// its output, and the others are recomputed. To recompute all of them saves little.
//
// # Training
//
// [Defaults] say how a model is trained: optimiser, [Schedule] of its rate, [Loss] and clipping of
// gradients, each as PyTorch defines it. A schedule is no part of the graph: who runs a step hands it the
// rate in "step.hyper". Gradients that are clipped have their squares summed part by part in
// "clip.squares". The task "clip" makes the factor of these, and updates read it in "clip.hyper".
//
// # Names
//
// Parameters are named by the key of the PyTorch twin's state_dict ("conv1.weight"). It begins with the layer's name. If
// dahl uses that word itself, it begins with [Named.StateName] ("input.weight" of a layer "fc1"); gradients
// "grad.conv1.weight", optimiser state "state.conv1.weight.v", a layer's output "conv1.out". The
// data set is "data.train.images" and "data.train.labels" (or "data.test…"). A step's inputs are
// "step.index" and "step.hyper", its results "loss" and "correct". Where the data set is streamed
// there is no such buffer, and "step.images" and "labels" are inputs of every step.
//
// A task's name is a function of layer, phase and tile: "conv1.forward[0:8,0:4]". The first range counts samples, and the
// second output channels or features; for input gradients the second counts input channels.
// Updates have one range, of rows of the parameter. A change of layout has one
// range, of samples or of outputs, and the operation in its name: "conv1.forward.hwio[0:4]".
//
// # Units
//
// Shapes are per sample: C×H×W, T×C, a number of features, or up to four extents, of which the first counts as outputs. Buffers have
// the batch in front. Work is in floating-point operations, working sets in bytes.
package nn
