package energy

import (
	"fmt"
	"time"

	"dahl/platform"
	"dahl/schedule"
	"dahl/schedule/audit"
)

// PowerSample is a power from At until the next sample or the end of the run.
type PowerSample struct {
	At    time.Duration `json:"at_ns"`
	Watts float64       `json:"watts"`
}

// PowerTrace is the power of one consumer: a device, a link or the host.
type PowerTrace struct {
	Name    string        `json:"name"`
	Samples []PowerSample `json:"samples"`
}

// add goes on with other watts from a time on. A nil trace keeps nothing.
func (t *PowerTrace) add(at time.Duration, watts float64) {
	if t == nil {
		return
	}
	if n := len(t.Samples); n == 0 || t.Samples[n-1].Watts != watts {
		t.Samples = append(t.Samples, PowerSample{at, watts})
	}
}

// Traces is the power of each consumer over the run: the host, the devices and
// the links in the order of the platform. It fails where FromSchedule does.
func Traces(s *schedule.Schedule, prob *schedule.Problem) ([]PowerTrace, error) {
	a, err := newAccount(s, prob, true)
	if err != nil {
		return nil, err
	}
	return a.traces, nil
}

// account is the energy of one schedule, before it is grouped.
type account struct {
	s *schedule.Schedule
	p *schedule.Problem

	traced    bool         // else there are no traces
	traces    []PowerTrace // host, devices, links
	spanJ     []float64    // by span: joules of running it
	spanCallJ []float64    // by span: joules given for the call; zero means none
	transferJ []float64    // by transfer: joules of its links above idle
	devices   []Entry      // with the joules of waiting units
	links     []Entry
	hostJ     float64
}

// newAccount checks the parts of the schedule that it needs and integrates all consumers.
func newAccount(s *schedule.Schedule, p *schedule.Problem, traced bool) (*account, error) {
	if err := audit.Fits(s, p); err != nil {
		return nil, fmt.Errorf("energy of a schedule: %w", err)
	}
	pl := p.Platform
	a := &account{s: s, p: p, traced: traced,
		spanJ: make([]float64, len(s.Spans)), spanCallJ: make([]float64, len(s.Spans)),
		transferJ: make([]float64, len(s.Transfers)), devices: []Entry{}, links: []Entry{}}
	a.hostJ = float64(pl.HostWatts().Value * s.Makespan.Seconds())
	host := a.trace("host")
	if s.Makespan > 0 {
		host.add(0, pl.HostWatts().Value)
	}
	if err := a.findCallJoules(); err != nil {
		return nil, err
	}
	a.integrateDevices()
	return a, a.integrateLinks()
}

// trace begins the trace of the next consumer. It holds until the one after that begins.
func (a *account) trace(name string) *PowerTrace {
	if !a.traced {
		return nil
	}
	a.traces = append(a.traces, PowerTrace{Name: name})
	return &a.traces[len(a.traces)-1]
}

// findCallJoules looks up the joules that models or the graph give for each call.
func (a *account) findCallJoules() error {
	if a.p.Costs == nil {
		return nil
	}
	for i := range a.s.Spans {
		v := &a.s.Spans[i]
		cost, ok := a.p.Costs.Of(v.Task, a.p.Platform.Workers[v.Worker].Device)
		if !ok || cost.Joules == 0 {
			continue
		}
		if v.End == v.Start {
			return fmt.Errorf("energy of a schedule: task %q takes %g J in no time; give it a duration", a.p.Graph.Tasks[v.Task].Name, cost.Joules)
		}
		a.spanCallJ[i] = cost.Joules
	}
	return nil
}

func (a *account) integrateDevices() {
	pl := a.p.Platform
	spans := make([][]int32, len(pl.Devices))
	for i := range a.s.Spans {
		d := pl.Workers[a.s.Spans[i].Worker].Device
		spans[d] = append(spans[d], int32(i))
	}
	for d := range pl.Devices {
		a.integrateDevice(platform.DeviceID(d), spans[d])
	}
}

// piece is a device between two moments at which anything begins or ends there.
type piece struct {
	d        *platform.Device
	calls    []calling
	units    []unitNow // nil means nothing ever changes
	states   []int32   // stretches that hold
	running  []int     // calls on each unit
	modelled []int     // without joules of their own
	used     []int32   // the units with calls

	busy, modelledBusy int // units
}

// calling is a span of the device: its unit, the watts of joules of its own if it has any, and its joules so far.
type calling struct {
	unit   int32
	own    bool
	watts  float64
	joules float64
}

// integrateDevice adds up one device over its spans.
func (a *account) integrateDevice(id platform.DeviceID, spans []int32) {
	d := &a.p.Platform.Devices[id]
	if a.isOff(id, spans) {
		a.turnOff(d)
		return
	}
	stretches := a.stretchesOf(func(c *schedule.Change) bool { return c.Device == id })
	p := piece{d: d, calls: make([]calling, len(spans)), running: make([]int, d.Count), modelled: make([]int, d.Count)}
	in := make([]interval, len(spans), len(spans)+len(stretches))
	for k, i := range spans {
		v := &a.s.Spans[i]
		in[k] = interval{v.Start, v.End}
		p.calls[k].unit = int32(a.p.Platform.Workers[v.Worker].Index)
		if joules := a.spanCallJ[i]; joules != 0 {
			p.calls[k].own, p.calls[k].watts = true, joules/(v.End-v.Start).Seconds()
		}
	}
	for _, s := range stretches {
		in = append(in, s.interval)
	}
	if len(stretches) > 0 {
		p.units = make([]unitNow, d.Count)
	}
	a.devices = append(a.devices, newEntry(d.Name, d.PowerSource))
	trace := a.trace(d.Name)
	sweep(in, a.s.Makespan, func(from, to time.Duration, active []int32) {
		callWatts := p.begin(active)
		unitsNow(d, p.units, stretches, p.states)
		secs := (to - from).Seconds()
		p.addCalls(active, secs)
		trace.add(from, p.rest(&a.devices[id], secs)+callWatts)
	})
	for k, i := range spans {
		a.spanJ[i] = p.calls[k].joules
	}
}

// begin takes the calls and stretches of the piece. It returns the watts of calls with joules of their own.
func (p *piece) begin(active []int32) (callWatts float64) {
	for _, u := range p.used {
		p.running[u], p.modelled[u] = 0, 0
	}
	p.busy, p.modelledBusy, p.states, p.used = 0, 0, p.states[:0], p.used[:0]
	for _, k := range active {
		if int(k) >= len(p.calls) {
			p.states = append(p.states, k-int32(len(p.calls)))
			continue
		}
		call := &p.calls[k]
		u := call.unit
		if p.running[u]++; p.running[u] == 1 {
			p.busy++
			p.used = append(p.used, u)
		}
		if call.own {
			callWatts += call.watts
		} else if p.modelled[u]++; p.modelled[u] == 1 {
			p.modelledBusy++
		}
	}
	return callWatts
}

// addCalls adds the joules of calls.
func (p *piece) addCalls(active []int32, secs float64) {
	idle, above := p.d.ClockInForce().Idle, 0.0 // of a unit that runs a modelled call
	if p.units == nil {
		above = p.d.WattsAboveIdle(p.d.AtClock, p.modelledBusy)
	}
	for _, k := range active {
		if int(k) >= len(p.calls) {
			continue
		}
		call := &p.calls[k]
		u := call.unit
		if p.units != nil {
			clock := p.units[u].clock
			idle, above = p.d.ClockAt(clock).Idle, p.d.WattsAboveIdle(clock, p.modelledBusy)
		}
		watts := idle / float64(p.running[u])
		if call.own {
			watts += call.watts
		} else {
			watts += above / float64(p.modelled[u])
		}
		call.joules += float64(watts * secs)
	}
}

// rest adds the joules of units that run nothing to an entry. It returns the watts of the device,
// without calls that have joules of their own.
func (p *piece) rest(e *Entry, secs float64) (watts float64) {
	if p.units == nil {
		e.IdleJoules += float64(float64(float64(p.d.Count-p.busy)*p.d.ClockInForce().Idle) * secs)
		return p.d.Watts(p.d.AtClock, p.modelledBusy)
	}
	for u := range p.units {
		now := &p.units[u]
		idle := p.d.ClockAt(now.clock).Idle
		switch {
		case p.modelled[u] > 0:
			watts += idle + p.d.WattsAboveIdle(now.clock, p.modelledBusy)
		case p.running[u] > 0:
			watts += idle
		case now.sleep > 0:
			asleep := p.d.Sleeps[now.sleep-1].Watts
			e.SleepJoules += float64(asleep * secs)
			watts += asleep
		default:
			e.IdleJoules += float64(idle * secs)
			watts += idle
		}
		e.SwitchingJoules += float64(now.changing * secs)
		watts += now.changing
	}
	return watts
}
