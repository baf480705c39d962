package execute

import (
	"unsafe"

	"dahl/kernels"
	"dahl/platform"
	"dahl/schedule"
)

// Platform is the machine the program was compiled for.
func (r *Runner) Platform() *platform.Platform { return r.opt.Platform }

// Plan is what a graph replays; nil when a policy decides at run time.
func (r *Runner) Plan(graph int) *schedule.Plan { return r.graphs[graph].plan }

// Layout is where the storages of a graph lie.
func (r *Runner) Layout(graph int) *schedule.Layout { return r.graphs[graph].layout }

// Problem is what Run solves, for checking a schedule against it.
func (r *Runner) Problem(graph, steps int) *schedule.Problem {
	return r.graphs[graph].problem(r.opt.Platform, steps)
}

// Bytes is the memory of a network or data buffer, shared by all graphs; nil if
// there is none of that name. It must not be touched while Run is in progress,
// except by hooks whose tasks are ordered by it.
func (r *Runner) Bytes(name string) []byte {
	for i, c := range r.graphs {
		if b, ok := c.graph.BufferByName(name); ok && c.layout.Arena[b] < schedule.StepArena {
			return r.StepBytes(i, name)
		}
	}
	return nil
}

// StepBytes is the memory of any buffer of one graph; nil if there is none of
// that name. Bytes of the step arena hold their contents until a task or the
// next run of another graph reuses them.
func (r *Runner) StepBytes(graph int, name string) []byte {
	c := r.graphs[graph]
	b, ok := c.graph.BufferByName(name)
	if !ok {
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

// HighWater returns, for every arena of a poisoned runner, one past the highest
// byte that anything has written, the caller included; more than the arena's
// size means that a kernel wrote beyond it. When every byte of the last storage
// was written it equals PlannedHighWater; the rest up to the arena's size, less
// than 64 bytes, is padding that belongs to nobody. A last byte of 0xFF (a NaN,
// -1) cannot be told from the pattern.
func (r *Runner) HighWater() [schedule.NumArenas]int64 { return r.arenas.highWater() }

// PlannedHighWater returns, for every arena, the end of its last storage in any
// graph; for the scratch arena, its size.
func (r *Runner) PlannedHighWater() (end [schedule.NumArenas]int64) {
	for _, c := range r.graphs {
		for i := range c.graph.Buffers {
			a := c.layout.Arena[i]
			end[a] = max(end[a], c.layout.Offset[i]+c.graph.Buffers[i].Bytes())
		}
	}
	end[schedule.ScratchArena] = int64(len(r.arenas[schedule.ScratchArena]))
	return end
}
