package calibrate

import (
	"context"
	"fmt"
	"slices"
	"time"

	"dahl/dag"
	"dahl/execute/host"
	"dahl/kernels"
	"dahl/platform"
	"dahl/stats"
)

// The meter of processors counts the packages of all of them together, with what they draw idle.
// So the idle watts are divided among all cores of the platform. Cores of one processor run a product;
// the watts above idle meanwhile belong to that processor.

// PowerRepeats is how often each power of a processor is measured. The median counts.
const PowerRepeats = 3

// Power is the power of a processor, all of its cores together.
type Power struct {
	Device             string
	Clock              string // empty means the first
	IdleWatts          float64
	OneWatts, AllWatts float64 // with one core busy with a matrix product, and with all
	Spread             float64 // of the repeats: largest minus smallest over the median, the widest of the three
	Disturbed          bool    // other processes used the cores meanwhile
	Meter              string
}

// measurePower measures the power of a processor, idle and busy. Without a meter it does nothing,
// nor where calibration goes on and the power has been measured.
func (c *calibrator) measurePower() error {
	d, cores := c.cpu, c.meteredCores()
	if cores == 0 || c.opt.Energy == nil || c.opt.Resume && d.PowerSource == platform.Measured {
		return nil
	}
	s, ok, err := c.samplePower(d.Name)
	if !ok {
		return err
	}
	perCore := stats.Median(s.idle) / float64(cores)
	if p, busy, ok := s.power(d, perCore); ok {
		setPower(d, perCore, busy, p.Meter, p.Spread)
		c.result.Powers = append(c.result.Powers, p)
	}
	return c.save()
}

// Clocks measures the power of processors at their further clocks with a frequency, if their own power
// is measured. Set puts a device of the options' platform to one of its clocks, and all others to their
// own.
func Clocks(ctx context.Context, opt Options, set func(d platform.DeviceID, clock platform.ClockID) error) (*Result, error) {
	c := &calibrator{ctx: ctx, opt: opt, platform: copyOf(opt.Platform)}
	c.result.Platform = c.platform
	for id := range c.platform.Devices {
		d := &c.platform.Devices[id]
		c.cpu, c.cores = d, c.units(d)
		if !d.IsProcessor() || opt.Energy == nil || d.PowerSource != platform.Measured || c.meteredCores() == 0 {
			continue
		}
		d.Clocks = slices.Clone(d.Clocks)
		for k := 1; k < len(d.Clocks); k++ {
			if d.Clocks[k].FrequencyHz == 0 {
				continue
			}
			err := set(platform.DeviceID(id), platform.ClockID(k))
			if err == nil {
				err = c.measureClock(&d.Clocks[k])
			}
			if err != nil {
				return &c.result, fmt.Errorf("measure the power of %q at its clock %q: %w", d.Name, d.Clocks[k].Name, err)
			}
		}
	}
	return &c.result, nil
}

// measureClock measures the power at a clock to which the processor has been set. What other
// processors draw idle is not its.
func (c *calibrator) measureClock(clock *platform.Clock) error {
	d := c.cpu
	s, ok, err := c.samplePower(d.Name + " at " + clock.Name)
	if !ok {
		return err
	}
	others := 0.0
	for i := range c.platform.Devices {
		if o := &c.platform.Devices[i]; o != d && o.IsProcessor() {
			others += float64(o.IdleWatts * float64(o.Count))
		}
	}
	perCore := (stats.Median(s.idle) - others) / float64(d.Count)
	if p, busy, ok := s.power(d, perCore); ok {
		clock.Idle, clock.Busy, p.Clock = perCore, busy, clock.Name
		c.result.Powers = append(c.result.Powers, p)
	}
	return c.save()
}

// meteredCores is how many cores of all processors the meter counts. Zero means that some are left out,
// and would be counted, too.
func (c *calibrator) meteredCores() (cores int) {
	for i := range c.platform.Devices {
		o := &c.platform.Devices[i]
		if o.IsProcessor() && o.Whole != 0 {
			return 0
		}
		if o.IsProcessor() {
			cores += o.Count
		}
	}
	if c.cores != c.cpu.Count {
		return 0
	}
	return cores
}

// powerSamples are watts of the meter: idle, and above idle with one core busy and with all.
type powerSamples struct {
	idle, one, all []float64
	meter          string
	disturbed      bool
}

// samplePower repeats the measurement of the processor's power; ok is false without a meter.
func (c *calibrator) samplePower(what string) (s powerSamples, ok bool, err error) {
	d := c.cpu
	measure := func(active, repeat int) (above float64, ok bool, err error) {
		c.progress(repeat, PowerRepeats, fmt.Sprintf("%s watts, busy cores: %d", what, active))
		load := host.StartLoad()
		e, ok, err := c.opt.Energy(c.ctx, d.Name, products(active))
		s.meter, s.disturbed = e.Meter, s.disturbed || load.Load().Disturbed(0)
		s.idle = append(s.idle, e.IdleWatts)
		return e.Watts - e.IdleWatts, ok && err == nil, err
	}
	for repeat := range PowerRepeats {
		above, ok, err := measure(1, repeat)
		if !ok {
			return s, false, err
		}
		s.one = append(s.one, above)
		if d.Count > 1 {
			if above, ok, err = measure(d.Count, repeat); !ok {
				return s, false, err
			}
		}
		s.all = append(s.all, above)
	}
	return s, true, nil
}

// power makes the medians the power of a processor, whose cores draw so much idle. A meter that shows
// less when busy than idle shows something else; ok is false then.
func (s *powerSamples) power(d *platform.Device, perCore float64) (p Power, busy platform.BusyPower, ok bool) {
	if perCore < 0 || stats.Median(s.one) < 0 || stats.Median(s.all) < 0 {
		return p, busy, false
	}
	p = Power{Device: d.Name, Meter: s.meter, Disturbed: s.disturbed, IdleWatts: float64(perCore * float64(d.Count))}
	p.OneWatts, p.AllWatts = p.IdleWatts+stats.Median(s.one), p.IdleWatts+stats.Median(s.all)
	p.Spread = max(spreadOf(s.idle, 0), spreadOf(s.one, stats.Median(s.idle)), spreadOf(s.all, stats.Median(s.idle)))
	busy = platform.BusyPower{UnitWatts: p.OneWatts}
	if d.Count > 1 {
		busy = platform.BusyPower{FirstWatts: p.OneWatts, AllWatts: p.AllWatts, WholeDevice: true}
	}
	return p, busy, true
}

// spreadOf is the range of some powers, relative to the median power with the base added.
func spreadOf(watts []float64, base float64) float64 {
	middle := base + stats.Median(watts)
	if middle <= 0 {
		return 0
	}
	return (slices.Max(watts) - slices.Min(watts)) / middle
}

// products runs a matrix product on some cores again and again, for about energyBatch at a time.
func products(active int) func() (int, error) {
	k, _ := kernels.KernelByName("dense")
	spec := squareProduct(dag.Float32, speedExtent)
	benches, counts := make([]*bench, active), make([]int, active)
	return func() (int, error) {
		onCores(active,
			func(w int) {
				if benches[w] == nil {
					benches[w] = newBench(k.Default(), spec, nil, 0, 0)
				}
			},
			func(w int) {
				counts[w] = 0
				for begin := time.Now(); time.Since(begin) < energyBatch; counts[w]++ {
					benches[w].run(&benches[w].calls[0])
				}
			})
		n := 0
		for _, count := range counts {
			n += count
		}
		return n, nil
	}
}
