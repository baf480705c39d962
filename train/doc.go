// Package train runs trainings: it lowers a network for a machine, decides, predicts, trains
// on the machine itself, and gives back weights, losses and measurements.
//
// Read first: [New], which makes a [Workload] of a model, data, a machine and [Options];
// then [Workload.Predict], [Workload.Train], and [Trainer], which is a training as it goes on.
//
// # Invariants
//
//   - Equal input gives equal weights, to the last bit, whatever the workers, the policy and
//     the lost devices.
//   - A training that ends early has weights and totals of whole steps.
//   - Kept weights are finite, unless the options let a training go on with others.
//   - A training that goes on from a [Checkpoint], lowered alike and with the same variants of
//     kernels, has the weights of an undisturbed one.
//   - Unusable input of the caller is an [InputError]. Nothing has run then.
//
// # Limits
//
// A training lies in memory: its state, its copy, and its data where they fit. Its needs are
// added up before any memory is taken, and compared with the limits of the machine, of control groups and of
// resources ([Workload.Afford], package budget). Data that are too large are streamed. A training without
// room even so is an [InputError]. Streamed samples are read a few batches
// ahead of the steps, in the order that they have in memory, so that losses and weights are the same
// to the last bit. Labels, and the order of an epoch, are always in memory: 8 bytes per sample with one label.
// Compressed samples that are streamed lie decompressed in a temporary file in their directory.
//
// A training that goes on without a device has the memory of both legs while it begins the second.
// This is not added up.
//
// Package train reads no file but data sets and initial weights, and writes none but that temporary
// one. A run is kept from the fields of the [Trainer].
package train
