//go:build !cuda

package energy

import "errors"

// OpenGPUs says that this build has no access to the meters of GPUs.
func OpenGPUs() ([]GPUMeters, error) {
	return nil, errors.New("meters of GPUs are unavailable: built without CUDA (make cuda)")
}

// CloseGPUs does nothing in this build.
func CloseGPUs() error { return nil }
