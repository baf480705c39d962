package simulate

import (
	"cmp"
	"math"
	"slices"
	"time"

	"dahl/platform"
	"dahl/schedule"
)

// draw keeps the power below the caps. A task or a transfer is admitted only if nothing that may happen before the
// next admission draws more than a cap. So a task counts from its admission, though it starts later. A link counts as
// full while anything moves there. A waiting unit counts with the most that it draws on its way to sleep.
//
// Of n admitted tasks any k may run at an instant, and each then draws what it does with k busy
// units. The most is the largest sum over k of the k tasks that draw most.
type draw struct {
	p      *platform.Platform
	calls  []call             // by worker
	clocks []platform.ClockID // by worker: the clock of its domain
	flows  [][2]int32         // by link and direction: crossings of transfers
	extras []extra            // of changes, perhaps in progress
}

// call is a task on a worker.
type call struct {
	admitted bool
	clock    platform.ClockID
	watts    float64 // of a call with joules of its own, above idle; 0 means the device's power
}

// extra is the watts of a change above idle.
type extra struct {
	device platform.DeviceID // -1: a link
	watts  float64
	until  time.Duration
}

// newDraw returns nil where there is no cap.
func newDraw(p *schedule.Problem, clocks []platform.ClockID) *draw {
	pl := p.Platform
	if !pl.HasCaps() {
		return nil
	}
	return &draw{p: pl, calls: make([]call, len(pl.Workers)), clocks: clocks, flows: make([][2]int32, len(pl.Links))}
}

// callOf is a task with the watts of its own joules, if it has any, over its shortest time.
func callOf(p *schedule.Problem, r *request, clock platform.ClockID) call {
	c := call{admitted: true, clock: clock}
	if cost, ok := p.Costs.Of(r.i.Task, p.Platform.Workers[r.worker].Device); ok && cost.Joules != 0 {
		c.watts = cost.Joules / cost.Least().Seconds()
	}
	return c
}

// sleepExtra is the most watts above idle on the way into sleep and out, and the time that this takes.
func sleepExtra(states []platform.SleepState) (e extra) {
	var enter, leave time.Duration
	for i := range states {
		s := &states[i]
		e.watts = max(e.watts, s.Enter.WattsAboveIdle(), s.Leave.WattsAboveIdle())
		enter, leave = max(enter, s.Enter.Takes), max(leave, s.Leave.Takes)
	}
	e.until = enter + leave
	return e
}

// admitsTask admits a task of a worker if it fits.
func (d *draw) admitsTask(p *schedule.Problem, r *request, clock platform.ClockID, domain int32, now time.Duration) bool {
	if d == nil {
		return true
	}
	id := d.p.Workers[r.worker].Device
	device := &d.p.Devices[id]
	e := sleepExtra(device.Sleeps)
	if was := d.clocks[domain]; was != clock { // the idle watts of the one or the other hold for all units
		idle := device.ClockAt(was).Idle - device.ClockAt(clock).Idle
		e.watts = max(e.watts, device.Switch.WattsAboveIdle()) + float64(float64(device.Count)*math.Abs(idle))
		e.until += device.Switch.Takes
	}
	e.device, e.until = id, now+e.until
	d.calls[r.worker] = callOf(p, r, clock)
	if d.fits(now, e) {
		return true
	}
	d.calls[r.worker] = call{}
	return false
}

// ended notes that the task of a worker has ended.
func (d *draw) ended(w platform.WorkerID) {
	if d != nil {
		d.calls[w] = call{}
	}
}

// admitsTransfer admits a transfer over links if it fits.
func (d *draw) admitsTransfer(uses []platform.LinkUse, now time.Duration) bool {
	if d == nil {
		return true
	}
	all := make([]extra, 0, len(uses))
	for _, use := range uses {
		e := sleepExtra(d.p.Links[use.Link].Sleeps)
		e.device, e.until = -1, now+e.until
		all = append(all, e)
	}
	d.moves(uses, 1)
	if d.fits(now, all...) {
		return true
	}
	d.moves(uses, -1)
	return false
}

// moves adds transfers to links, or takes them away.
func (d *draw) moves(uses []platform.LinkUse, change int32) {
	if d == nil {
		return
	}
	for _, use := range uses {
		d.flows[use.Link][use.Direction] += change * use.Times
	}
}

// nextOver is the end of the next change that may be in progress. A time up to now means that there is none.
func (d *draw) nextOver(now time.Duration) (at time.Duration) {
	if d == nil {
		return 0
	}
	for _, e := range d.extras {
		if e.until > now && (at == 0 || e.until < at) {
			at = e.until
		}
	}
	return at
}

// fits reports whether everything stays below the caps with further changes, and keeps those then.
func (d *draw) fits(now time.Duration, further ...extra) bool {
	d.extras = slices.DeleteFunc(d.extras, func(e extra) bool { return e.until <= now })
	kept := len(d.extras)
	for _, e := range further {
		if e.watts > 0 {
			d.extras = append(d.extras, e)
		}
	}
	total := d.p.HostWatts().Value
	for l := range d.p.Links {
		total += d.link(l)
	}
	for _, e := range d.extras {
		total += e.watts
	}
	below := true
	nodes := make([]float64, len(d.p.Nodes))
	for n := range nodes {
		nodes[n] = d.p.Nodes[n].HostPower.Value
	}
	for id := range d.p.Devices {
		watts := d.device(platform.DeviceID(id))
		total += watts
		for _, e := range d.extras {
			if e.device == platform.DeviceID(id) {
				watts += e.watts
			}
		}
		most := d.p.Devices[id].CapWatts
		below = below && (most == 0 || watts <= most)
		if len(nodes) > 0 {
			nodes[d.p.NodeOf(d.p.Devices[id].Memory)] += watts
		}
	}
	for n, watts := range nodes {
		below = below && (d.p.Nodes[n].CapWatts == 0 || watts <= d.p.Nodes[n].CapWatts)
	}
	if most := d.p.CapWatts; most > 0 && total > most {
		below = false
	}
	if !below {
		d.extras = d.extras[:kept]
	}
	return below
}

// device is the most that a device may draw.
func (d *draw) device(id platform.DeviceID) (watts float64) {
	device := &d.p.Devices[id]
	resting := 0.0 // above idle, of a unit that waits
	for i := range device.Sleeps {
		resting = max(resting, device.Sleeps[i].Enter.WattsAboveIdle())
	}
	var running []platform.ClockID // clocks of the tasks that draw the device's power
	for w := range d.calls {
		if d.p.Workers[w].Device != id {
			continue
		}
		c := &d.calls[w]
		clock := d.clocks[w-d.p.Workers[w].Index]
		if device.UnitClocks {
			clock = d.clocks[w]
		}
		idle := device.ClockAt(clock).Idle
		switch {
		case !c.admitted:
			watts += platform.MostWatts(idle, device.Sleeps) + resting
		case c.watts != 0:
			watts += max(idle, device.ClockAt(c.clock).Idle) + c.watts
		default:
			watts += max(idle, device.ClockAt(c.clock).Idle)
			running = append(running, c.clock)
		}
	}
	return watts + mostAbove(device, running)
}

// mostAbove is the most that some of the units with tasks draw above idle when they run.
func mostAbove(device *platform.Device, clocks []platform.ClockID) (most float64) {
	above := make([]float64, len(clocks))
	for k := 1; k <= len(clocks); k++ {
		for i, clock := range clocks {
			above[i] = device.WattsAboveIdle(clock, k)
		}
		slices.SortFunc(above, func(a, b float64) int { return cmp.Compare(b, a) })
		sum := 0.0
		for _, watts := range above[:k] {
			sum += watts
		}
		most = max(most, sum)
	}
	return most
}

// link is the most that a link may draw.
func (d *draw) link(l int) float64 {
	link, flows := &d.p.Links[l], d.flows[l]
	watts := platform.MostWatts(link.IdleWatts, link.Sleeps)
	full := link.BusyWatts - link.IdleWatts
	switch {
	case link.Sharing == platform.Fatpipe:
		return watts + float64(full*float64(flows[0]))
	case link.Sharing == platform.Duplex:
		return watts + full/2*float64(min(flows[0], 1)+min(flows[1], 1))
	}
	return watts + full*float64(min(flows[0], 1))
}
