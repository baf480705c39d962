package cli

import (
	"dahl/execute/hardware"
	"dahl/platform"
	"dahl/train"
)

// Machine is a platform file, or without one this machine: its processors, and its GPUs where
// --devices names what the processors are not, and with gpus also where it names nothing
// and there are some.
func Machine(file, devices string, gpus bool) (*platform.Platform, error) {
	if file != "" {
		return LoadPlatform(file)
	}
	p, err := hardware.Detect()
	if err != nil {
		return nil, err
	}
	if devices == "" {
		if _, none := hardware.GPUs(); !gpus || none != nil {
			return p, nil
		}
		return p, train.AddGPUs(p)
	}
	if _, err := p.Select(devices); err != nil {
		if gpuErr := train.AddGPUs(p); gpuErr != nil {
			return nil, InputErrorf("--devices: %w; %w", err, gpuErr)
		}
	}
	return p, nil
}

// WithWorkers returns a platform with n cores of its processor. Zero means all.
func WithWorkers(p *platform.Platform, n int) (*platform.Platform, error) {
	if err := CheckNotNegative("workers", n); err != nil || n == 0 {
		return p, err
	}
	q, err := p.WithCores(n)
	if err != nil {
		return nil, InputErrorf("--workers %d: %w; choose units with --devices", n, err)
	}
	return q, nil
}
