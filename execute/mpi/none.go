//go:build !mpi || !linux

package mpi

import "errors"

// Loads says whether this program was built so that it can load an MPI library.
const Loads = false

// Open fails: this program loads no libraries.
func Open(Launch) (Port, error) {
	return nil, errors.New("this program was built without MPI; make bin/dahl-mpi builds one with it, for Linux")
}
