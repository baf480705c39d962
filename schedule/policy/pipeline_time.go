package policy

import (
	"time"

	"dahl/platform"
	"dahl/schedule"
)

// PipelineTime is the closed formula of the papers for a step of a pipeline. With v stages on each of p devices and m micro-batches, the slowest
// stage of which takes t for both passes, a step takes
//
//	(m·v + p - 1)·t
//
// as if all stages were equal and transfers free. Updates count as well. The bubble, (p - 1)/(m·v + p - 1) of it, is when a device has nothing to do.
type PipelineTime struct {
	Step, Slowest          time.Duration
	Devices, Each, Batches int
}

// TimeOf is the formula for a plan by a line of [Pipelines]. False means that it is no such plan. All units of a device share a stage.
func TimeOf(p *schedule.Problem, plan *schedule.Plan) (of PipelineTime, ok bool) {
	if _, err := PipelineByName(plan.Policy); err != nil {
		return of, false
	}
	l := &pipeline{g: p.Graph, node: make([]int32, len(p.Graph.Tasks)), blocks: map[block]int32{}}
	stages, batches := l.findBlocks()
	fit, err := schedule.NewFit(p)
	if err != nil || len(stages) == 0 {
		return of, false
	}
	l.findLanes(stages)
	busy, units := map[int32]time.Duration{}, map[int32]int{} // by stage
	for w, list := range plan.Order {
		seen := map[int32]bool{}
		for _, t := range list {
			of := &p.Graph.Tasks[t].Labels
			busy[of.Stage] += fit.Occupies(t, platform.WorkerID(w))
			if l.inBlock(of) && !seen[of.Stage] {
				seen[of.Stage] = true
				units[of.Stage]++
			}
		}
	}
	of = PipelineTime{Devices: len(l.lanes), Each: (len(stages) + len(l.lanes) - 1) / len(l.lanes), Batches: len(batches)}
	for _, s := range stages {
		of.Slowest = max(of.Slowest, busy[s]/time.Duration(of.Batches*units[s]))
	}
	of.Step = time.Duration(of.Batches*of.Each+of.Devices-1) * of.Slowest
	return of, true
}
