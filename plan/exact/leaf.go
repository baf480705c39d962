package exact

import (
	"context"
	"slices"

	"dahl/dag"
	"dahl/plan"
	"dahl/platform"
	"dahl/schedule"
	"dahl/schedule/policy"
)

// tryHEFT begins with a plan that costs little to find, where it is one of those searched.
func (s *search) tryHEFT() {
	d, err := s.priced.Decide(schedule.Choice{Policy: policy.HEFT})
	if err != nil {
		s.refused = err
		return
	}
	plan := &schedule.Plan{Policy: d.PolicyName(0), GraphHash: s.graph.Hash(), Order: d.Graphs[0].Plan.Order}
	for w, list := range plan.Order {
		id := s.platform.Workers[w].Device
		clock := s.platform.Devices[id].AtClock
		if !slices.Contains(s.problem.Clocks[id], clock) {
			return
		}
		for _, t := range list {
			s.nameClock(plan, t, id, clock)
		}
	}
	_, s.refused = s.evaluate(plan)
}

// leaf simulates a complete plan. Where it comes out above its value in the model, that stays a lower
// bound of the search in the model.
func (s *search) leaf(x *state) {
	plan := s.planOf(x)
	modelled := s.value(x)
	value, err := s.evaluate(plan)
	if err != nil && s.refused == nil {
		s.refused = err
	}
	if s.inModel && (err != nil || value > modelled+float64(modelled*tolerance)) {
		s.lowest = min(s.lowest, modelled)
	}
}

// evaluate keeps a plan if it is the best. One step of few tasks takes no time worth cutting short, and a
// plan that was not simulated to its end would be left out of the bound.
func (s *search) evaluate(made *schedule.Plan) (value float64, err error) {
	e, err := plan.Evaluate(s.priced, schedule.Choice{Plans: []*schedule.Plan{made}})
	if err != nil {
		return 0, err
	}
	step, err := e.Step(context.WithoutCancel(s.ctx), false, 1)
	if err != nil {
		return 0, err
	}
	r := Result{Plan: made, Makespan: step.Time, Joules: step.Joules, Value: s.objective.Of(step.Time, step.Joules)}
	if value = s.score(float64(r.Makespan), r.Joules); value < s.best {
		s.best, s.result = value, r
	}
	return value, nil
}

// planOf writes a complete state down.
func (s *search) planOf(x *state) *schedule.Plan {
	plan := &schedule.Plan{Policy: "exact", GraphHash: s.graph.Hash(), Order: make([][]dag.TaskID, len(s.platform.Workers))}
	for _, at := range x.steps {
		plan.Order[at.worker] = append(plan.Order[at.worker], dag.TaskID(at.task))
		of := &s.tasks[at.task].settings[at.setting]
		s.nameClock(plan, dag.TaskID(at.task), of.device, of.clock)
	}
	return plan
}

// nameClock writes the clock of a task down, where its device has several.
func (s *search) nameClock(plan *schedule.Plan, t dag.TaskID, id platform.DeviceID, clock platform.ClockID) {
	if len(s.platform.Devices[id].Clocks) > 1 {
		plan.SetClock(s.graph, t, clock)
	}
}
