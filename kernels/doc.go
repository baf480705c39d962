// Package kernels says what each operation means, and lists functions of packages cpu and gpu for it. It launches nothing.
//
// Read first: [Kernel] and [Subscript]. The table [Kernels] has one line per operation: its
// operands, its iteration space, its work in flops and bytes, its workspace and its variants.
// Convolutions, dense layers and their gradients have a line for each combination of prologues and epilogues that
// they offer, composed from one statement, see [calls.Attributes].
// Shape checks and the boxes that a tile touches follow from the iteration space, see [SpaceOf]. The "ref" variant is plain
// and obviously right at any extent; for linear operations it is the statement itself, point by point
// (linear.go). It is the numeric truth of the project: the cases and bounds of package kerneltest
// compare all other variants with it.
//
// # Invariants
//
//   - Kernels never allocate, never start goroutines and never look at a clock.
//   - One kernel serves a sample, a tile or a whole batch. The operands in the Call have
//     its extents; they are strided views.
//   - An operand in mode Write is overwritten completely, whatever it held. In mode ReadWrite a
//     result is added to it (gradients, reductions) or it is updated in place (parameters,
//     optimiser state), as the kernel's doc says. "ref" adds up the sum of the call from zero
//     and adds it once; the others add term by term to the old contents.
//   - The variant and the extents alone fix the order of additions inside one call. So equal
//     calls of one variant give equal bits in one build. Builds may differ: at GOAMD64=v3 and on
//     other processors the compiler fuses multiplications with additions, as "avx2" and "avx512"
//     always do.
//   - Where filters are few, vector convolutions add zero times an input outside the window, and Winograd's
//     variants mix all inputs of a tile. An infinite or NaN input may then make NaN of
//     neighbours, too.
//   - Values are not checked. Indices, labels and pool positions must lie within their operands,
//     or the call panics.
//
// # Units
//
// Shapes are in elements, row-major; images are N×H×W×C. Work is in floating-point operations (a
// fused multiply-add is two) and bytes.
package kernels
