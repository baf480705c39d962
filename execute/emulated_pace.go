package execute

import (
	"slices"
	"time"

	"dahl/kernels"
	"dahl/platform"
	"dahl/schedule"
)

// An emulated device is what its platform file says it is: its speed, the models that
// somebody wrote, its links. A model that was measured (Model.Count) says what came of
// that on this computer. It predicts, and does not slow the device down: if it did, each
// calibration would make the device slower than the last, since no call would take less
// than the mean of all.

// paceOf is the platform without what was measured.
func paceOf(p *platform.Platform) *platform.Platform {
	q := *p
	q.Models = slices.DeleteFunc(slices.Clone(p.Models), func(m platform.Model) bool { return m.Count > 0 })
	return &q
}

// leastTime is what an emulated device takes for a call at least: the cost that the graph
// gives, or what the platform says that it is; 0: as fast as the core.
func leastTime(pace *platform.Platform, d platform.DeviceID, spec *kernels.Spec, v *kernels.Variant, cost schedule.Cost) time.Duration {
	if cost.Source == schedule.FromGraph {
		return cost.Duration
	}
	k, _ := operation(spec.Op)
	q := platform.Query{Op: spec.Op, Variant: v.Name, Type: spec.Type.String(), Device: d, Shape: spec.Key()}
	q.Flops, q.MovedBytes = k.Work(spec)
	e, ok := pace.Estimate(q)
	if !ok {
		q.Variant = ""
		e, _ = pace.Estimate(q)
	}
	return e.Duration
}
