// Package simd holds the inner loops of the CPU kernels, each in plain Go and, on
// amd64, in generated assembly for AVX2 and AVX-512. A kernel says which [Level]
// it wants; the caller has made sure that the processor has it.
//
// Read first: [Product], the batch-reduced matrix product on which dense layers and
// convolutions are built. [Pooling], [Transpose] and [Softmax] take the same
// form, a struct of extents, slices and distances; loops over contiguous elements
// ([ReLU], [Add], [SGD], [Adam], [DivideBytes]) are plain functions.
//
// # Invariants
//
//   - nothing here allocates, starts goroutines or keeps state
//   - every slice is as long as the extents say, or the call panics before any
//     assembly runs
//   - the order of additions depends on the extents and the level alone, so equal
//     calls at one level give equal bits; levels differ from each other in rounding
//   - distances are in elements
//
// The assembly is written by the programs in gen, a module of its own so that
// dahl does not depend on the generator; `make asm` rewrites it and `make check`
// fails if it differs from what they would write.
package simd
