package calibrate

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"dahl/dag"
	"dahl/execute"
	"dahl/execute/driver"
	"dahl/kernels"
	"dahl/kernels/calls"
	"dahl/platform"
	"dahl/stats"
)

const (
	chainLaunches = 500
	hops          = 100
	roundTrips    = 100
	handoffTasks  = 200
	handoffSteps  = 5
)

// Launches are the times of a device around its kernels.
type Launches struct {
	Tiny  time.Duration // of the smallest kernel, between two events
	Chain time.Duration // from one kernel to the next on a stream, with nothing between
	Gap   time.Duration // from an end to the next start, with an event around each kernel
	// Hop is the time from the end of a kernel to the start of a copy on another stream that
	// waits for it, or the other way round.
	Hop time.Duration
	// RoundTrip is how long the host takes to launch a tiny kernel on an idle device and to see
	// its end. ToDevice and ToHost are hand-offs in the executor: from the end of a task on a
	// core to the start of the task on the device that waits for it, and back.
	RoundTrip, ToDevice, ToHost time.Duration
}

var errNoClock = errors.New("a copy took no time: the device's clock stands still")

// measureLaunches measures chains of tiny kernels.
func (s *station) measureLaunches() (c Launches, err error) {
	call, err := s.elementwise(1) // the smallest kernel
	if err != nil {
		return c, err
	}
	launch, err := s.Driver.Bind(call)
	if err != nil {
		return c, err
	}
	stream := s.compute[0]
	run := func(int) error { return s.Driver.Launch(stream, launch) }
	t := &track{stream: stream, issue: run, noteGaps: true}
	if err := s.repeat(s.within(time.Hour, chainLaunches, chainLaunches), t); err != nil {
		return c, err
	}
	c.Tiny, c.Gap = stats.Median(t.times), max(0, summarise(t.gaps).mean)
	chain, err := s.span(func() error {
		for i := range chainLaunches {
			if err := run(i); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return c, err
	}
	c.Chain = chain / chainLaunches
	if c.Hop, err = s.measureHop(run, c.Tiny); err != nil {
		return c, err
	}
	c.RoundTrip, err = s.measureRoundTrip(run)
	return c, err
}

// elementwise is the call "dst += src" of n elements at the start of the arena.
func (s *station) elementwise(n int) (*driver.Call, error) {
	k, _ := kernels.KernelByName("add")
	spec := &calls.Spec{Op: k.Op, Type: dag.Float32, Operands: []calls.OperandSpec{
		{Type: dag.Float32, Mode: dag.ReadWrite, Shape: []int{n}}, {Type: dag.Float32, Mode: dag.Read, Shape: []int{n}}}}
	return s.standardCall(k, spec)
}

// standardCall binds zeroed operands, one behind the other in the arena, to the kernel's default
// variant for the device.
func (s *station) standardCall(k *kernels.Kernel, spec *calls.Spec) (*driver.Call, error) {
	v := k.DefaultFor(s.platform.Devices[s.id].Code())
	if v == nil {
		return nil, fmt.Errorf("%s has no variant for devices of kind %q", k.Op, s.platform.Devices[s.id].Kind)
	}
	s.used = 0
	return s.newCall(v, spec, nil)
}

// span is how long the device takes for work that issue puts on the first stream of launches.
func (s *station) span(issue func() error) (time.Duration, error) {
	m, err := s.marksOf(spanTrack)
	if err != nil {
		return 0, err
	}
	from, to := m.starts[0], m.ends[0]
	if err := cmp.Or(s.Driver.Record(s.compute[0], from), issue(), s.Driver.Record(s.compute[0], to), s.Await(to)); err != nil {
		return 0, err
	}
	return s.Driver.Elapsed(from, to)
}

// spanTrack has the events of a span. Operations inside the span use other events.
const spanTrack = 1

// measureHop times a chain of kernels and copies of four bytes in turn. Each waits for the
// previous one on the other stream.
func (s *station) measureHop(run func(int) error, tiny time.Duration) (time.Duration, error) {
	copyTime, err := s.medianOf(s.copyIn(leastCopyBytes))
	if err != nil {
		return 0, err
	}
	m, err := s.marksOf(0)
	if err != nil {
		return 0, err
	}
	c := s.copyIn(leastCopyBytes)
	took, err := s.span(func() error {
		for i := range hops {
			slot := i % trackDepth
			err := cmp.Or(
				run(i), s.Driver.Record(s.compute[0], m.ends[slot]), s.Driver.Wait(s.in, m.ends[slot]),
				c.issue(i), s.Driver.Record(s.in, m.starts[slot]), s.Driver.Wait(s.compute[0], m.starts[slot]))
			if err != nil {
				return err
			}
		}
		return nil
	})
	return max(0, (took/hops-tiny-copyTime)/2), err
}

// measureRoundTrip times a launch on an idle device until the host sees its end.
func (s *station) measureRoundTrip(run func(int) error) (time.Duration, error) {
	var times []time.Duration
	for i := range roundTrips {
		begin := s.now()
		if err := cmp.Or(run(i), s.Finish(s.compute[0])); err != nil {
			return 0, err
		}
		times = append(times, s.now()-begin)
	}
	return stats.Median(times), s.ctx.Err()
}

// measureHandoff runs a chain through the executor that alternates between a core and the device.
// It takes the gaps from an end to the next start in both directions.
func (c *calibrator) measureHandoff(id platform.DeviceID) (toDevice, toHost time.Duration, err error) {
	p, err := pairOf(c.platform, id)
	if err != nil {
		return 0, 0, err
	}
	gaps, _, err := execute.ChainGaps(c.ctx, p, nil, handoffTasks, handoffSteps)
	if err != nil {
		return 0, 0, err
	}
	return stats.Median(gaps[1]), stats.Median(gaps[0]), nil
}

// pairOf is a platform of one core and one unit of a device, in this order, at one clock. Powers, caps
// and sleep are left out, since they are given for all units together.
func pairOf(p *platform.Platform, id platform.DeviceID) (*platform.Platform, error) {
	q := copyOf(p)
	q.Devices, q.Models, q.CapWatts = []platform.Device{*coresOf(q), p.Devices[id]}, nil, 0
	for i := range q.Devices {
		d := &q.Devices[i]
		d.Count, d.PlacedOnly = 1, false
		d.IdleWatts, d.Busy, d.PowerSource, d.CapWatts, d.MayBeOff, d.OffWatts = 0, platform.BusyPower{}, "", 0, false, 0
		d.Clocks, d.AtClock, d.UnitClocks, d.Switch, d.Sleeps = nil, 0, false, platform.Transition{}, nil
	}
	return q, q.Complete()
}

// coresOf is the first processor at the host's memory. Nil means that there is none, and nothing is executed.
func coresOf(p *platform.Platform) *platform.Device {
	for i := range p.Devices {
		if d := &p.Devices[i]; d.IsProcessor() && d.Memory == p.HostMemory() {
			return d
		}
	}
	return nil
}
