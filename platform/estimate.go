package platform

import (
	"cmp"
	"math"
	"slices"
	"time"

	"dahl/platform/fit"
)

// Query asks for the cost of one kernel call on one unit of a device.
type Query struct {
	Op, Variant, Type string // Variant empty: the fastest
	Device            DeviceID
	Shape             string
	Flops             float64
	MovedBytes        int64
}

// Estimate is the answer.
type Estimate struct {
	Duration time.Duration // without Device.Dispatch
	Joules   float64       // above idle; zero means not measured, so that the platform's busy power holds
	Variant  string
	Source   string // how it was found: "measured", "fit" or "roofline"
	// RelError is the error of a fit: two of three measured shapes, each predicted from the
	// others, lie within it. 0 means not known.
	RelError float64
	// First is the time in the first step of a run. Zero means as Duration.
	First   time.Duration
	InSteps bool // it was measured inside training steps, among neighbours
	// Busy and Alone are times of a call measured by itself and not in steps: with all units of
	// the device busy, and with one. All zero: not known.
	Busy, Alone CacheTimes
	// Spread is the distribution of a measured call relative to its mean; all zero:
	// not known.
	Spread Distribution
}

// CacheTimes is the time of a call by where its operands are: in the unit's second-level cache,
// lost by that cache, or lost by all caches.
type CacheTimes struct{ Warm, Near, Far time.Duration }

// cacheTimes are the times of a model. A time that was not measured is as near.
func (m *Model) cacheTimes() CacheTimes {
	return CacheTimes{roundUpNs(cmp.Or(m.WarmNs, m.MedianNs)), roundUpNs(m.MedianNs), roundUpNs(cmp.Or(m.FarNs, m.MedianNs))}
}

// Estimate answers at the clock in force, from the models of that clock. For calls without one it
// stretches the compute part of models of the device's first clock. In this order:
//
//   - a measurement of the very shape, with the number of busy units nearest to the device's
//     count: its mean inside real steps, else its median
//   - a fit through the measured shapes
//   - a roofline
//
// Without a variant it takes the one that is fastest by itself at the shape with all units of the
// machine at the first clock, else the fastest fit, else a roofline without a variant's name. ok is
// false where nothing is known, and for a variant without any model.
func (p *Platform) Estimate(q Query) (e Estimate, ok bool) {
	d := &p.Devices[q.Device]
	models := p.modelsFor(&q, d.Count, d.AtClock)
	if q.Variant == "" && (d.Whole != 0 || d.AtClock != 0) {
		if own, known := p.fastest(&q, p.modelsFor(&q, cmp.Or(d.Whole, d.Count), 0)); known {
			models = slices.DeleteFunc(models, func(m *Model) bool { return m.Variant != own.Variant })
		}
	}
	if e, ok = p.fastest(&q, models); ok {
		return e, true
	}
	if q.Variant != "" && len(models) == 0 {
		return Estimate{}, false
	}
	return p.roofline(&q)
}

// fastest answers from models by variant: from measurements of the very shape, else from fits.
func (p *Platform) fastest(q *Query, models []*Model) (e Estimate, ok bool) {
	for _, find := range []func(*Query, []*Model) (e Estimate, rankNs float64, ok bool){p.measured, fitted} {
		best := math.Inf(1)
		for rest := models; len(rest) > 0; {
			n := 1
			for n < len(rest) && rest[n].Variant == rest[0].Variant {
				n++
			}
			if f, rankNs, found := find(q, rest[:n]); found && rankNs < best {
				e, best, ok = f, rankNs, true
			}
			rest = rest[n:]
		}
		if ok {
			return e, true
		}
	}
	return e, false
}

// modelsFor returns the models that can answer a query at a clock, by variant, then shape. Each was
// measured with the number of busy units nearest to units (the larger of two), at
// that clock if any was. Models of the device by name replace models of its kind.
func (p *Platform) modelsFor(q *Query, units int, clock ClockID) []*Model {
	d := &p.Devices[q.Device]
	name, kind := p.ModelNames(d)
	answers := func(m *Model) bool {
		at, ok := d.ClockByName(m.Clock)
		return ok && (at == 0 || at == clock)
	}
	var byName, byKind []*Model
	for i := range p.Models {
		m := &p.Models[i]
		switch {
		case m.Op != q.Op || m.Type != q.Type || q.Variant != "" && m.Variant != q.Variant:
		case !answers(m):
		case m.Device == name:
			byName = append(byName, m)
		case m.Device == kind:
			byKind = append(byKind, m)
		}
	}
	found := byName
	if len(found) == 0 {
		found = byKind
	}
	off := func(m *Model) int { return max(m.Active-units, units-m.Active) }
	elsewhere := func(m *Model) int { // 1: only of the first clock
		if at, _ := d.ClockByName(m.Clock); at == clock {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(found, func(a, b *Model) int {
		return cmp.Or(cmp.Compare(a.Variant, b.Variant), cmp.Compare(a.Shape, b.Shape), cmp.Compare(elsewhere(a), elsewhere(b)),
			cmp.Compare(off(a), off(b)), cmp.Compare(b.Active, a.Active))
	})
	found = slices.CompactFunc(found, func(a, b *Model) bool { return a.Variant == b.Variant && a.Shape == b.Shape })
	for i, m := range found {
		if elsewhere(m) != 0 {
			found[i] = p.stretched(d, m)
		}
	}
	return found
}

// measured answers from the model of the very shape. Variants are ranked by their times by
// themselves, since only those were measured alike.
func (p *Platform) measured(q *Query, models []*Model) (e Estimate, rankNs float64, ok bool) {
	for _, m := range models {
		if m.Shape == q.Shape {
			e = Estimate{Duration: roundUpNs(m.expectedNs()), Joules: m.Joules, Variant: m.Variant, Source: "measured"}
			if m.StepNs > 0 {
				e.First, e.InSteps, e.Spread = roundUpNs(m.FirstNs), true, m.StepDistribution.relative()
			} else {
				e.Spread = m.Distribution.relative()
				if alone := p.aloneOf(&p.Devices[q.Device], m); alone != nil && m.WarmNs+m.FarNs > 0 {
					e.Busy, e.Alone = m.cacheTimes(), alone.cacheTimes()
				}
			}
			return e, m.MedianNs, true
		}
	}
	return Estimate{}, 0, false
}

// aloneOf is the model of a call while the other units rest. Nil means not measured.
func (p *Platform) aloneOf(d *Device, m *Model) *Model {
	for i := range p.Models {
		o := &p.Models[i]
		if o.Active == 1 && o.Op == m.Op && o.Variant == m.Variant && o.Type == m.Type && o.Shape == m.Shape && o.Device == m.Device && o.Clock == m.Clock {
			if at, _ := d.ClockByName(o.Clock); at != d.AtClock {
				return p.stretched(d, o)
			}
			return o
		}
	}
	return nil
}

// expectedNs is the time of a call in a training step, as far as it is known.
func (m *Model) expectedNs() float64 { return cmp.Or(m.StepNs, m.MedianNs) }

// fitModels fits the models of one variant, one for each shape.
func fitModels(models []*Model) (fit.Calls, bool) {
	rows := make([][3]float64, len(models))
	for i, m := range models {
		rows[i] = fit.Row(m.Flops, float64(m.MovedBytes), m.expectedNs())
	}
	return fit.OfCalls(rows)
}

// fitted answers from a line through the models of one variant.
func fitted(q *Query, models []*Model) (e Estimate, rankNs float64, ok bool) {
	f, ok := fitModels(models)
	if !ok {
		return Estimate{}, 0, false
	}
	ns := f.Ns(q.Flops, float64(q.MovedBytes))
	return Estimate{Duration: roundUpNs(ns), Variant: models[0].Variant, Source: "fit", RelError: f.RelError}, ns, true
}

// roofline is the longer of computing at the unit's speed and moving the bytes at
// the unit's share of the memory's bandwidth, with all units of that memory busy
// [Williams, Waterman, Patterson, CACM 2009].
func (p *Platform) roofline(q *Query) (Estimate, bool) {
	d := &p.Devices[q.Device]
	units := 0
	for i := range p.Devices {
		if p.Devices[i].Memory == d.Memory {
			units += p.Devices[i].Count
		}
	}
	speed, bandwidth := d.speed(q.Type), p.Memories[d.Memory].BandwidthBytesPerSec/float64(units)
	if q.Flops > 0 && speed <= 0 || q.MovedBytes > 0 && bandwidth <= 0 {
		return Estimate{}, false
	}
	secs := 0.0
	if q.Flops > 0 {
		secs = q.Flops / speed
	}
	if q.MovedBytes > 0 {
		secs = max(secs, float64(q.MovedBytes)/bandwidth)
	}
	return Estimate{Duration: roundUpNs(secs * 1e9), Variant: q.Variant, Source: "roofline"}, true
}

// speed is the speed for an element type at the clock in force. Integer types that are not listed run at the speed of
// float32. A floating-point type that is not listed cannot run.
func (d *Device) speed(elem string) float64 { return d.ownSpeed(elem) * d.ClockInForce().Scale }

// ownSpeed is the speed at the first clock.
func (d *Device) ownSpeed(elem string) float64 {
	v, ok := d.FlopsPerSec[elem]
	if !ok && elem != "float64" {
		v = d.FlopsPerSec["float32"]
	}
	return v
}

// roundUpNs makes the Duration of modelled work. It rounds up, so no work takes zero time, and saturates at Unreachable.
func roundUpNs(ns float64) time.Duration {
	return time.Duration(math.Ceil(min(ns, float64(Unreachable))))
}
