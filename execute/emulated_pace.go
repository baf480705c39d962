package execute

import (
	"slices"
	"time"

	"dahl/kernels"
	"dahl/kernels/calls"
	"dahl/platform"
	"dahl/schedule"
)

// The platform file defines an emulated device: its speed, the models that somebody wrote, and
// its links. A measured model (Model.Count) says how fast that runs on this computer. It predicts
// and does not slow the device down. Otherwise each calibration would make the device slower than
// the last, since no call would take less than the mean of all.

// paceOf is the platform without measured models.
func paceOf(p *platform.Platform) *platform.Platform {
	q := *p
	q.Models = slices.DeleteFunc(slices.Clone(p.Models), func(m platform.Model) bool { return m.Count > 0 })
	return &q
}

// leastTime is the least time of a call on an emulated device: the cost in the graph, or the time
// by the platform file; 0: as fast as the core.
func leastTime(pace *platform.Platform, d platform.DeviceID, k *kernels.Kernel, spec *calls.Spec, v *calls.Variant, cost schedule.Cost) time.Duration {
	if cost.Source == schedule.FromGraph {
		return cost.Duration
	}
	q := platform.Query{Op: spec.Op, Variant: v.Name, Type: spec.Type.String(), Device: d, Shape: spec.Key()}
	q.Flops, q.MovedBytes = k.Work(spec)
	e, ok := pace.Estimate(q)
	if !ok {
		q.Variant = ""
		e, _ = pace.Estimate(q)
	}
	return e.Duration
}
