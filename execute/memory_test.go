package execute

import (
	"fmt"
	"unsafe"

	"dahl/execute/driver"
	"dahl/execute/host"
	"dahl/platform"
	"dahl/schedule"
	"dahl/schedule/layout"
)

// Plan is what a graph replays; nil when a policy decides at run time.
func (r *Runner) Plan(graph int) *schedule.Plan { return r.decision.Graphs[graph].Plan }

// Layout is where the storages of a graph lie.
func (r *Runner) Layout(graph int) *layout.Layout { return r.graphs[graph].layout }

// Problem is what Run solves, for checking a schedule against it.
func (r *Runner) Problem(graph, steps int) *schedule.Problem {
	return r.decision.Problem(graph, steps, false)
}

// PlannedHighWater returns, for every arena, the end of its last storage in any
// graph; for the scratch arena, its size.
func (r *Runner) PlannedHighWater() (end [layout.NumArenas]int64) {
	for _, c := range r.graphs {
		for i := range c.graph.Buffers {
			if c.layout.Offset[i] < 0 {
				continue
			}
			a := c.layout.Arena[i]
			end[a] = max(end[a], c.layout.Offset[i]+c.graph.Buffers[i].Bytes())
		}
	}
	end[layout.ScratchArena] = int64(len(r.arenas[layout.ScratchArena]))
	return end
}

// HighWaterOf is HighWater and PlannedHighWater of the memory of a device other than
// the cpu, by its name. It reads all of it.
func (r *Runner) HighWaterOf(memory string) (high, planned [layout.NumArenas]int64, err error) {
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
	planned[layout.ScratchArena] = d.arenas[layout.ScratchArena].bytes
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
