package execute

import (
	"dahl/dag"
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

// PlannedHighWater returns, for every arena of a memory, the end of its last storage in any
// graph; for the scratch arena, its size.
func (r *Runner) PlannedHighWater(memory platform.MemoryID) (end [layout.NumArenas]int64) {
	for i, c := range r.graphs {
		l := r.layoutsOf(memory)[i]
		for b := range dag.BufferID(len(c.graph.Buffers)) {
			if l.Offset(b) >= 0 {
				end[l.Arena(b)] = max(end[l.Arena(b)], l.Offset(b)+c.graph.Buffers[b].Bytes())
			}
		}
		end[layout.ScratchArena] = max(end[layout.ScratchArena], l.ArenaBytes[layout.ScratchArena])
	}
	return end
}
