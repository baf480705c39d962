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
//   - a training that goes on from a [Checkpoint], lowered alike and with the same variants of
//     kernels, has the weights of one that nothing disturbed
//   - what the caller gave and cannot be used is an [InputError]; nothing has run then
//
// # Limits
//
// A training lies in memory: its data, its state and its copy. Package train reads no file
// but data sets and initial weights, and writes none: whoever keeps a run takes what is in
// the [Trainer].
package train
