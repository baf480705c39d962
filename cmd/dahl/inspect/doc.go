// Package inspect has the commands of dahl that only describe: this machine, kernels and their times, and a graph.
//
// Read first: [NewDoctor], [NewKernels], [Graph].
package inspect
