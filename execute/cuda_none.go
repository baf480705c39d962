//go:build !cuda

package execute

import (
	"errors"

	"dahl/platform"
)

// openCUDA fails, since this program was built without the tag cuda.
func openCUDA(index int, _ *platform.Platform, _ platform.MemoryID) (driver, error) {
	return nil, errNoCUDA
}

// loadLibrary fails for the same reason.
func loadLibrary(string) error { return errNoCUDA }

var errNoCUDA = errors.New("this dahl was built without CUDA; build it with make cuda")
