// Package cpu computes operations on a processor, in vectors of package simd: the loops of convolutions, dense layers, their
// gradients, normalisations and attention around the inner loops. Package kernels makes variants of its drivers, and computes
// operations on single elements itself, in a few lines each.
package cpu
