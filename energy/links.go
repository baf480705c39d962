package energy

import (
	"fmt"
	"time"

	"dahl/platform"
	"dahl/schedule"
)

// The power of a link is idle + (busy − idle)·u(t). The utilisation u is the sum of the rates of
// its transfers over its capacity. The capacity is the bandwidth B; for a duplex link it is 2·B,
// since busy is the power with both directions full. A fatpipe lets every transfer have all of B,
// so its u may exceed 1.
//
// A transfer of n bytes that crosses the link k times at rates x(t) has ∫ x dt = n, so it draws
//
//	∫ (busy − idle)·k·x(t)/capacity dt = (busy − idle)·k·n/capacity
//
// above idle, whatever x is, and a schedule need not say it. The trace takes the mean of x over the time in which bytes move,
// after the latency of the route; its integral is
// exact. Measured copies may beat the platform's bandwidth and latency. If a copy takes no longer
// than its latency, the trace takes the mean over its whole time.
//
// The rule follows SimGrid's plugin for the energy of links, src/plugins/link_energy.cpp. For
// fatpipes it differs: SimGrid takes the largest of the rates instead of their sum.

// moving is when the bytes of a transfer move.
func moving(p *platform.Platform, t *schedule.Transfer) interval {
	if first := t.Start + p.RouteTime(t.From, t.To, 0); first < t.End {
		return interval{first, t.End}
	}
	return interval{t.Start, t.End}
}

// carried is a transfer on a link, with its energy there above idle if nothing cuts it short.
type carried struct {
	transfer int32
	joules   float64
}

func (a *account) integrateLinks() error {
	pl := a.p.Platform
	on, count := make([][]carried, len(pl.Links)), make([]int, len(pl.Links))
	for i := range a.s.Transfers {
		for _, use := range pl.LinkUses(a.s.Transfers[i].From, a.s.Transfers[i].To) {
			count[use.Link]++
		}
	}
	for l := range on {
		on[l] = make([]carried, 0, count[l])
	}
	for i := range a.s.Transfers {
		v := &a.s.Transfers[i]
		if _, ok := pl.Route(v.From, v.To); !ok {
			return fmt.Errorf("energy of a schedule: a transfer from %q to %q, and platform %q has no route",
				pl.Memories[v.From].Name, pl.Memories[v.To].Name, pl.Name)
		}
		for _, use := range pl.LinkUses(v.From, v.To) {
			joules := pl.Links[use.Link].JoulesPerByte() * float64(v.Bytes) * float64(use.Times)
			on[use.Link] = append(on[use.Link], carried{int32(i), joules})
		}
	}
	for l := range pl.Links {
		a.integrateLink(platform.LinkID(l), on[l])
	}
	return nil
}

// integrateLink adds up one link over its transfers. A transfer of no duration, from a clock that
// is too coarse, draws nothing.
func (a *account) integrateLink(id platform.LinkID, on []carried) {
	l := &a.p.Platform.Links[id]
	e := newEntry(l.Name, l.PowerSource)
	in, watts := make([]interval, len(on)), make([]float64, len(on))
	for k, c := range on {
		in[k] = moving(a.p.Platform, &a.s.Transfers[c.transfer])
		whole, within := in[k].end-in[k].start, min(in[k].end, a.s.Makespan)-in[k].start
		if whole == 0 || within <= 0 {
			continue
		}
		watts[k] = c.joules / whole.Seconds()
		joules := c.joules
		if within < whole {
			joules = float64(watts[k] * within.Seconds())
		}
		e.TransferJoules += joules
		a.transferJ[c.transfer] += joules
	}
	e.IdleJoules = float64(l.IdleWatts * a.s.Makespan.Seconds())
	stretches := a.stretchesOf(func(c *schedule.Change) bool { return c.Device < 0 && c.Link == id })
	for _, s := range stretches {
		in = append(in, s.interval)
	}
	a.links = append(a.links, e)
	if !a.traced && len(stretches) == 0 {
		return
	}
	trace, entry := a.trace(l.Name), &a.links[id]
	sweep(in, a.s.Makespan, func(from, to time.Duration, active []int32) {
		sum, secs := l.IdleWatts, (to - from).Seconds()
		for _, k := range active {
			if int(k) < len(on) {
				sum += watts[k]
				continue
			}
			switch s := &stretches[int(k)-len(on)]; s.kind {
			case changing:
				sum += s.watts
				entry.SwitchingJoules += float64(s.watts * secs)
			case asleep:
				sum += l.Sleeps[s.state].Watts - l.IdleWatts
				entry.SleepJoules += float64(l.Sleeps[s.state].Watts * secs)
				entry.IdleJoules -= float64(l.IdleWatts * secs)
			}
		}
		trace.add(from, sum)
	})
}
