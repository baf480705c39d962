//go:build cuda

package cuda

import (
	"errors"
	"reflect"
	"sync"

	"gorgonia.org/cu"

	"dahl/execute/driver"
)

// Device is an opened GPU: its primary context, current in the thread that opened it.
type Device struct {
	driver.GPU
	device  cu.Device
	context cu.CUContext
	peers   []cu.Device          // whose contexts are held
	modules map[string]cu.Module // of prepared launches, by name
}

// Stream and Event are the driver's.
type (
	Stream struct{ s cu.Stream }
	Event  struct{ e cu.Event }
)

// Start loads the driver library and initialises it, at the first call; later calls repeat the
// result.
var Start = sync.OnceValue(load)

// Count returns the number of devices.
func Count() (int, error) {
	if err := Start(); err != nil {
		return 0, err
	}
	n, err := cu.NumDevices()
	return n, wrap("cuDeviceGetCount", err)
}

// DriverVersion is the CUDA version that the driver serves, 12040 for 12.4.
func DriverVersion() int { return cu.Version() }

// Open opens a device by its number and makes its context current in the calling thread,
// to which the goroutine must be locked.
func Open(ordinal int) (*Device, error) {
	g, err := gpuAt(ordinal)
	if err != nil {
		return nil, err
	}
	d, err := cu.GetDevice(ordinal)
	if err != nil {
		return nil, wrap("cuDeviceGet", err)
	}
	context, err := d.RetainPrimaryCtx()
	if err != nil {
		return nil, wrap("cuDevicePrimaryCtxRetain", err)
	}
	if err := cu.SetCurrentContext(context); err != nil {
		d.ReleasePrimaryCtx()
		return nil, wrap("cuCtxSetCurrent", err)
	}
	return &Device{GPU: g, device: d, context: context, modules: map[string]cu.Module{}}, nil
}

// Close unloads the modules and releases the context. Its last user also releases everything made
// in it.
func (d *Device) Close() (failed error) {
	for _, m := range d.modules {
		failed = errors.Join(failed, wrap("cuModuleUnload", m.Unload()))
	}
	for _, held := range append(d.peers, d.device) {
		failed = errors.Join(failed, wrap("cuDevicePrimaryCtxRelease", held.ReleasePrimaryCtx()))
	}
	return failed
}

// Memory returns how many bytes are free, and how many there are.
func (d *Device) Memory() (free, total int64, err error) {
	free, total, err = cu.MemInfo()
	return free, total, wrap("cuMemGetInfo", err)
}

// Alloc allocates device memory, aligned to 256 bytes; its contents are undefined.
func (d *Device) Alloc(bytes int64) (driver.Address, error) {
	p, err := cu.MemAlloc(bytes)
	return driver.Address(p), wrap("cuMemAlloc", err)
}

// Zero sets memory to zero and waits for it. cuMemsetD8 itself may return before: it runs on the
// default stream, for which the streams of NewStream do not wait.
func (d *Device) Zero(a driver.Address, bytes int64) error {
	if err := cu.MemsetD8(cu.DevicePtr(a), 0, bytes); err != nil {
		return wrap("cuMemsetD8", err)
	}
	return d.Synchronize()
}

// Release frees memory of Alloc.
func (d *Device) Release(a driver.Address) error {
	return wrap("cuMemFree", cu.MemFree(cu.DevicePtr(a)))
}

// ReachPeer lets this device read and write the memory of another, by its number, and reports
// whether the machine can do that. Copies between devices work in both cases, through the host if
// need be. Only the thread that opened the device may call it.
func (d *Device) ReachPeer(ordinal int) (bool, error) {
	peer, err := cu.GetDevice(ordinal)
	if err != nil {
		return false, wrap("cuDeviceGet", err)
	}
	can, err := d.device.CanAccessPeer(peer)
	if err != nil || can == 0 {
		return false, wrap("cuDeviceCanAccessPeer", err)
	}
	context, err := peer.RetainPrimaryCtx()
	if err != nil {
		return false, wrap("cuDevicePrimaryCtxRetain", err)
	}
	d.peers = append(d.peers, peer)
	err = context.EnablePeerAccess(0)
	if err == error(cu.PeerAccessAlreadyEnabled) {
		err = nil
	}
	return err == nil, wrap("cuCtxEnablePeerAccess", err)
}

// Synchronize waits until the device has done everything. It is for before and after a run.
func (d *Device) Synchronize() error { return wrap("cuCtxSynchronize", cu.Synchronize()) }

// NewStream makes a stream that only events order with others.
func (d *Device) NewStream() (Stream, error) {
	s, err := cu.MakeStream(cu.NonBlocking)
	return Stream{s}, wrap("cuStreamCreate", err)
}

// Destroy destroys the stream after it has done its work.
func (s Stream) Destroy() error { return wrap("cuStreamDestroy", s.s.Destroy()) }

// Synchronize waits until the stream has done its work.
func (s Stream) Synchronize() error { return wrap("cuStreamSynchronize", s.s.Synchronize()) }

// NewEvent makes an event that keeps the time.
func (d *Device) NewEvent() (Event, error) {
	e, err := cu.MakeEvent(cu.DefaultEvent)
	return Event{e}, wrap("cuEventCreate", err)
}

// Destroy destroys the event.
func (e Event) Destroy() error { return wrap("cuEventDestroy", cu.DestroyEvent(&e.e)) }

// wrap makes an Error of cu's result, an integer type that cu does not export.
func wrap(call string, err error) error {
	if err == nil {
		return nil
	}
	code := reflect.ValueOf(err)
	if !code.CanInt() {
		panic("cuda: " + call + " gave an error that is no result of the driver: " + err.Error())
	}
	return newError(call, int(code.Int()))
}
