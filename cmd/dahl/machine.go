package main

import (
	"dahl/execute"
	"dahl/platform"
	"dahl/train"
)

// thisMachine is the platform file, or the detected machine, with the devices and as
// many workers as asked for.
func thisMachine(o *options) (*platform.Platform, error) {
	return o.withWorkers(o.selected(o.machine(false)))
}

// wholeMachine is thisMachine with all its devices, whichever are asked for.
func wholeMachine(o *options) (*platform.Platform, error) {
	return o.withWorkers(o.machine(true))
}

// withWorkers is a platform with as many workers as asked for.
func (o *options) withWorkers(p *platform.Platform, err error) (*platform.Platform, error) {
	if err := checkNotNegative("workers", o.Workers); err != nil {
		return nil, err
	}
	if err != nil || o.Workers == 0 {
		return p, err
	}
	return withWorkers(p, o.Workers)
}

// machine is the platform file, or this machine: its processors, and its GPUs where
// --devices names what the processors are not, and with gpus also where it names nothing
// and there are some.
func (o *options) machine(gpus bool) (*platform.Platform, error) {
	if o.Platform != "" {
		return loadPlatform(o.Platform)
	}
	p, err := execute.Detect()
	if err != nil {
		return nil, err
	}
	if o.Devices == "" {
		if _, none := execute.GPUs(); !gpus || none != nil {
			return p, nil
		}
		return p, train.AddGPUs(p)
	}
	if _, err := p.Select(o.Devices); err != nil {
		if gpuErr := train.AddGPUs(p); gpuErr != nil {
			return nil, inputErrorf("--devices: %w; %w", err, gpuErr)
		}
	}
	return p, nil
}

// withWorkers is a platform with so many cores of its processor.
func withWorkers(p *platform.Platform, n int) (*platform.Platform, error) {
	q, err := p.WithCores(n)
	if err != nil {
		return nil, inputErrorf("--workers %d: %w; choose units with --devices", n, err)
	}
	return q, nil
}
