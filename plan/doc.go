// Package plan turns decisions into answers: the time and joules of a program on a machine, the best of several ways to run it,
// and the causes of errors of a prediction.
//
// Read first: [Evaluate], which keeps the results of a plan, and [Simulate]. [Predict] adds a whole run up, [Compare] compares it
// with a measured one, [CompareSets] compares sets of devices, [CutCosts] prices cuts of single layers, and [Sample] tells how
// sure the answer is.
//
// # Invariants
//
//   - equal input gives equal output; nothing depends on time, addresses or map order
//   - the package knows neither networks nor kernels: whoever calls it brings the
//     schedule.Target
//
// # Limits
//
// Long segments are simulated for as many steps as [Simulate] allows; the rest is added at
// the steady period.
package plan
