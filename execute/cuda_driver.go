//go:build cuda

package execute

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"dahl/execute/cuda"
	"dahl/kernels/calls"
	"dahl/platform"
)

// cudaDriver is a GPU through the CUDA driver API.
type cudaDriver struct {
	device *cuda.Device
	about  deviceProperties

	libraries []string // by index: libraries to which calls are bound
	streams   []cudaStream
	events    []cuda.Event
	calls     []cudaCall
	graphs    []cuda.Graph

	// undo gives back, last first, what the driver made.
	undo []func() error
}

type cudaStream struct {
	cuda.Stream
	copies  bool
	handles []cuda.LibraryHandle // by library; none if the stream copies
}

// cudaCall is a prepared kernel call: a library's call, nil if there is none, between launches
// before and after it.
type cudaCall struct {
	before  cuda.Launches
	of      int // index of the library
	library cuda.LibraryCall
	after   cuda.Launches
}

// cudaBackend is the driver of CUDA devices.
var cudaBackend = backend{open: oneUnit(openCUDA), gpus: cudaGPUs, library: cudaLibrary}

// openCUDA opens a CUDA device of a platform, by its ordinal.
func openCUDA(p *platform.Platform, dev *platform.Device) (driver, error) {
	index, m := dev.Ordinal, dev.Memory
	n, err := cuda.Count()
	if err != nil {
		return nil, err
	}
	if index >= n {
		return nil, fmt.Errorf("memory %q: there is no CUDA device %d, only %d", p.Memories[m].Name, index, n)
	}
	device, err := cuda.Open(index)
	if err != nil {
		return nil, fmt.Errorf("CUDA device %d: %w", index, err)
	}
	d := &cudaDriver{device: device}
	if err := errors.Join(d.describe(&p.Memories[m]), d.reachPeers(p, m)); err != nil {
		return nil, errors.Join(fmt.Errorf("CUDA device %d: %w", index, err), device.Close())
	}
	return d, nil
}

// reachPeers lets the device copy directly from and to other CUDA devices of the platform. It
// does so for each one to which a route leads that does not pass the host.
func (d *cudaDriver) reachPeers(p *platform.Platform, m platform.MemoryID) error {
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
func (d *cudaDriver) describe(m *platform.Memory) error {
	free, total, err := d.device.Memory()
	if err != nil {
		return err
	}
	if m.CapacityBytes > 0 && m.CapacityBytes < total {
		free, total = min(free, m.CapacityBytes), m.CapacityBytes
	}
	d.about = deviceProperties{Name: d.device.Name, CapacityBytes: total, FreeBytes: free, Capability: d.device.Capability}
	return nil
}

func (d *cudaDriver) properties() deviceProperties { return d.about }

// fail says which device an error is about, and what kind of error it is.
func (d *cudaDriver) fail(err error) error {
	if err == nil {
		return nil
	}
	var e *cuda.Error
	switch is := errors.As(err, &e); {
	case is && e.Lost():
		err = fmt.Errorf("%w: %w", err, errDeviceLost)
	case is && e.OutOfMemory():
		err = fmt.Errorf("%w: %w", err, errDeviceMemory)
	}
	return fmt.Errorf("%s: %w", d.about.Name, err)
}

func (d *cudaDriver) reserve(bytes int64) (deviceAddr, error) {
	if bytes == 0 {
		return 0, nil
	}
	if bytes > d.about.FreeBytes {
		return 0, fmt.Errorf("%s: reserve %d bytes, of which %d are free: %w", d.about.Name, bytes, d.about.FreeBytes, errDeviceMemory)
	}
	a, err := d.device.Alloc(bytes)
	if err != nil {
		return 0, d.fail(fmt.Errorf("reserve %d bytes: %w", bytes, err))
	}
	d.undo = append(d.undo, func() error { return d.device.Release(a) })
	d.about.FreeBytes -= bytes
	if a%deviceAlign != 0 {
		panic("execute: cuMemAlloc does not align as documented")
	}
	return deviceAddr(a), d.fail(d.device.Zero(a, bytes))
}

func (d *cudaDriver) pin(host []byte) error {
	if len(host) == 0 {
		return nil
	}
	own, err := cuda.Pin(host)
	if own {
		d.undo = append(d.undo, func() error { return cuda.Unpin(host) })
	}
	return d.fail(err)
}

func (d *cudaDriver) newStream(copies bool) (streamID, error) {
	s, err := d.device.NewStream()
	if err != nil {
		return 0, d.fail(err)
	}
	d.streams, d.undo = append(d.streams, cudaStream{Stream: s, copies: copies}), append(d.undo, s.Destroy)
	return streamID(len(d.streams) - 1), nil
}

func (d *cudaDriver) newEvent() (eventID, error) {
	e, err := d.device.NewEvent()
	if err != nil {
		return 0, d.fail(err)
	}
	d.events, d.undo = append(d.events, e), append(d.undo, e.Destroy)
	return eventID(len(d.events) - 1), nil
}

func (d *cudaDriver) bind(c *deviceCall) (launchID, error) {
	if c.variant.Capability > d.about.Capability {
		return 0, fmt.Errorf("%s: variant %s of %s needs compute capability %d.%d", d.about.Name,
			c.variant.Name, c.spec.Op, c.variant.Capability/10, c.variant.Capability%10)
	}
	call := calls.DeviceCall{Type: c.spec.Type, Params: c.params, Work: uint64(c.work)}
	for _, o := range c.args {
		call.Args = append(call.Args, calls.BindDevice(uint64(o.base), o.buffer, o.box, o.mode))
	}
	ready, err := d.prepare(c.variant, &call)
	if err == nil && ready.library != nil {
		err = d.firstUse(&ready)
	}
	if err != nil {
		ready.free()
		return 0, d.fail(fmt.Errorf("variant %s of %s: %w", c.variant.Name, c.spec.Op, err))
	}
	d.calls, d.undo = append(d.calls, ready), append(d.undo, func() error { ready.free(); return nil })
	return launchID(len(d.calls) - 1), nil
}

// prepare prepares a call. If it fails, the call holds whatever was made before.
func (d *cudaDriver) prepare(v *calls.Variant, call *calls.DeviceCall) (ready cudaCall, err error) {
	if ready.after, err = d.device.Prepare(v.Launches(call)); err != nil || v.Library == "" {
		return ready, err
	}
	if v.Before != nil {
		if ready.before, err = d.device.Prepare(v.Before(call)); err != nil {
			return ready, err
		}
	}
	ready.of, ready.library, err = d.bindLibrary(v.Library, v.LibraryCall(call))
	return ready, err
}

// free gives the memory of a call back.
func (c *cudaCall) free() {
	if c.library != nil {
		c.library.Free()
	}
	c.before.Free()
	c.after.Free()
}

func (d *cudaDriver) launch(s streamID, l launchID) error {
	return d.fail(d.streams[s].launch(&d.calls[l]))
}

func (s *cudaStream) launch(call *cudaCall) error {
	if call.library != nil {
		if err := s.Launch(call.before); err != nil {
			return err
		}
		if err := s.handles[call.of].Issue(call.library); err != nil {
			return err
		}
	}
	return s.Launch(call.after)
}

func (d *cudaDriver) copy(s streamID, c *deviceCopy) error {
	return d.fail(d.streams[s].Copy(placeOf(&c.to), placeOf(&c.from), c.rowBytes, c.rows))
}

func placeOf(p *plane) cuda.Place {
	return cuda.Place{Host: uintptr(p.host), Device: cuda.Address(p.device), Pitch: p.pitch}
}

// capture makes a CUDA graph of the calls that issue makes on the stream.
func (d *cudaDriver) capture(s streamID, issue func() error) (captureID, error) {
	g, err := d.streams[s].Capture(issue)
	if err != nil {
		return -1, d.fail(err)
	}
	d.graphs, d.undo = append(d.graphs, g), append(d.undo, g.Free)
	return captureID(len(d.graphs) - 1), nil
}

func (d *cudaDriver) replay(s streamID, c captureID) error {
	return d.fail(d.streams[s].LaunchGraph(d.graphs[c]))
}

func (d *cudaDriver) fill(s streamID, at deviceAddr, bytes int64, value byte) error {
	return d.fail(d.streams[s].Fill(cuda.Address(at), value, bytes))
}

func (d *cudaDriver) record(s streamID, e eventID) error {
	return d.fail(d.streams[s].Record(d.events[e]))
}

func (d *cudaDriver) wait(s streamID, e eventID) error {
	return d.fail(d.streams[s].Wait(d.events[e]))
}

func (d *cudaDriver) done(e eventID) (bool, error) {
	ok, err := d.events[e].Done()
	return ok, d.fail(err)
}

// elapsed is exact to half a microsecond for events up to 8 s apart, since CUDA gives
// milliseconds in a float32.
func (d *cudaDriver) elapsed(from, to eventID) (time.Duration, error) {
	ms, err := d.events[from].Milliseconds(d.events[to])
	return time.Duration(float64(ms) * float64(time.Millisecond)), d.fail(err)
}

// close gives back one by one what the driver made here, since the context may have other users.
// Objects that a lost device refuses to give back go with it.
func (d *cudaDriver) close() error {
	err := d.device.Synchronize()
	for _, giveBack := range slices.Backward(d.undo) {
		err = errors.Join(err, giveBack())
	}
	err = errors.Join(err, d.device.Close())
	var e *cuda.Error
	if errors.As(err, &e) && e.Lost() {
		return nil // reported when it happened
	}
	return d.fail(err)
}
