package main

import (
	"dahl/cmd/cli"
	"dahl/platform"
)

// thisMachine is the platform file, or the detected machine, with the devices and as
// many workers as asked for.
func thisMachine(o *options) (*platform.Platform, error) {
	return o.withWorkers(o.selected(cli.Machine(o.Platform, o.Devices, false)))
}

// withWorkers is a platform with as many workers as asked for.
func (o *options) withWorkers(p *platform.Platform, err error) (*platform.Platform, error) {
	if err := cli.CheckNotNegative("workers", o.Workers); err != nil {
		return nil, err
	}
	if err != nil || o.Workers == 0 {
		return p, err
	}
	return cli.WithWorkers(p, o.Workers)
}
