//go:build !cuda

package execute

import (
	"errors"
	"fmt"

	"dahl/platform"
)

var errNoCUDA = errors.New("this dahl was built without CUDA; build it with make cuda")

// GPUs lists the GPUs that the CUDA driver shows. It fails where there is none, and says
// why.
func GPUs() ([]GPU, error) { return nil, fmt.Errorf("no GPU can be found: %w", errNoCUDA) }

// openCUDA opens the CUDA device with an index among those that the driver library
// shows, for a memory of the platform.
func openCUDA(int, *platform.Platform, platform.MemoryID) (driver, error) { return nil, errNoCUDA }

// loadLibrary loads the library of a variant for CUDA devices.
func loadLibrary(string) error { return errNoCUDA }
