//go:build cuda

package cuda

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"dahl/execute/driver"
	"dahl/kernels/calls"
	"dahl/platform"
)

// gpuDriver is a GPU through the CUDA driver API.
type gpuDriver struct {
	device *Device
	about  driver.Properties

	libraries []string // by index: libraries to which calls are bound
	streams   []gpuStream
	events    []Event
	calls     []gpuCall
	graphs    []Graph

	// undo gives back, last first, what the driver made.
	undo []func() error
}

type gpuStream struct {
	Stream
	copies  bool
	handles []LibraryHandle // by library; none if the stream copies
}

// gpuCall is a prepared kernel call: a library's call, nil if there is none, between launches
// before and after it.
type gpuCall struct {
	before       Launches
	libraryIndex int
	library      LibraryCall
	after        Launches
}

// Backend opens CUDA devices.
var Backend = driver.Backend{On: func(p *platform.Platform, _ []int) driver.Opener {
	return func(dev *platform.Device, _ func()) (driver.Driver, error) { return openGPU(p, dev) }
}, GPUs: gpus, Library: libraryFile}

// openGPU opens a device of a platform, by its ordinal.
func openGPU(p *platform.Platform, dev *platform.Device) (driver.Driver, error) {
	index, m := dev.Ordinal, dev.Memory
	n, err := Count()
	if err != nil {
		return nil, err
	}
	if index >= n {
		return nil, fmt.Errorf("memory %q: there is no CUDA device %d, only %d", p.Memories[m].Name, index, n)
	}
	device, err := Open(index)
	if err != nil {
		return nil, fmt.Errorf("CUDA device %d: %w", index, err)
	}
	d := &gpuDriver{device: device}
	if err := errors.Join(d.describe(&p.Memories[m]), d.reachPeers(p, m)); err != nil {
		return nil, errors.Join(fmt.Errorf("CUDA device %d: %w", index, err), device.Close())
	}
	return d, nil
}

// reachPeers lets the device copy directly from and to other CUDA devices of the platform. It does so
// for each one with a route that does not pass the host.
func (d *gpuDriver) reachPeers(p *platform.Platform, m platform.MemoryID) error {
	for i := range p.Devices {
		other := &p.Devices[i]
		if other.Driver() != platform.CUDADriver || other.Memory == m || p.Passes(m, other.Memory, p.HostMemory()) {
			continue
		}
		if _, ok := p.Route(m, other.Memory); !ok {
			continue
		}
		if _, err := d.device.ReachPeer(other.Ordinal); err != nil {
			return err
		}
	}
	return nil
}

// describe asks the device for its properties. If the platform makes its memory smaller, that
// size counts.
func (d *gpuDriver) describe(m *platform.Memory) error {
	free, total, err := d.device.Memory()
	if err != nil {
		return err
	}
	if m.CapacityBytes > 0 && m.CapacityBytes < total {
		free, total = min(free, m.CapacityBytes), m.CapacityBytes
	}
	d.about = driver.Properties{Name: d.device.Name, CapacityBytes: total, FreeBytes: free, Capability: d.device.Capability}
	return nil
}

func (d *gpuDriver) Properties() driver.Properties { return d.about }

// fail adds the device to an error, and its kind.
func (d *gpuDriver) fail(err error) error {
	if err == nil {
		return nil
	}
	var e *Error
	switch is := errors.As(err, &e); {
	case is && e.Lost():
		err = fmt.Errorf("%w: %w", err, driver.ErrLost)
	case is && e.OutOfMemory():
		err = fmt.Errorf("%w: %w", err, driver.ErrMemory)
	}
	return fmt.Errorf("%s: %w", d.about.Name, err)
}

func (d *gpuDriver) Reserve(bytes int64) (driver.Address, error) {
	if bytes == 0 {
		return 0, nil
	}
	if bytes > d.about.FreeBytes {
		return 0, fmt.Errorf("%s: reserve %d bytes, of which %d are free: %w", d.about.Name, bytes, d.about.FreeBytes, driver.ErrMemory)
	}
	a, err := d.device.Alloc(bytes)
	if err != nil {
		return 0, d.fail(fmt.Errorf("reserve %d bytes: %w", bytes, err))
	}
	d.undo = append(d.undo, func() error { return d.device.Release(a) })
	d.about.FreeBytes -= bytes
	if a%driver.Align != 0 {
		panic("cuda: cuMemAlloc does not align as documented")
	}
	return a, d.fail(d.device.Zero(a, bytes))
}

func (d *gpuDriver) Pin(host []byte) error {
	if len(host) == 0 {
		return nil
	}
	own, err := Pin(host)
	if own {
		d.undo = append(d.undo, func() error { return Unpin(host) })
	}
	return d.fail(err)
}

func (d *gpuDriver) NewStream(copies bool) (driver.StreamID, error) {
	s, err := d.device.NewStream()
	if err != nil {
		return 0, d.fail(err)
	}
	d.streams, d.undo = append(d.streams, gpuStream{Stream: s, copies: copies}), append(d.undo, s.Destroy)
	return driver.StreamID(len(d.streams) - 1), nil
}

func (d *gpuDriver) NewEvent() (driver.EventID, error) {
	e, err := d.device.NewEvent()
	if err != nil {
		return 0, d.fail(err)
	}
	d.events, d.undo = append(d.events, e), append(d.undo, e.Destroy)
	return driver.EventID(len(d.events) - 1), nil
}

func (d *gpuDriver) Bind(c *driver.Call) (driver.LaunchID, error) {
	if c.Variant.Capability > d.about.Capability {
		return 0, fmt.Errorf("%s: variant %s of %s needs compute capability %d.%d", d.about.Name,
			c.Variant.Name, c.Spec.Op, c.Variant.Capability/10, c.Variant.Capability%10)
	}
	ready, err := d.prepare(c.Variant, c.Addressed())
	if err == nil && ready.library != nil {
		err = d.firstUse(&ready)
	}
	if err != nil {
		ready.free()
		return 0, d.fail(fmt.Errorf("variant %s of %s: %w", c.Variant.Name, c.Spec.Op, err))
	}
	d.calls, d.undo = append(d.calls, ready), append(d.undo, func() error { ready.free(); return nil })
	return driver.LaunchID(len(d.calls) - 1), nil
}

// prepare prepares a call. If it fails, the call holds whatever was made before.
func (d *gpuDriver) prepare(v *calls.Variant, call *calls.DeviceCall) (ready gpuCall, err error) {
	if ready.after, err = d.device.Prepare(v.Launches(call)); err != nil || v.Library == "" {
		return ready, err
	}
	if v.Before != nil {
		if ready.before, err = d.device.Prepare(v.Before(call)); err != nil {
			return ready, err
		}
	}
	ready.libraryIndex, ready.library, err = d.bindLibrary(v.Library, v.LibraryCall(call))
	return ready, err
}

// free gives the memory of a call back.
func (c *gpuCall) free() {
	if c.library != nil {
		c.library.Free()
	}
	c.before.Free()
	c.after.Free()
}

func (d *gpuDriver) Launch(s driver.StreamID, l driver.LaunchID) error {
	return d.fail(d.streams[s].launch(&d.calls[l]))
}

func (s *gpuStream) launch(call *gpuCall) error {
	if call.library != nil {
		if err := s.Launch(call.before); err != nil {
			return err
		}
		if err := s.handles[call.libraryIndex].Issue(call.library); err != nil {
			return err
		}
	}
	return s.Launch(call.after)
}

func (d *gpuDriver) Copy(s driver.StreamID, c *driver.Copy) error {
	return d.fail(d.streams[s].Copy(c.To, c.From, c.RowBytes, c.Rows))
}

// capture makes a CUDA graph of the calls that issue makes on the stream.
func (d *gpuDriver) Capture(s driver.StreamID, issue func() error) (driver.CaptureID, error) {
	g, err := d.streams[s].Capture(issue)
	if err != nil {
		return -1, d.fail(err)
	}
	d.graphs, d.undo = append(d.graphs, g), append(d.undo, g.Free)
	return driver.CaptureID(len(d.graphs) - 1), nil
}

func (d *gpuDriver) Replay(s driver.StreamID, c driver.CaptureID) error {
	return d.fail(d.streams[s].LaunchGraph(d.graphs[c]))
}

func (d *gpuDriver) Fill(s driver.StreamID, at driver.Address, bytes int64, value byte) error {
	return d.fail(d.streams[s].Fill(at, value, bytes))
}

func (d *gpuDriver) Record(s driver.StreamID, e driver.EventID) error {
	return d.fail(d.streams[s].Record(d.events[e]))
}

func (d *gpuDriver) Wait(s driver.StreamID, e driver.EventID) error {
	return d.fail(d.streams[s].Wait(d.events[e]))
}

func (d *gpuDriver) Done(e driver.EventID) (bool, error) {
	ok, err := d.events[e].Done()
	return ok, d.fail(err)
}

// elapsed is exact to half a microsecond for events up to 8 s apart, since CUDA gives
// milliseconds in a float32.
func (d *gpuDriver) Elapsed(from, to driver.EventID) (time.Duration, error) {
	ms, err := d.events[from].Milliseconds(d.events[to])
	return time.Duration(float64(ms) * float64(time.Millisecond)), d.fail(err)
}

// close gives back one by one what the driver made here, since the context may have other users.
// Objects that a lost device refuses to give back go with it.
func (d *gpuDriver) Close() error {
	err := d.device.Synchronize()
	for _, giveBack := range slices.Backward(d.undo) {
		err = errors.Join(err, giveBack())
	}
	err = errors.Join(err, d.device.Close())
	var e *Error
	if errors.As(err, &e) && e.Lost() {
		return nil // reported when it happened
	}
	return d.fail(err)
}
