//go:build !cuda

package meter

import "errors"

// NVML says that this build has no access to meters and clocks of GPUs.
func NVML() Library {
	noMeters := errors.New("meters of GPUs are unavailable: built without CUDA (make cuda)")
	noClocks := errors.New("clocks of GPUs are unavailable: built without CUDA (make cuda)")
	return Library{
		Open:        func() ([]GPUMeters, error) { return nil, noMeters },
		Close:       func() error { return nil },
		ClockRange:  func(string) (leastMHz, mostMHz int, err error) { return 0, 0, noClocks },
		LockClock:   func(string, int) error { return noClocks },
		UnlockClock: func(string) error { return noClocks },
	}
}
