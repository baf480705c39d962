package energy

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"dahl/platform"
	"dahl/schedule"
)

// checkShare is how far two ways to add up the same joules may lie apart, relative to the total.
const checkShare = 1e-9

// Check verifies that a report of a schedule adds up: devices, links and host to the total, the
// parts of each to its whole, phases and layers to what ran and moved. It also integrates the
// platform's powers again, by other code than [FromSchedule] (see replay), and compares every
// consumer.
func (r *Report) Check(s *schedule.Schedule, p *schedule.Problem) error {
	if err := checkTimes(s, p); err != nil {
		return err
	}
	pl := p.Platform
	if len(r.ByDevice) != len(pl.Devices) || len(r.ByLink) != len(pl.Links) {
		return fmt.Errorf("joules of %d devices and %d links, want %d and %d", len(r.ByDevice), len(r.ByLink), len(pl.Devices), len(pl.Links))
	}
	again, err := newReplay(s, p)
	if err != nil {
		return err
	}
	again.run()
	hostJ := pl.HostPower.Value * s.Makespan.Seconds()
	consumers := hostJ
	var idle, busy, transfer, phases, layers float64
	var checks []sumCheck
	for c, e := range slices.Concat(r.ByDevice, r.ByLink) {
		a := &again.consumers[c]
		checks = append(checks,
			sumCheck{e.Name + ", idle", e.IdleJoules, a.idleJ},
			sumCheck{e.Name + ", above idle", e.BusyJoules + e.TransferJoules, a.activeJ},
			sumCheck{e.Name, e.Joules, e.IdleJoules + e.BusyJoules + e.TransferJoules})
		consumers += a.idleJ + a.activeJ
		idle, busy, transfer = idle+e.IdleJoules, busy+e.BusyJoules, transfer+e.TransferJoules
	}
	for i := range r.ByPhase {
		phases += r.ByPhase[i].Joules
	}
	for i := range r.ByLayer {
		layers += r.ByLayer[i].Joules
	}
	checks = append(checks,
		sumCheck{"all idle parts", r.Causes.Idle, idle}, sumCheck{"all busy parts", r.Causes.Busy, busy},
		sumCheck{"all transfers", r.Causes.Transfer, transfer}, sumCheck{"the host", r.Causes.Host, hostJ},
		sumCheck{"devices, links and host", r.TotalJoules, consumers},
		sumCheck{"idle, busy, transfers and host", r.TotalJoules, idle + busy + transfer + r.Causes.Host},
		sumCheck{"all phases", phases, busy + transfer}, sumCheck{"all layers", layers, busy + transfer})
	for _, c := range checks {
		if !(math.Abs(c.reported-c.again) <= checkShare*consumers) {
			return fmt.Errorf("the joules do not add up: %s: %.12g J, and added up again %.12g J, of %.6g J in all", c.what, c.reported, c.again, consumers)
		}
	}
	return nil
}

// sumCheck is one quantity by two ways.
type sumCheck struct {
	what            string
	reported, again float64
}

// replay integrates all powers at once, from event to event in the order of time: after each
// begin or end it knows what runs and moves, and so what every consumer draws until the next.
type replay struct {
	p         *schedule.Problem
	makespan  time.Duration
	events    []event
	consumers []replayed // devices, then links
}

// event is the begin or end of a task or of the bytes of a transfer on a link.
type event struct {
	at       time.Duration
	begins   bool
	draw     int32 // which of them, to find it again at its end
	consumer int32
	unit     int32 // of a device
	watts    float64
	own      bool // a device's power above idle does not count: these watts do instead
}

// replayed is a device or link with what it runs now.
type replayed struct {
	device         platform.DeviceID // -1: a link
	running, plain []int             // of a device, by unit: tasks, and those without watts of their own
	own            []event           // what draws watts of its own
	idleJ, activeJ float64
}

func newReplay(s *schedule.Schedule, p *schedule.Problem) (*replay, error) {
	pl := p.Platform
	r := &replay{p: p, makespan: s.Makespan}
	for d := range pl.Devices {
		n := pl.Devices[d].Count
		r.consumers = append(r.consumers, replayed{device: platform.DeviceID(d), running: make([]int, n), plain: make([]int, n)})
	}
	for range pl.Links {
		r.consumers = append(r.consumers, replayed{device: -1})
	}
	for i := range s.Spans {
		v := &s.Spans[i]
		w := &pl.Workers[v.Worker]
		e := event{consumer: int32(w.Device), unit: int32(w.Index)}
		if p.Costs != nil {
			if cost, ok := p.Costs.Of(v.Task, w.Device); ok && cost.Joules != 0 {
				e.own, e.watts = true, cost.Joules/(v.End-v.Start).Seconds()
			}
		}
		r.add(e, v.Start, v.End)
	}
	for i := range s.Transfers {
		if err := r.addTransfer(&s.Transfers[i]); err != nil {
			return nil, err
		}
	}
	slices.SortStableFunc(r.events, func(a, b event) int { return cmp.Compare(a.at, b.at) })
	return r, nil
}

// addTransfer adds the time in which bytes move, at their mean rate, once for each link that the
// route names.
func (r *replay) addTransfer(v *schedule.Transfer) error {
	pl := r.p.Platform
	route, ok := pl.Route(v.From, v.To)
	if !ok {
		return fmt.Errorf("no route from %q to %q", pl.Memories[v.From].Name, pl.Memories[v.To].Name)
	}
	first := v.Start
	for _, l := range route {
		first += pl.Links[l].Latency
	}
	if first >= v.End {
		first = v.Start
	}
	if v.Start == v.End {
		return nil
	}
	for _, l := range route {
		link := &pl.Links[l]
		share := float64(v.Bytes) / (v.End - first).Seconds() / link.BandwidthBytesPerSec
		if link.Sharing == platform.Duplex {
			share /= 2 // busy is the power with both directions full
		}
		r.add(event{consumer: int32(len(pl.Devices)) + int32(l), watts: (link.BusyWatts - link.IdleWatts) * share, own: true}, first, v.End)
	}
	return nil
}

// add adds a begin and its end. Events of one time stay in this order, so that what takes no time
// ends after it began.
func (r *replay) add(e event, start, end time.Duration) {
	e.draw = int32(len(r.events))
	e.at, e.begins = start, true
	r.events = append(r.events, e)
	e.at, e.begins = end, false
	r.events = append(r.events, e)
}

// run takes the events in turn.
func (r *replay) run() {
	now := time.Duration(0)
	for i := range r.events {
		e := &r.events[i]
		r.draw(min(e.at, r.makespan) - now)
		now = min(e.at, r.makespan)
		r.consumers[e.consumer].take(e)
	}
	r.draw(r.makespan - now)
}

// take changes what a consumer runs.
func (c *replayed) take(e *event) {
	change := 1
	if !e.begins {
		change = -1
	}
	if c.running != nil {
		c.running[e.unit] += change
		if !e.own {
			c.plain[e.unit] += change
		}
	}
	switch {
	case !e.own:
	case e.begins:
		c.own = append(c.own, *e)
	default:
		c.own = slices.DeleteFunc(c.own, func(o event) bool { return o.draw == e.draw })
	}
}

// draw adds up a piece in which nothing begins or ends.
func (r *replay) draw(piece time.Duration) {
	if piece == 0 {
		return
	}
	secs := piece.Seconds()
	for i := range r.consumers {
		c := &r.consumers[i]
		above := 0.0 // watts
		for k := range c.own {
			above += c.own[k].watts
		}
		if c.device < 0 {
			c.idleJ += float64(r.p.Platform.Links[i-len(r.p.Platform.Devices)].IdleWatts * secs)
			c.activeJ += float64(above * secs)
			continue
		}
		waiting, plain := 0, 0
		for u := range c.running {
			if c.running[u] == 0 {
				waiting++
			}
			if c.plain[u] > 0 {
				plain++
			}
		}
		idle := float64(waiting) * r.p.Platform.Devices[c.device].ClockInForce().Idle
		c.idleJ += float64(idle * secs)
		c.activeJ += float64((r.p.Platform.BusyTotal(c.device, plain) + above - idle) * secs)
	}
}
