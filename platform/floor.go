package platform

import (
	"math"
	"slices"

	"dahl/platform/fit"
)

// Floor is a time that calls of an operation take at least, without dispatch: with a share of some work, Fixed and that share of
// Nanos. Joules are for all of the work, above idle; zero means that the busy power holds.
type Floor struct{ Fixed, Nanos, Joules float64 }

// Floors are floors of the calls of an operation on a device at a clock, in sets with from least to most of its units and with
// sharing units, or more, at its memory. Every call takes no less than one of them. flops and bytes are all of the work: a call with a share of it
// has no fewer flops and moves no fewer bytes than the share of them. No floor means that nothing is known of the operation on the device.
//
// They follow [Platform.Estimate] by any variant. A measured call with some flops has no larger share of the work than
// its flops have of all, and so for its bytes.
func (p *Platform) Floors(op, elem string, id DeviceID, clock ClockID, least, most, sharing int, flops, bytes float64) (all []Floor) {
	p = p.AtClocks(clock)
	d := &p.Devices[id]
	clock = min(clock, d.NumClocks()-1)
	q := &Query{Op: op, Type: elem, Device: id}
	unknown := true
	name, kind := p.ModelNames(d)
	for i := range p.Models {
		m := &p.Models[i]
		if m.Op != op || m.Type != elem || m.Device != name && m.Device != kind {
			continue
		}
		switch at, ok := d.ClockByName(m.Clock); {
		case !ok || at != 0 && at != clock:
			continue
		case at != clock:
			m = p.stretched(d, m)
		}
		unknown = false
		all = append(all, m.floor(float64(d.Timing), flops, bytes))
	}
	partly := false // some variant has too few shapes for a fit
	for _, units := range p.changing(op, least, most) {
		for rest := p.modelsFor(q, units, clock); len(rest) > 0; {
			n := 1
			for n < len(rest) && rest[n].Variant == rest[0].Variant {
				n++
			}
			f, ok := fitModels(rest[:n])
			if partly = partly || !ok; ok {
				all = append(all, floorOfFit(&f, float64(d.Timing), flops, bytes))
			}
			rest = rest[n:]
		}
	}
	if unknown || partly {
		if nanos, ok := p.leastRoofline(d, elem, sharing, flops, bytes); ok {
			all = append(all, Floor{Nanos: nanos})
		}
	}
	return all
}

// changing are numbers of units between two. All sets of models of an operation that are nearest to a number are nearest to one of these.
func (p *Platform) changing(op string, least, most int) (units []int) {
	active := []int{}
	for i := range p.Models {
		if p.Models[i].Op == op {
			active = append(active, p.Models[i].Active)
		}
	}
	slices.Sort(active)
	active = slices.Compact(active)
	units = []int{least, most}
	for _, a := range active {
		for _, b := range active {
			middle := (a + b) / 2
			units = append(units, middle-1, middle, middle+1)
		}
	}
	for i := range units {
		units[i] = max(1, least, min(units[i], most))
	}
	slices.Sort(units)
	return slices.Compact(units)
}

// slightly is a little less than 1, for what rounding adds to a few products.
const slightly = 1 - 1e-12

// floor is the floor by a measured call, with any contents of caches.
func (m *Model) floor(timing, flops, bytes float64) Floor {
	nanos := math.Inf(1)
	for _, ns := range []float64{m.MedianNs, m.StepNs, m.WarmNs, m.FarNs} {
		if ns > 0 {
			nanos = min(nanos, max(1, ns-timing))
		}
	}
	times := 0.0 // how many such calls all of the work is, at least
	if m.Flops > 0 {
		times = flops / m.Flops
	}
	if m.MovedBytes > 0 {
		times = max(times, bytes/float64(m.MovedBytes))
	}
	return Floor{Nanos: nanos * times * slightly, Joules: m.Joules * times * slightly}
}

// floorOfFit is the floor by a fit. Where timing takes more than the start-up time of a call, the least time of a call is one nanosecond. With
// g for the excess of timing and w for the time of all work, a share s takes at least max(1, s·w − g), and that is no less than s·w/(1 + g).
func floorOfFit(f *fit.Calls, timing, flops, bytes float64) Floor {
	nanos := (float64(f.Coef[1]*flops) + float64(f.Coef[2]*bytes)) * slightly
	if excess := timing - f.Coef[0]; excess > 0 {
		return Floor{Nanos: nanos / (1 + excess) * slightly}
	}
	return Floor{Fixed: (f.Coef[0] - timing) * slightly, Nanos: nanos}
}

// leastRoofline is the time of some work by [Platform.roofline], while units share the memory.
func (p *Platform) leastRoofline(d *Device, elem string, sharing int, flops, bytes float64) (nanos float64, ok bool) {
	speed, bandwidth := d.speed(elem), p.Memories[d.Memory].BandwidthBytesPerSec/float64(max(1, sharing))
	if flops > 0 && speed <= 0 || bytes > 0 && bandwidth <= 0 {
		return 0, false
	}
	if flops > 0 {
		nanos = flops / speed
	}
	if bytes > 0 {
		nanos = max(nanos, bytes/bandwidth)
	}
	return nanos * 1e9 * slightly, true
}
