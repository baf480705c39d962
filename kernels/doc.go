// Package kernels says what each operation means and computes it on a CPU. For CUDA
// devices it says which kernels of package cuda to launch; it launches none.
//
// Read first: [Kernel]. The table [All] has one line per operation: its operands,
// its shape check, its work in flops and bytes, its workspace and its variants.
// The "ref" variant is plain and obviously right at any extent, and is the
// numeric truth of the project; the others are compared with it, by the cases and bounds
// of package kerneltest.
//
// # Invariants
//
//   - kernels never allocate, never start goroutines and never look at a clock
//   - one kernel serves a sample, a tile or a whole batch: extents are those of
//     the operands in the Call, operands are strided views
//   - an operand in mode Write is overwritten completely, whatever it held; in
//     mode ReadWrite a result is added to it (gradients, reductions) or it is
//     updated in place (parameters, optimiser state), as the kernel's doc says.
//     "ref" and the convolutions of "go" over N×C×H×W add up the sum of the call
//     from zero and add it once; the others add term by term to what is there
//   - the order of additions inside one call is fixed by the variant and the
//     extents alone, so equal calls of one variant give equal bits, in one build: at
//     GOAMD64=v3 and on other processors the compiler fuses multiplications with
//     additions, as "avx2" and "avx512" always do
//   - where filters are few, vector convolutions add zero times an input beside the
//     window, so that an infinite or NaN input may make NaN of neighbours, too
//   - values are not checked: indices, labels and pool positions must lie within
//     their operands, or the call panics
//
// # Units
//
// Shapes are in elements, row-major; images are N×C×H×W. Work is in
// floating-point operations (a fused multiply-add is two) and bytes.
package kernels
