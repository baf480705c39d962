package exchange

import (
	"encoding/xml"
	"slices"
	"strconv"
	"strings"

	"dahl/dag"
	"dahl/platform"
)

// host reads a host.
func (r *simgridReader) host(e xml.StartElement) error {
	speed := attribute(e, "speed")
	if speed == "" {
		speed = attribute(e, "power") // before version 4
	}
	h, err := r.newHost(attribute(e, "id"), speed, attribute(e, "core"))
	if err != nil {
		return err
	}
	if text := attribute(e, "pstate"); text != "" {
		at, err := strconv.Atoi(text)
		if err != nil || at < 0 || at >= len(h.device.Clocks) {
			return r.errorf(r.line, "host %q has the pstate %q; write 0 to %d", h.id, text, len(h.device.Clocks)-1)
		}
		h.device.AtClock = platform.ClockID(at)
	}
	r.profiles(e)
	if err := r.inside(func(e xml.StartElement) error { return r.property(&h, e) }); err != nil {
		return err
	}
	if h.device.Clocks[h.device.AtClock].Scale == 0 {
		return r.errorf(r.line, "host %q has the speed 0 in its pstate; write one in which it computes", h.id)
	}
	r.dropIdle(&h.device)
	r.hosts = append(r.hosts, h)
	return nil
}

// dropIdle leaves out states in which a host computes nothing, as while it boots.
func (r *simgridReader) dropIdle(d *platform.Device) {
	at := d.Clocks[d.AtClock].Name
	all := len(d.Clocks)
	d.Clocks = slices.DeleteFunc(d.Clocks, func(c platform.Clock) bool { return c.Scale == 0 })
	d.AtClock = platform.ClockID(slices.IndexFunc(d.Clocks, func(c platform.Clock) bool { return c.Name == at }))
	r.leave("states in which a host computes nothing", all-len(d.Clocks))
}

// newHost makes a host with a clock for each of its performance states.
func (r *simgridReader) newHost(id, speed, core string) (h simgridHost, err error) {
	h = simgridHost{id: id, device: platform.Device{Name: clean(id), Kind: platform.CPU, Count: 1}}
	if core != "" {
		if h.device.Count, err = strconv.Atoi(core); err != nil || h.device.Count < 1 {
			return h, r.errorf(r.line, "core is %q; write a number from 1 on", core)
		}
	}
	first := 0.0
	for i, text := range strings.Split(speed, ",") {
		v, err := r.quantity("the speed of host "+id, strings.TrimSpace(text), simgridSpeeds)
		if err == nil && v == 0 && i == 0 {
			err = r.errorf(r.line, "host %q has the speed 0", id)
		}
		if err != nil {
			return h, err
		}
		if i == 0 {
			first = v
		}
		h.device.Clocks = append(h.device.Clocks, platform.Clock{Name: "p" + strconv.Itoa(i), Scale: v / first})
	}
	h.device.FlopsPerSec = map[string]float64{dag.Float32.String(): first, dag.Float64.String(): first}
	return h, nil
}

// profiles counts files with a course over time.
func (r *simgridReader) profiles(e xml.StartElement) {
	for _, a := range e.Attr {
		if strings.HasSuffix(a.Name.Local, "_file") {
			r.leave("courses over time", 1)
		}
	}
}

// property reads what stands within a host.
func (r *simgridReader) property(h *simgridHost, e xml.StartElement) (err error) {
	value, d := attribute(e, "value"), &h.device
	switch id := attribute(e, "id"); {
	case e.Name.Local != "prop":
		r.leave(e.Name.Local+" elements of hosts", 1)
	case id == "wattage_per_state" || id == "watt_per_state":
		err = r.watts(d, value, id == "watt_per_state")
	case id == "wattage_off" || id == "watt_off":
		d.OffWatts, err = r.float(r.line, id, value)
		d.MayBeOff = err == nil
	case id == "memsize":
		h.bytes, err = r.number(r.line, id, value, 1)
	case id == "kind":
		if _, err := platform.KindByName(value); err == nil {
			d.Kind = value
		}
	default:
		r.leave("properties of hosts", 1)
	}
	if err != nil {
		return err
	}
	return r.skip()
}

// watts reads "idle:epsilon:all" for each state: the watts of the idle host, above no load, and with all cores at work. Without epsilon it is idle.
// The older property has the watts of one busy core in its place.
func (r *simgridReader) watts(d *platform.Device, value string, oneCore bool) error {
	states := strings.Split(value, ",")
	if len(states) != len(d.Clocks) {
		return r.errorf(r.line, "watts of %d states at a host with %d; write idle:epsilon:all for each", len(states), len(d.Clocks))
	}
	for i, state := range states {
		var w []float64
		for _, text := range strings.Split(state, ":") {
			v, err := r.float(r.line, "watts", strings.TrimSpace(text))
			if err != nil {
				return err
			}
			w = append(w, v)
		}
		if len(w) == 2 {
			w = []float64{w[0], w[0], w[1]}
		}
		if len(w) != 3 {
			return r.errorf(r.line, "the watts of a state are %q; write idle:epsilon:all", state)
		}
		idle, all, units := w[0], w[2], float64(d.Count)
		first := w[1] + (all-w[1])/units
		if oneCore {
			first = w[1]
		}
		c := &d.Clocks[i]
		if c.Idle, c.Busy = idle/units, (platform.BusyPower{UnitWatts: all}); d.Count > 1 {
			c.Busy = platform.BusyPower{FirstWatts: first, AllWatts: all, WholeDevice: true}
		}
	}
	d.PowerSource, d.IdleWatts, d.Busy = platform.Guess, d.Clocks[0].Idle, d.Clocks[0].Busy
	return nil
}
