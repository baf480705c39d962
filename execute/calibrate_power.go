package execute

import (
	"fmt"
	"slices"
	"time"

	"dahl/dag"
	"dahl/platform"
)

// The meter of processors counts the packages of all of them together, with what they draw idle.
// So the idle watts are divided among all cores of the platform. What is drawn above them while
// cores of one processor run a product is that processor's.

// PowerRepeats is how often each power of a processor is measured. The median counts.
const PowerRepeats = 3

// PowerCalibration is the power of a processor, all of its cores together.
type PowerCalibration struct {
	Device             string
	IdleWatts          float64
	OneWatts, AllWatts float64 // with one core busy with a matrix product, and with all
	Spread             float64 // of the repeats: largest minus smallest over the median, the widest of the three
	Disturbed          bool    // other processes used the cores meanwhile
	Meter              string
}

// measurePower measures the power of a processor, idle and busy. Without a meter it does nothing.
// Neither does it where some cores are left out, since the meter counts those, too, nor where
// calibration goes on and the power has been measured.
func (c *calibrator) measurePower() error {
	d := c.cpu
	cores := 0 // of all processors
	for i := range c.platform.Devices {
		o := &c.platform.Devices[i]
		if !o.IsProcessor() {
			continue
		}
		if o.Whole != 0 {
			return nil
		}
		cores += o.Count
	}
	if c.opt.Energy == nil || c.cores != d.Count || c.opt.Resume && d.PowerSource == platform.Measured {
		return nil
	}
	var idle, one, all []float64 // watts of the meter; the busy ones above idle
	p := PowerCalibration{Device: d.Name}
	measure := func(active, repeat int) (above float64, ok bool, err error) {
		c.progress(repeat, PowerRepeats, fmt.Sprintf("%s watts, busy cores: %d", d.Name, active))
		load := StartLoad()
		e, ok, err := c.opt.Energy(c.ctx, d.Name, products(active))
		p.Meter, p.Disturbed = e.Meter, p.Disturbed || load.Load().Disturbed(0)
		idle = append(idle, e.IdleWatts)
		return e.Watts - e.IdleWatts, ok && err == nil, err
	}
	for repeat := range PowerRepeats {
		above, ok, err := measure(1, repeat)
		if !ok {
			return err
		}
		one = append(one, above)
		if d.Count > 1 {
			if above, ok, err = measure(d.Count, repeat); !ok {
				return err
			}
		}
		all = append(all, above)
	}
	c.putProcessorPower(p, idle, one, all, cores)
	return c.save()
}

// putProcessorPower makes the medians the power of the processor. A meter that shows less when
// busy than idle shows something else: the power stays.
func (c *calibrator) putProcessorPower(p PowerCalibration, idle, one, all []float64, cores int) {
	d, perCore := c.cpu, median(idle)/float64(cores)
	if perCore < 0 || median(one) < 0 || median(all) < 0 {
		return
	}
	p.IdleWatts = float64(perCore * float64(d.Count))
	p.OneWatts, p.AllWatts = p.IdleWatts+median(one), p.IdleWatts+median(all)
	p.Spread = max(spreadOf(idle, 0), spreadOf(one, median(idle)), spreadOf(all, median(idle)))
	busy := platform.BusyPower{UnitWatts: p.OneWatts}
	if d.Count > 1 {
		busy = platform.BusyPower{FirstWatts: p.OneWatts, AllWatts: p.AllWatts, WholeDevice: true}
	}
	setPower(d, perCore, busy, p.Meter, p.Spread)
	c.result.Powers = append(c.result.Powers, p)
}

// spreadOf is the range of some powers, relative to the median power with the base added.
func spreadOf(watts []float64, base float64) float64 {
	middle := base + median(watts)
	if middle <= 0 {
		return 0
	}
	return (slices.Max(watts) - slices.Min(watts)) / middle
}

// products runs a matrix product on some cores again and again, for about energyBatch at a time.
func products(active int) func() (int, error) {
	k, _ := operation("dense")
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
