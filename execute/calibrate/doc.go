// Package calibrate measures the machine under a program: times and joules of kernel calls, bandwidths of memory and
// transfers, costs of dispatch and launches, and powers. Its results are performance models of a platform.
//
// Read first: [Run] measures every variant of every call by itself, to choose among variants. [InSitu] measures the calls of
// a runner inside real steps, to predict these steps. [Timing] measures the time that a record adds to a step, and [Clocks]
// the powers of processors at their further clocks. [Messages] measures the network of a cluster. station.go has a device during its measurements.
//
// # Invariants
//
// A measurement is repeated and its median counts, with its spread. A calibration that ends early returns the measurements
// so far. Calls of kernels have valid operands: indices below their bound, values of the range that [kernels.Operand] states.
//
// # Limits
//
// A call that is measured by itself has no neighbours, so its time in a step may be longer. The meter of processors counts
// all packages together.
package calibrate
