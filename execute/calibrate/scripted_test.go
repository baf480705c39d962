package calibrate

import (
	"context"
	"testing"
	"time"

	"dahl/execute/driver"
	"dahl/must"
	"dahl/platform"
)

// scripted is a driver whose time is made up, so that what is measured with it can be
// derived. The host's clock advances by a fixed cost for every call, and to the end of what
// it asks about: whoever asks whether an event is done has waited for it. A stream does
// one operation after the other. Nothing is computed or moved.
type scripted struct {
	capacity int64
	script

	clock    time.Duration   // of the host
	streams  []time.Duration // when the last operation of each ends
	events   []time.Duration
	launched map[driver.LaunchID]bool
	binds    int
	engine   [2]time.Duration // when the last copy out and in ends
	fills    int
}

// script is how long everything takes.
type script struct {
	call        time.Duration // of the host, for every call of the driver
	open        time.Duration // of the host
	module      time.Duration // of the host, at the first bind
	see         time.Duration // from an end on the device until the host, which waits, knows
	event       time.Duration // a mark on a stream
	cross       time.Duration // for a stream that waits for another one to go on
	kernel      time.Duration
	firstLaunch time.Duration // of each launch, beyond later ones
	latency     time.Duration // of a copy
	inNs, outNs float64       // by byte
	rowNs       float64       // by row beyond the first
	fillNs      float64       // by byte
	touchNs     float64       // beyond that, at first
	disturbedNs float64       // beyond that, at the second time
	shared      bool          // a copy waits for those in the other direction too
}

// put issues something that takes a time on a stream, after some moment, and returns when
// it ends.
func (d *scripted) put(s driver.StreamID, after, takes time.Duration) time.Duration {
	d.clock += d.call
	d.streams[s] = max(d.clock, d.streams[s], after) + takes
	return d.streams[s]
}

func perByte(ns float64, bytes int64) time.Duration { return time.Duration(ns * float64(bytes)) }

func (d *scripted) Properties() driver.Properties {
	return driver.Properties{Name: "scripted", CapacityBytes: d.capacity, FreeBytes: d.capacity}
}

func (d *scripted) Reserve(bytes int64) (driver.Address, error) {
	d.clock += d.call
	return 1 << 20, nil
}

func (d *scripted) Pin([]byte) error {
	d.clock += d.call
	return nil
}

func (d *scripted) NewStream(bool) (driver.StreamID, error) {
	d.streams = append(d.streams, 0)
	return driver.StreamID(len(d.streams) - 1), nil
}

func (d *scripted) NewEvent() (driver.EventID, error) {
	d.events = append(d.events, 0)
	return driver.EventID(len(d.events) - 1), nil
}

func (d *scripted) Bind(*driver.Call) (driver.LaunchID, error) {
	d.clock += d.call
	if d.binds++; d.binds == 1 {
		d.clock += d.module
	}
	return driver.LaunchID(d.binds), nil
}

func (d *scripted) Launch(s driver.StreamID, l driver.LaunchID) error {
	takes := d.kernel
	if !d.launched[l] {
		takes += d.firstLaunch
		d.launched[l] = true
	}
	d.put(s, 0, takes)
	return nil
}

func (d *scripted) Copy(s driver.StreamID, c *driver.Copy) error {
	ns, in := d.outNs, 0
	if c.To.Host == nil {
		ns, in = d.inNs, 1
	}
	after := d.engine[in]
	if d.shared {
		after = max(after, d.engine[1-in])
	}
	d.engine[in] = d.put(s, after, d.latency+perByte(ns, c.Rows*c.RowBytes)+perByte(d.rowNs, c.Rows-1))
	return nil
}

func (d *scripted) Fill(s driver.StreamID, _ driver.Address, bytes int64, _ byte) error {
	takes := perByte(d.fillNs, bytes)
	switch d.fills++; d.fills {
	case 1:
		takes += perByte(d.touchNs, bytes)
	case 2:
		takes += perByte(d.disturbedNs, bytes)
	}
	d.put(s, 0, takes)
	return nil
}

func (d *scripted) Record(s driver.StreamID, e driver.EventID) error {
	d.events[e] = d.put(s, 0, 0)
	d.streams[s] += d.event
	return nil
}

func (d *scripted) Wait(s driver.StreamID, e driver.EventID) error {
	d.put(s, d.events[e]+d.cross, 0)
	return nil
}

func (d *scripted) Done(e driver.EventID) (bool, error) {
	d.clock += d.call
	if d.events[e] > d.clock {
		d.clock = d.events[e] + d.see
	}
	return true, nil
}

func (d *scripted) Elapsed(from, to driver.EventID) (time.Duration, error) {
	return d.events[to] - d.events[from], nil
}

func (d *scripted) Close() error { return nil }

// exampleScript has a device that is slow enough for the host to keep it busy.
var exampleScript = script{call: 10, open: 3 * time.Millisecond, module: 400_000, see: 3000, event: 700, cross: 2000,
	kernel: 5003, firstLaunch: 70_001, latency: 9001, inNs: 0.25, outNs: 0.5, rowNs: 100, fillNs: 0.125, touchNs: 0.5, disturbedNs: 2}

// scriptedStation opens a scripted device as the first GPU of a node.
func scriptedStation(t *testing.T, s script) *station {
	t.Helper()
	d := &scripted{capacity: 16_000_000, script: s, launched: map[driver.LaunchID]bool{}}
	open := func(*platform.Device, func()) (driver.Driver, error) {
		d.clock += d.open
		return d, nil
	}
	st := must.Get(openStation(context.Background(), node(t, 1, 1), 1, func() time.Duration { return d.clock }, open))(t)
	t.Cleanup(func() {
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	})
	return st
}
