//go:build !cuda

package execute

import (
	"errors"
	"fmt"

	"dahl/platform"
)

var errNoCUDA = errors.New("this dahl was built without CUDA; build it with make cuda")

// GPUs fails, since this program was built without the tag cuda.
func GPUs() ([]GPU, error) { return nil, fmt.Errorf("no GPU can be found: %w", errNoCUDA) }

// openCUDA fails for the same reason.
func openCUDA(int, *platform.Platform, platform.MemoryID) (driver, error) { return nil, errNoCUDA }

// LibraryFile fails for the same reason.
func LibraryFile(string) (string, error) { return "", errNoCUDA }

// CheckLibrary fails for the same reason.
func CheckLibrary(string) error { return errNoCUDA }
