package calibrate

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"dahl/dag"
	"dahl/energy/meter"
	"dahl/execute/driver"
	"dahl/platform"
)

// Sensors are far slower than calls. So joules are measured by repeating a call for as long as
// the meter needs, once for each class of kernels: an operation, a variant and a type. The
// measured shape is the one that takes the longest. The other shapes of the class get the same
// power above idle, multiplied by their times.

// energyBatch is about how long a batch of calls lasts. The host decides after each batch whether
// to go on.
const energyBatch = 50 * time.Millisecond

// classesOf lists the longest call of each class of a device in which some variant is the fastest
// at some shape, sorted.
func classesOf(models []platform.Model, device string) []*platform.Model {
	fastest := map[platform.Model]*platform.Model{} // the key is a model with operation, type and shape only
	for i := range models {
		m := &models[i]
		if m.Device != device || m.Active != 1 || m.Count == 0 || m.Variant == "" {
			continue
		}
		call := platform.Model{Op: m.Op, Type: m.Type, Shape: m.Shape}
		if f := fastest[call]; f == nil || m.MedianNs < f.MedianNs {
			fastest[call] = m
		}
	}
	longest := map[kernelName]*platform.Model{}
	for _, m := range fastest {
		if l := longest[nameOf(m)]; l == nil || m.MedianNs > l.MedianNs || m.MedianNs == l.MedianNs && m.Shape < l.Shape {
			longest[nameOf(m)] = m
		}
	}
	return slices.SortedFunc(maps.Values(longest), compareCalls)
}

// measureEnergy measures the power of a device when idle, at a large product, and at each class
// of kernels. Without a meter it does nothing.
func (c *calibrator) measureEnergy(s *station, dev *platform.Device, points []point) error {
	if c.opt.Energy == nil {
		return nil
	}
	if s.speedExtent > 0 { // otherwise the device was known
		product, ok, err := c.energyOfProduct(s, dev)
		if err != nil || !ok {
			return err
		}
		c.result.Devices[len(c.result.Devices)-1].Energy = &product
		putPower(dev, &product)
	}
	classes := classesOf(c.platform.Models, dev.Name)
	for i, m := range classes {
		at := slices.IndexFunc(points, func(p point) bool { return nameOf(&p.model) == nameOf(m) && p.model.Shape == m.Shape })
		if at < 0 || m.Joules > 0 {
			continue
		}
		c.progress(i, len(classes), fmt.Sprintf("%s joules of %s %s", dev.Name, m.Op, m.Variant))
		e, ok, err := c.energyOf(s, dev, &points[at], m)
		if err != nil || !ok {
			return err
		}
		putJoules(c.platform.Models, m, e.Watts-e.IdleWatts)
	}
	return nil
}

// putPower makes the measurements the device's own power.
func putPower(dev *platform.Device, e *meter.CallEnergy) {
	if dev.Count != 1 || e.Watts < e.IdleWatts {
		return
	}
	setPower(dev, e.IdleWatts, platform.BusyPower{UnitWatts: e.Watts}, e.Meter, 0)
}

// setPower gives a device, and its clock in force, the measured watts.
func setPower(dev *platform.Device, idle float64, busy platform.BusyPower, by string, spread float64) {
	dev.IdleWatts, dev.Busy, dev.PowerSource, dev.PowerMeter, dev.PowerSpread = idle, busy, platform.Measured, by, spread
	if len(dev.Clocks) > 0 {
		dev.Clocks = slices.Clone(dev.Clocks)
		dev.Clocks[0].Idle, dev.Clocks[0].Busy = dev.IdleWatts, dev.Busy
	}
}

// putJoules gives all calls of the class of one the same power above idle.
func putJoules(models []platform.Model, one *platform.Model, watts float64) {
	for i := range models {
		if m := &models[i]; m.Device == one.Device && nameOf(m) == nameOf(one) {
			m.Joules = max(0, watts) * m.MedianNs / 1e9
		}
	}
}

// energyOf measures a call whose duration a model gives.
func (c *calibrator) energyOf(s *station, dev *platform.Device, pt *point, m *platform.Model) (e meter.CallEnergy, ok bool, err error) {
	var calls [][]driver.LaunchID
	err = s.Do(func() (err error) {
		calls, err = s.newBench(pt, 1)
		return err
	})
	if err != nil {
		return e, false, err
	}
	return c.opt.Energy(c.ctx, dev.Name, s.calls(calls[0], time.Duration(m.MedianNs)))
}

// energyOfProduct measures the largest product that gave the device's speed; ok is false without
// a meter.
func (c *calibrator) energyOfProduct(s *station, dev *platform.Device) (e meter.CallEnergy, ok bool, err error) {
	var l driver.LaunchID
	var takes time.Duration
	err = s.Do(func() error {
		call, _, err := s.product(dag.Float32, s.speedExtent)
		if err != nil {
			return err
		}
		if takes, err = s.bestOf(call, speedTime); err != nil {
			return err
		}
		l, err = s.Driver.Bind(call)
		return err
	})
	if err != nil {
		return e, false, err
	}
	return c.opt.Energy(c.ctx, dev.Name, s.calls([]driver.LaunchID{l}, takes))
}

// calls runs launches in turn for about energyBatch; takes is the time of each.
func (s *station) calls(launches []driver.LaunchID, takes time.Duration) func() (int, error) {
	n := int(min(maxRepeats, max(1, energyBatch/max(1, takes))))
	return func() (int, error) {
		return n, s.Do(func() error {
			for i := range n {
				if err := s.Driver.Launch(s.compute[0], launches[i%len(launches)]); err != nil {
					return err
				}
			}
			return s.Finish(s.compute[0])
		})
	}
}
