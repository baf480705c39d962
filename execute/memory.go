package execute

import (
	"fmt"
	"unsafe"

	"dahl/execute/driver"
	"dahl/execute/host"
	"dahl/kernels/calls"
	"dahl/platform"
	"dahl/schedule/layout"
	"dahl/schedule/place"
)

// Bytes is the memory of a network or data buffer, shared by all graphs; nil if there is no such
// buffer. Nobody may touch it while Run is in progress, except hooks whose tasks are ordered with
// it. An input that no task writes (a data set) is copied to other memories when a run first
// needs it, and again after each call of Bytes for it. So call Bytes again before writing to it
// again.
func (r *Runner) Bytes(name string) []byte {
	for _, c := range r.graphs {
		if b, ok := c.graph.BufferByName(place.ReplicaName(r.platform, name, r.part.host)); ok && c.layout.Arena(b) < layout.StepArena && c.layout.Offset(b) >= 0 {
			r.forgetMoves(name)
			return r.arenas.storage(c.layout, c.graph, b, 0)
		}
	}
	return nil
}

// Float32s is Bytes as elements.
func (r *Runner) Float32s(name string) []float32 { return elements[float32](r.Bytes(name)) }

// Float64s is Bytes as elements.
func (r *Runner) Float64s(name string) []float64 { return elements[float64](r.Bytes(name)) }

// Int32s is Bytes as elements.
func (r *Runner) Int32s(name string) []int32 { return elements[int32](r.Bytes(name)) }

func elements[T calls.Element](b []byte) []T {
	var zero T
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/int(unsafe.Sizeof(zero)))
}

// HighWater returns, for every arena of a memory of a poisoned runner, one past the highest byte that anybody
// has written, the caller included. If it exceeds the arena's size, a kernel wrote beyond the
// arena. If every byte of the last storage was written, it is the end of the last storage of any
// graph; the rest up to the arena's size, less than 64 bytes, is padding. A last byte of 0xFF (a
// NaN, -1) cannot be told from the pattern.
//
// The memory of a device is read whole, beyond which nothing is seen, and only before Close. An error is the device's.
func (r *Runner) HighWater(memory platform.MemoryID) (high [layout.NumArenas]int64, err error) {
	if memory == r.part.host {
		for i, b := range r.arenas {
			high[i] = written(b[:cap(b)])
		}
		return high, nil
	}
	if r.devices == nil || r.devices[memory] == nil {
		return high, nil // no lanes use it
	}
	d := r.devices[memory]
	for a := range d.arenas {
		contents, err := d.read(a, r.part.host)
		if err != nil {
			return high, fmt.Errorf("device %q: %w", d.name, err)
		}
		high[a] = written(contents)
	}
	return high, nil
}

// read copies an arena to the host memory.
func (d *device) read(arena int, home platform.MemoryID) ([]byte, error) {
	from := d.arenas[arena]
	to := host.AlignedBytes(from.bytes)
	err := d.Do(func() error {
		if err := d.Driver.Pin(host.WholePages(to)); err != nil {
			return err
		}
		stream := d.copyStream(false)
		c := driver.Copy{To: driver.Plane{Memory: home, Host: unsafe.Pointer(unsafe.SliceData(to))}, From: driver.Plane{Memory: d.memory, Device: from.at},
			Rows: 1, RowBytes: from.bytes, Bytes: from.bytes}
		if err := d.Driver.Copy(stream, &c); err != nil {
			return err
		}
		return d.Finish(stream)
	})
	return to, err
}

// poisonDevices fills the arenas of all devices with the pattern.
func (r *Runner) poisonDevices() error {
	return r.onDevices(func(d *device) error {
		stream := d.lanes[0].stream
		for _, a := range d.arenas {
			if a.bytes == 0 {
				continue // drivers refuse an empty fill
			}
			if err := d.Driver.Fill(stream, a.at, a.bytes, poison); err != nil {
				return err
			}
		}
		return d.Finish(stream)
	})
}
