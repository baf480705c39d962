// Package train runs trainings: it lowers a network for a machine, decides, predicts, trains
// on the machine itself, and gives back weights, losses and what was measured.
//
// Read first: [New], which makes a [Workload] of a model, data, a machine and [Options];
// then [Workload.Predict], [Workload.Train], and [Trainer], which is a training as it goes on.
//
// # Invariants
//
//   - equal input gives equal weights, to the last bit, whatever the workers, the policy and
//     the devices that are lost on the way
//   - a training that ends early has weights of whole steps, and its totals are of these
//   - weights that are kept are finite, unless the options let a training go on with others
//   - a training that goes on from a [Checkpoint], lowered alike and with the same variants of
//     kernels, has the weights of one that nothing disturbed
//   - what the caller gave and cannot be used is an [InputError]; nothing has run then
//
// # Limits
//
// A training lies in memory: its state, its copy, and its data where they fit. What it needs is
// added up before it is taken, and compared with what the machine, control groups and resource
// limits leave ([Workload.Afford], package budget): data that are too large are streamed, and a
// training that is too large even so is an [InputError]. Streamed samples are read a few batches
// ahead of the steps, in the order that they have in memory, so that losses and weights are the same
// to the last bit. Labels, and the order of an epoch, are always in memory: 8 bytes per sample.
// Compressed samples that are streamed lie decompressed in a temporary file beside theirs.
//
// A training that goes on without a device has the memory of both legs while it begins the second;
// this is not added up.
//
// Package train reads no file but data sets and initial weights, and writes none but that temporary
// one: whoever keeps a run takes what is in the [Trainer].
package train
