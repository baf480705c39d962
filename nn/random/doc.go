// Package random gives the random numbers of a training: what a data set draws, the order of its samples, and the
// first values of parameters.
//
// Read first: [Stream]. Number i of a stream depends on the seed, the name of the stream and i only. So no number
// depends on how many were drawn before it, on the worker that draws it, or on other streams. [InitBetween] draws the
// elements of one parameter.
//
// The generator is Philox4x32-10 (Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011).
// It is no source of secrets. Operation dropout of package kernels has a generator of its own, which draws in the kernel.
package random
