// Package cpu computes operations on a processor, in vectors of package simd: what convolutions, dense layers, their
// gradients and batch normalisations do beside the inner loops. Package kernels says which of its drivers are variants of
// which operation. Operations on single elements have their few lines there, beside their references.
package cpu
