//go:build !cuda

package execute

import (
	"errors"

	"dahl/platform"
)

// openCUDA opens the CUDA device with an index among those that the driver library
// shows, for a memory of the platform.
func openCUDA(index int, _ *platform.Platform, _ platform.MemoryID) (driver, error) {
	return nil, errNoCUDA
}

// loadLibrary loads the library of a variant for CUDA devices.
func loadLibrary(string) error { return errNoCUDA }

var errNoCUDA = errors.New("this dahl was built without CUDA; build it with make cuda")
