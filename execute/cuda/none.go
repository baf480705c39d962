//go:build !cuda

package cuda

import (
	"errors"
	"fmt"

	"dahl/execute/driver"
	"dahl/platform"
)

var errNoCUDA = errors.New("this dahl was built without CUDA; build it with make cuda")

// Backend fails, since this program was built without the tag cuda.
var Backend = driver.Backend{
	On: func(*platform.Platform, []int) driver.Opener {
		return func(*platform.Device, func()) (driver.Driver, error) { return nil, errNoCUDA }
	},
	GPUs:    func() ([]driver.GPU, error) { return nil, fmt.Errorf("no GPU can be found: %w", errNoCUDA) },
	Library: func(string) (string, error) { return "", errNoCUDA },
}
