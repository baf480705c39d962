// Package gpu says what a GPU is asked to do for a call of an operation: launches of package cuda's kernels, and calls of
// libraries. It launches nothing. Package kernels makes variants of operations of them.
package gpu
