package emulated

import (
	"slices"
	"time"

	"dahl/execute/driver"
	"dahl/platform"
	"dahl/schedule"
)

// pace is the platform that defines how fast its emulated devices are: their speed, the models that
// somebody wrote, and their links. A measured model (Model.Count) says how fast that runs on this
// computer. It predicts and does not slow the device down. Otherwise each calibration would make the
// device slower than the last, since no call would take less than the mean of all.
type pace struct{ *platform.Platform }

// paceOf leaves measured models out.
func paceOf(p *platform.Platform) pace {
	q := *p
	q.Models = slices.DeleteFunc(slices.Clone(p.Models), func(m platform.Model) bool { return m.Count > 0 })
	return pace{&q}
}

// leastTime is the least time of a call: the cost in the graph, or the time by the platform file.
// Zero means as fast as the core.
func (p pace) leastTime(c *driver.Call) time.Duration {
	if c.Cost.Source == schedule.FromGraph {
		return c.Cost.Duration
	}
	q := platform.Query{Op: c.Spec.Op, Variant: c.Variant.Name, Type: c.Spec.Type.String(), Device: c.Device, Shape: c.Spec.Key()}
	q.Flops, q.MovedBytes = c.Kernel.Work(c.Spec)
	at := p.AtClocks(c.Clock)
	e, ok := at.Estimate(q)
	if !ok {
		q.Variant = ""
		e, _ = at.Estimate(q)
	}
	return e.Duration
}
