//go:build !cuda

package execute

import (
	"errors"
	"fmt"

	"dahl/platform"
)

var errNoCUDA = errors.New("this dahl was built without CUDA; build it with make cuda")

// cudaBackend fails, since this program was built without the tag cuda.
var cudaBackend = backend{
	open:    oneUnit(func(*platform.Platform, *platform.Device) (driver, error) { return nil, errNoCUDA }),
	gpus:    func() ([]GPU, error) { return nil, fmt.Errorf("no GPU can be found: %w", errNoCUDA) },
	library: func(string) (string, error) { return "", errNoCUDA },
}
