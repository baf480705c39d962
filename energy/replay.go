package energy

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"dahl/platform"
	"dahl/schedule"
)

// replay integrates all powers at once, from event to event in the order of time: after each
// begin or end it knows what runs and moves, and so what every consumer draws until the next.
type replay struct {
	p         *schedule.Problem
	makespan  time.Duration
	events    []event
	consumers []replayed         // devices, then links
	above     string             // the first cap that was exceeded
	greatest  map[string]float64 // watts, of what has a cap
}

// event is the begin or end of a task, of the bytes of a transfer on a link, or of a change.
type event struct {
	at       time.Duration
	begins   bool
	draw     int32 // which of them, to find it again at its end
	consumer int32
	unit     int32 // of a device
	watts    float64
	own      bool             // a device's power above idle does not count: these watts do instead
	change   *schedule.Change // nil: a task or a transfer
}

// atClock is how much of a device is busy, at a clock.
type atClock struct {
	clock platform.ClockID
	busy  int
}

// replayed is a device or link with what it runs now.
type replayed struct {
	device         *platform.Device   // nil: a link
	running, plain []int              // of a device, by unit: tasks, and those without watts of their own
	own            []event            // what draws watts of its own
	clock          []platform.ClockID // by unit
	sleep          []int              // by unit, a link being one: 0 awake, else the sleep state plus 1
	off            bool
	changing       []event
	total          map[atClock]float64 // watts of the device, as far as known

	idleJ, activeJ, sleepJ, changeJ float64
}

func newReplay(s *schedule.Schedule, p *schedule.Problem) (*replay, error) {
	pl := p.Platform
	r := &replay{p: p, makespan: s.Makespan, greatest: map[string]float64{}}
	used := map[platform.DeviceID]bool{}
	reached := map[platform.MemoryID]bool{pl.HostMemory(): false}
	for i := range s.Spans {
		used[pl.Workers[s.Spans[i].Worker].Device] = true
	}
	for i := range s.Transfers {
		reached[s.Transfers[i].From], reached[s.Transfers[i].To] = true, true
	}
	reached[pl.HostMemory()] = false
	for d := range pl.Devices {
		device := &pl.Devices[d]
		n := device.Count
		r.consumers = append(r.consumers, replayed{device: device, total: map[atClock]float64{}, running: make([]int, n), plain: make([]int, n),
			clock: slices.Repeat([]platform.ClockID{device.AtClock}, n), sleep: make([]int, n),
			off: device.MayBeOff && !used[platform.DeviceID(d)] && !reached[device.Memory]})
	}
	for range pl.Links {
		r.consumers = append(r.consumers, replayed{sleep: make([]int, 1)})
	}
	for i := range s.Changes {
		c := &s.Changes[i]
		e := event{consumer: int32(c.Device), unit: c.Unit, change: c}
		if c.Device < 0 {
			e.consumer, e.unit = int32(len(pl.Devices))+int32(c.Link), 0
		}
		if takes := c.End - c.Start; takes > 0 {
			e.watts = c.Transition(pl).Joules / c.Transition(pl).Takes.Seconds()
		}
		r.add(e, c.Start, c.End)
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
		r.draw(now, min(e.at, r.makespan))
		now = min(e.at, r.makespan)
		if c := &r.consumers[e.consumer]; e.change != nil {
			c.turn(e)
		} else {
			c.take(e)
		}
	}
	r.draw(now, r.makespan)
}

// turn changes the state of a consumer.
func (c *replayed) turn(e *event) {
	for u := range c.sleep {
		if e.unit >= 0 && int(e.unit) != u {
			continue
		}
		switch {
		case e.change.Kind == schedule.SwitchClock && !e.begins:
			c.clock[u] = platform.ClockID(e.change.To)
		case e.change.Kind != schedule.SwitchClock && e.begins:
			c.sleep[u] = 0
		case e.change.Kind == schedule.FallAsleep:
			c.sleep[u] = int(e.change.To) + 1
		}
	}
	c.changing = withOrWithout(c.changing, e)
}

func withOrWithout(list []event, e *event) []event {
	if e.begins {
		return append(list, *e)
	}
	return slices.DeleteFunc(list, func(o event) bool { return o.draw == e.draw })
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
	if e.own {
		c.own = withOrWithout(c.own, e)
	}
}

// draw adds up a piece in which nothing begins or ends.
func (r *replay) draw(from, to time.Duration) {
	if from == to {
		return
	}
	secs := (to - from).Seconds()
	total := r.p.Platform.HostPower.Value
	for i := range r.consumers {
		c := &r.consumers[i]
		var watts watts
		if c.device == nil {
			link := &r.p.Platform.Links[i-len(r.p.Platform.Devices)]
			watts = c.linkWatts(link)
			most := link.BusyWatts - link.IdleWatts // mean rates of transfers may add up to more than the link has
			total += watts.idle + watts.sleep + watts.change
			if link.Sharing == platform.Fatpipe {
				most = watts.active
			}
			total += min(watts.active, most)
		} else {
			watts = c.deviceWatts()
			sum := watts.idle + watts.active + watts.sleep + watts.change
			total += sum
			r.notAbove(from, c.device.Name, sum, c.device.CapWatts)
		}
		c.idleJ += float64(watts.idle * secs)
		c.activeJ += float64(watts.active * secs)
		c.sleepJ += float64(watts.sleep * secs)
		c.changeJ += float64(watts.change * secs)
	}
	r.notAbove(from, wholeMachine, total, r.p.Platform.CapWatts)
}

func (r *replay) notAbove(at time.Duration, who string, watts, most float64) {
	if most > 0 {
		r.greatest[who] = max(r.greatest[who], watts)
	}
	if most > 0 && watts > most*(1+checkShare) && r.above == "" {
		r.above = fmt.Sprintf("%s draws %.6g W at %v, above its cap of %g W", who, watts, at, most)
	}
}

// watts are what a consumer draws, by cause.
type watts struct{ idle, active, sleep, change float64 }

func (c *replayed) changeWatts() (sum float64) {
	for i := range c.changing {
		sum += c.changing[i].watts
	}
	return sum
}

func (c *replayed) linkWatts(link *platform.Link) watts {
	w := watts{idle: link.IdleWatts, change: c.changeWatts()}
	if c.sleep[0] > 0 {
		w.idle, w.sleep = 0, link.Sleeps[c.sleep[0]-1].Watts
	}
	for k := range c.own {
		w.active += c.own[k].watts
	}
	return w
}

// deviceWatts adds up the units, each at its own clock. What one of n busy units draws above idle is
// the n-th part of what the device does with all at that clock.
func (c *replayed) deviceWatts() watts {
	if c.off {
		return watts{sleep: c.device.OffWatts}
	}
	busy := 0
	for u := range c.plain {
		if c.plain[u] > 0 {
			busy++
		}
	}
	w := watts{change: c.changeWatts()}
	for k := range c.own {
		w.active += c.own[k].watts
	}
	for u := range c.running {
		switch idle := c.at(c.clock[u], 0) / float64(len(c.running)); {
		case c.running[u] > 0 && c.plain[u] > 0:
			w.active += idle + (c.at(c.clock[u], busy)-c.at(c.clock[u], 0))/float64(busy)
		case c.running[u] > 0:
			w.active += idle
		case c.sleep[u] > 0:
			w.sleep += c.device.Sleeps[c.sleep[u]-1].Watts
		default:
			w.idle += idle
		}
	}
	return w
}

// at is the power of the whole device at a clock with so many units busy.
func (c *replayed) at(clock platform.ClockID, busy int) float64 {
	key := atClock{clock, busy}
	total, known := c.total[key]
	if !known {
		at := *c.device
		at.AtClock = clock
		total = (&platform.Platform{Devices: []platform.Device{at}}).BusyTotal(0, busy)
		c.total[key] = total
	}
	return total
}
