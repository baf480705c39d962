package execute

import (
	"fmt"
	"unsafe"

	"dahl/kernels"
	"dahl/platform"
	"dahl/schedule"
)

// Platform is the machine the program was compiled for.
func (r *Runner) Platform() *platform.Platform { return r.platform }

// Plan is the plan that a graph replays; nil when a policy decides at run time.
func (r *Runner) Plan(graph int) *schedule.Plan { return r.decision.Graphs[graph].Plan }

// Layout is where the storages of a graph lie.
func (r *Runner) Layout(graph int) *schedule.Layout { return r.graphs[graph].layout }

// Problem is the problem that Run solves, for checking a schedule.
func (r *Runner) Problem(graph, steps int) *schedule.Problem {
	return r.decision.Problem(graph, steps, false)
}

// Bytes is the memory of a network or data buffer, shared by all graphs; nil if there is no such
// buffer. Nobody may touch it while Run is in progress, except hooks whose tasks are ordered with
// it. An input that no task writes (a data set) is copied to other memories when a run first
// needs it, and again after each call of Bytes for it. So call Bytes again before writing to it
// again.
func (r *Runner) Bytes(name string) []byte {
	for i, c := range r.graphs {
		if b, ok := c.graph.BufferByName(name); ok && c.layout.Arena[b] < schedule.StepArena && c.layout.Offset[b] >= 0 {
			r.asked.note(name)
			return r.StepBytes(i, name)
		}
	}
	return nil
}

// StepBytes is the memory of any buffer of one graph; nil if there is no such buffer. Bytes of
// the step arena keep their contents until a task or the next run of another graph reuses them.
// With several memories it is the host's memory, and nil for a buffer that is not used there.
func (r *Runner) StepBytes(graph int, name string) []byte {
	c := r.graphs[graph]
	b, ok := c.graph.BufferByName(name)
	if !ok || c.layout.Offset[b] < 0 {
		return nil
	}
	return r.arenas.storage(c.layout, c.graph, b)
}

// Float32s is Bytes as elements.
func (r *Runner) Float32s(name string) []float32 { return elements[float32](r.Bytes(name)) }

// Float64s is Bytes as elements.
func (r *Runner) Float64s(name string) []float64 { return elements[float64](r.Bytes(name)) }

// Int32s is Bytes as elements.
func (r *Runner) Int32s(name string) []int32 { return elements[int32](r.Bytes(name)) }

func elements[T kernels.Element](b []byte) []T {
	var zero T
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/int(unsafe.Sizeof(zero)))
}

// HighWater returns, for every arena of a poisoned runner, one past the highest byte that anybody
// has written, the caller included. If it exceeds the arena's size, a kernel wrote beyond the
// arena. If every byte of the last storage was written, it equals PlannedHighWater; the rest up
// to the arena's size, less than 64 bytes, is padding. A last byte of 0xFF (a NaN, -1) cannot be
// told from the pattern.
func (r *Runner) HighWater() [schedule.NumArenas]int64 { return r.arenas.highWater() }

// PlannedHighWater returns, for every arena, the end of its last storage in any
// graph; for the scratch arena, its size.
func (r *Runner) PlannedHighWater() (end [schedule.NumArenas]int64) {
	for _, c := range r.graphs {
		for i := range c.graph.Buffers {
			if c.layout.Offset[i] < 0 {
				continue
			}
			a := c.layout.Arena[i]
			end[a] = max(end[a], c.layout.Offset[i]+c.graph.Buffers[i].Bytes())
		}
	}
	end[schedule.ScratchArena] = int64(len(r.arenas[schedule.ScratchArena]))
	return end
}

// poisonDevices fills the arenas of all devices with the pattern.
func (r *Runner) poisonDevices() error {
	for d := range r.eachDevice {
		err := d.do(func() error {
			stream := d.lanes[0].stream
			for _, a := range d.arenas {
				if a.bytes == 0 {
					continue // drivers refuse an empty fill
				}
				if err := d.driver.fill(stream, a.at, a.bytes, poison); err != nil {
					return err
				}
			}
			return d.finish(stream)
		})
		if err != nil {
			return fmt.Errorf("device %q: %w", d.name, err)
		}
	}
	return nil
}

// HighWaterOf is HighWater and PlannedHighWater for the memory of a device other than the cpu, by
// name. It reads the whole memory.
func (r *Runner) HighWaterOf(memory string) (high, planned [schedule.NumArenas]int64, err error) {
	m, ok := r.platform.MemoryByName(memory)
	if !ok || r.devices == nil || r.devices[m] == nil {
		return high, planned, fmt.Errorf("execute: memory %q has no devices of its own", memory)
	}
	d := r.devices[m]
	for _, c := range r.graphs {
		l := c.layouts[m]
		for i := range c.graph.Buffers {
			if l.Offset[i] >= 0 {
				planned[l.Arena[i]] = max(planned[l.Arena[i]], l.Offset[i]+c.graph.Buffers[i].Bytes())
			}
		}
	}
	planned[schedule.ScratchArena] = d.arenas[schedule.ScratchArena].bytes
	for a := range d.arenas {
		contents, err := d.read(a, r.platform.HostMemory())
		if err != nil {
			return high, planned, fmt.Errorf("device %q: %w", d.name, err)
		}
		high[a] = written(contents)
	}
	return high, planned, nil
}

// read copies an arena to the host memory.
func (d *device) read(arena int, host platform.MemoryID) ([]byte, error) {
	from := d.arenas[arena]
	to := alignedBytes(from.bytes)
	err := d.do(func() error {
		if err := d.driver.pin(wholePages(to)); err != nil {
			return err
		}
		stream := d.copyStream(false)
		c := deviceCopy{to: plane{memory: host, host: unsafe.Pointer(unsafe.SliceData(to))}, from: plane{memory: d.memory, device: from.at},
			rows: 1, rowBytes: from.bytes, bytes: from.bytes}
		if err := d.driver.copy(stream, &c); err != nil {
			return err
		}
		return d.finish(stream)
	})
	return to, err
}
