package calibrate

import (
	"cmp"
	"fmt"
	"math"
	"time"

	"dahl/energy/meter"
	"dahl/execute/hardware"
	"dahl/kernels/calls"
	"dahl/platform"
	"dahl/stats"
)

// Devices with memories of their own are calibrated through their drivers, so that an emulated
// device and a GPU are measured alike. The measurements are: every variant by itself, timed by
// the device; the gaps between launches; copies by size, direction and concurrency; the bandwidth
// of the memory; the speed of the largest product; and, separately, the cost of first use.
//
// An emulated device is defined by its platform file. Its speed, the bandwidth of its memory and
// its links stay, and their measurements are only reported. Its models, launches and hand-off are
// predictions, so they are replaced.

// Device is the result for a device, apart from its models.
type Device struct {
	Device        string
	Name          string // as its driver names it
	CapacityBytes int64  // as its driver reports it; zero means not limited
	FreeBytes     int64  // before anything was reserved
	FirstUse      platform.FirstUse
	Launches      Launches
	Copies        Copies
	BytesPerSec   float64            // of its memory, from adding one array to another
	FlopsPerSec   map[string]float64 // by type, of the largest product
	// Crowded is how much longer a copy into the device takes while other devices copy too. Zero means
	// that there are no others.
	Crowded float64
	// LinksKept says that the numbers of its route stay. The links of an emulated device define
	// it. On a route of several links nobody can tell how slow each one is.
	LinksKept bool
	Energy    *meter.CallEnergy // of the product; nil without a meter
}

// measureDevices measures the devices that have memories of their own, one after the other, and
// finally their copies at the same time.
func (c *calibrator) measureDevices(ids []platform.DeviceID, specs []*calls.Spec) (err error) {
	open := hardware.Drivers(c.platform, 1)
	begin := time.Now()
	now := func() time.Duration { return time.Since(begin) }
	byMemory := map[platform.MemoryID]*station{}
	var stations []*station
	defer func() {
		for _, s := range stations {
			err = cmp.Or(err, s.Close())
		}
	}()
	for _, id := range ids {
		dev := &c.platform.Devices[id]
		s := byMemory[dev.Memory]
		if s == nil {
			if s, err = openStation(c.ctx, c.platform, id, now, open); err != nil {
				return err
			}
			byMemory[dev.Memory], stations = s, append(stations, s)
		}
		if err := c.measureDevice(s, id, specs); err != nil {
			return fmt.Errorf("device %q: %w", dev.Name, err)
		}
	}
	return c.measureCrowded(stations)
}

// measureDevice measures a device at an open station.
func (c *calibrator) measureDevice(s *station, id platform.DeviceID, specs []*calls.Spec) error {
	dev := &c.platform.Devices[id]
	known := c.knows(dev)
	s.id = id
	if !known {
		if err := c.measureStation(s, dev); err != nil {
			return err
		}
	}
	before := s.firstUse.Kernels
	s.loaded = loadedBefore(c.platform.Models, dev.Name, c.opt.Resume)
	points := pointsOf(specs, c.opt.Variants, dev.Code(), s.Properties.Capability)
	err := c.measurePoints(dev, points, func(pt *point, active int, budget time.Duration) (m platform.Model, err error) {
		err = s.Do(func() error {
			m, err = c.measureOn(s, dev, pt, active, budget)
			return err
		})
		return m, err
	})
	if err != nil {
		return err
	}
	if known { // the other kernels were measured before
		dev.FirstUse.Kernels += s.firstUse.Kernels - before
	} else {
		dev.FirstUse = s.firstUse
		c.result.Devices[len(c.result.Devices)-1].FirstUse = s.firstUse
	}
	if err := c.measureEnergy(s, dev, points); err != nil {
		return err
	}
	return c.save()
}

// loadedBefore names the kernels of a device with measured models: the platform has their first use. It
// is empty unless these models are kept.
func loadedBefore(models []platform.Model, device string, kept bool) map[kernelName]bool {
	loaded := map[kernelName]bool{}
	for i := range models {
		if m := &models[i]; kept && m.Device == device && m.Count > 0 {
			loaded[nameOf(m)] = true
		}
	}
	return loaded
}

// measureOn measures one call while a number of units are busy with it.
func (c *calibrator) measureOn(s *station, dev *platform.Device, pt *point, active int, budget time.Duration) (platform.Model, error) {
	calls, err := s.newBench(pt, active)
	if err != nil {
		return platform.Model{}, err
	}
	m, err := c.steadiest(pt, dev, active, func() ([][]time.Duration, error) { return s.measureCalls(calls, budget, drawnSets) })
	if err != nil || pt.spec.Bytes() > dev.L2Bytes {
		return m, err
	}
	warm, err := s.measureCalls(calls, time.Duration(asideShare*float64(budget)), 1)
	if err == nil {
		m.WarmNs = float64(max(1, stats.Median(warm[0])))
	}
	return m, err
}

// measureStation measures everything that belongs to no kernel of a network.
func (c *calibrator) measureStation(s *station, dev *platform.Device) error {
	d := Device{Device: dev.Name, Name: s.Properties.Name, CapacityBytes: s.Properties.CapacityBytes, FreeBytes: s.Properties.FreeBytes}
	c.progress(0, 1, dev.Name+" launches, copies and memory")
	err := s.Do(func() (err error) {
		if d.Launches, err = s.measureLaunches(); err != nil {
			return err
		}
		if d.Copies, err = s.measureCopies(); err != nil {
			return err
		}
		if d.BytesPerSec, err = s.measureMemory(); err != nil {
			return err
		}
		d.FlopsPerSec, err = s.measureSpeed()
		return err
	})
	if err != nil {
		return err
	}
	toDevice, toHost, err := c.measureHandoff(s.id)
	if err != nil {
		return fmt.Errorf("measure the hand-off: %w", err)
	}
	d.Launches.ToDevice, d.Launches.ToHost = toDevice, toHost
	d.LinksKept = !putDevice(c.platform, s.id, &d)
	c.result.Devices = append(c.result.Devices, d)
	return nil
}

func (c *calibrator) progress(done, total int, what string) {
	if c.opt.Progress != nil {
		c.opt.Progress(done, total, what)
	}
}

// putDevice writes the results for a device into a platform. It reports whether the links were replaced.
func putDevice(p *platform.Platform, id platform.DeviceID, d *Device) (links bool) {
	dev := &p.Devices[id]
	dev.Dispatch = d.Launches.Gap
	dev.Handoff = max(0, d.Launches.ToDevice-dev.Dispatch)
	dev.HandoffToCPU = max(0, d.Launches.ToHost-coresOf(p).Dispatch)
	if dev.IsEmulated() {
		return false
	}
	dev.FlopsPerSec = d.FlopsPerSec
	m := &p.Memories[dev.Memory]
	m.BandwidthBytesPerSec = d.BytesPerSec
	if m.CapacityBytes == 0 || m.CapacityBytes > d.CapacityBytes {
		m.CapacityBytes = d.CapacityBytes
	}
	route, ok := p.Route(p.HostMemory(), dev.Memory)
	if !ok || len(route) != 1 || math.IsInf(d.Copies.Fit.BytesPerSec, 1) {
		return false
	}
	l := &p.Links[route[0]]
	l.Latency, l.BandwidthBytesPerSec, l.Sharing = d.Copies.Fit.Latency, d.Copies.Fit.BytesPerSec, d.Copies.Sharing()
	return true
}
