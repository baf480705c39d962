// Package peer trains dahl's networks by other programs: PyTorch eager, PyTorch by torch.compile, and
// JAX. They have the same layers, first weights, samples, order of samples, batches and optimiser, and the
// same meters around them.
//
// Read first: [Programs], the table of programs with their settings; [Prepare], which makes a training by one of
// them; and [Worker], a process of one, which benchmarks drive step by step. What a process does is in
// workers/worker.py.
//
// # Invariants
//
//   - the losses of the first steps agree with dahl's, or the result is an error
//   - meters run from before the first step to after the last evaluation: imports, compilation and
//     warm-up are outside, and the weights are the first ones again when the window begins
//   - a program that is not installed is a [MissingError], and nothing else is
//
// # Limits
//
// Samples are pixels with one label each, or tokens with one label each or one for each position. A process has
// all of them in memory. It does not count correct answers while it trains, which would add to its steps. On GPUs
// it runs on the first one.
package peer
