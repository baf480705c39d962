// Package mpi carries messages between the processes of a run over several nodes. The engine is an MPI library
// that is found at run time. No header of one is needed, and nothing is linked.
//
// Read first: [Port], one process's end of the messages, and [Open], which loads a library. A library is loaded
// only by a program that was built with the tag mpi, since the loader of shared libraries comes with the C library
// of the system, and other programs of dahl need none. A process that no launcher of MPI has started loads nothing:
// [Launched] tells.
//
// Libraries differ in handles, sizes and constants, which are a table here (library.go): Open MPI, MPICH and its kin, and any
// library with the standard ABI of MPI 5.
//
// All calls of a Port come from the goroutine that opened it. It stays locked to its thread. Memory of messages
// is mapped and never given back: a library that registers memory learns of unmapping from the C library. Go does
// not call that.
package mpi
