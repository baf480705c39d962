// Package simd holds the inner loops of the CPU kernels, each in plain Go and, on amd64, in
// generated assembly for AVX2 and AVX-512. A kernel chooses a [Level]; the caller has made sure
// that the processor has it.
//
// Read first: [Product], the batch-reduced matrix product on which dense layers and
// convolutions are built. Large ones with AVX2 are computed from copies of their operands ([Blocks]). [Pooling], [Transpose] and [Softmax] take the same
// form, a struct of extents, slices and distances; loops over contiguous elements
// ([ReLU], [Add], [SGD], [Adam], [DivideBytes]) are plain functions.
//
// # Invariants
//
//   - Nothing here allocates, starts goroutines or keeps state.
//   - Every slice is as long as the extents say, or the call panics before any assembly runs.
//   - The order of additions depends on the extents and the level alone, so equal calls at one
//     level give equal bits. Levels differ from each other in rounding.
//   - Distances are in elements.
//
// The programs in gen write the assembly. They are a module of their own, so that dahl does not
// depend on the generator. `make asm` rewrites the assembly, and `make check` fails if it differs
// from their output.
package simd
