package improve

import (
	"math"
	"time"

	"dahl/dag"
	"dahl/plan"
	"dahl/platform"
	"dahl/schedule"
	"dahl/schedule/layout"
)

// score returns the value that the search minimises: the value of the objective, where the step is no longer than the
// deadline. Longer ones are all worse than those, and the longer the worse.
func (s *search) score(span time.Duration, joules float64) float64 {
	if s.options.Deadline > 0 && span > s.options.Deadline {
		return math.MaxFloat64 / 1e20 * float64(span)
	}
	return s.options.Of(span, joules)
}

// judged is a plan with what the simulator says of it.
type judged struct {
	*plan.Evaluated
	plan.Step
	score float64
}

// judge simulates a plan. Of a steady step it takes the difference of runs of the given number of steps and of twice that.
func (s *search) judge(made *schedule.Plan, steps int) (judged, error) {
	e, err := plan.Evaluate(s.priced, schedule.Choice{Plans: []*schedule.Plan{made}})
	if err != nil {
		return judged{}, err
	}
	step, err := e.Step(s.ctx, s.options.Steady, steps)
	return judged{e, step, s.score(step.Time, step.Joules)}, err
}

// separateBuffers lets no buffers of a plan share bytes, where memories have room for that, so that no task waits for
// the sake of bytes. Else it returns the plan itself.
func (s *search) separateBuffers(plan *schedule.Plan) *schedule.Plan {
	d, err := s.priced.Decide(schedule.Choice{Plans: []*schedule.Plan{plan}})
	if err != nil {
		return plan
	}
	placed := d.Graphs[0].Placed
	if len(placed.Reuse)+len(placed.MemoryReuseNext) == 0 {
		return plan
	}
	g, err := placed.Graph()
	if err != nil {
		return plan
	}
	const shared = "step" // the arena whose buffers share bytes
	with, written, end := *plan, d.PlanOf(0, nil).Written, map[string]int64{}
	for i := range written.Places {
		at := &written.Places[i]
		if b, ok := g.BufferByName(at.Buffer); ok && at.Arena == shared {
			at.Offset = end[at.Memory]
			end[at.Memory] += layout.Align(g.Buffers[b].Bytes()) * int64(g.Versions(b))
		}
	}
	for i := range written.Arenas {
		if at := &written.Arenas[i]; at.Arena == shared {
			at.Bytes = end[at.Memory]
		}
	}
	with.Places, with.Arenas = written.Places, written.Arenas
	if _, err := s.priced.Decide(schedule.Choice{Plans: []*schedule.Plan{&with}}); err != nil {
		return plan
	}
	return &with
}

// planOf writes a point down. It keeps parts of the first plan that moves do not change: variants,
// copies of buffers, and sleep states of tasks that stay on their device.
func (s *search) planOf(x *point) *schedule.Plan {
	p, from := s.priced.Platform, s.from
	plan := &schedule.Plan{Policy: from.Policy, GraphHash: s.graph.Hash(), Lowering: from.Lowering, Variants: from.Variants, Order: make([][]dag.TaskID, len(p.Workers))}
	plan.Versions = s.plannedVersions(x)
	inForce := true
	for _, t := range x.sequence {
		w := x.worker[t]
		plan.Order[w] = append(plan.Order[w], dag.TaskID(t))
		inForce = inForce && x.clock[t] == p.Devices[p.Workers[w].Device].AtClock
	}
	for t := range s.graph.Tasks {
		id := s.deviceOf(x.worker[t])
		if !inForce && len(p.Devices[id].Clocks) > 1 {
			plan.SetClock(s.graph, dag.TaskID(t), x.clock[t])
		}
		if from.Sleeps != nil && from.Sleeps[t] > 0 && s.deviceOf(s.start.worker[t]) == id {
			plan.SetSleep(s.graph, dag.TaskID(t), from.Sleeps[t])
		}
	}
	return plan
}

func (s *search) deviceOf(w platform.WorkerID) platform.DeviceID {
	return s.priced.Platform.Workers[w].Device
}
