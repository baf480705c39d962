//go:build !cuda

package energy

import "errors"

// OpenGPUs says that this build has no access to the meters of GPUs.
func OpenGPUs() ([]GPUMeters, error) {
	return nil, errors.New("meters of GPUs are unavailable: built without CUDA (make cuda)")
}

// CloseGPUs does nothing in this build.
func CloseGPUs() error { return nil }

var errNoClocks = errors.New("clocks of GPUs are unavailable: built without CUDA (make cuda)")

// GPUClockRange says that this build sets no clocks of GPUs.
func GPUClockRange(string) (leastMHz, mostMHz int, err error) { return 0, 0, errNoClocks }

// LockGPUClock says that this build sets no clocks of GPUs.
func LockGPUClock(string, int) error { return errNoClocks }

// UnlockGPUClock says that this build sets no clocks of GPUs.
func UnlockGPUClock(string) error { return errNoClocks }
