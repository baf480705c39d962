// Package npz reads and writes NumPy's archives of arrays, in which weights and the states of optimisers are kept.
//
// Read first: [Array], [Write] and [Read]. An archive is a ZIP file with an .npy file for each array
// (numpy.savez), compressed or not. NEP 1 describes the header of an .npy file.
//
// Equal arrays give equal bytes. A caller may refuse an array by its header, before its numbers are read. A damaged
// file ends in an error that names it, and costs no more memory than some times its own size.
//
// Numbers are little-endian and row-major, of types f4, f8, i4, i8 and u1. Fortran order is refused.
package npz
