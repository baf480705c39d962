package plan

import (
	"slices"
	"time"

	"dahl/schedule"
)

// Pipelined are the parts of a run whose steps overlap by the lags of its plan: it fills until every worker of the plan has begun, and drains from the
// moment when the first of them has done all of its tasks. In between a step takes the period of the schedule.
type Pipelined struct {
	Lag    int32   `json:"lag"` // the greatest of a task
	Fill   float64 `json:"fill_s"`
	Steady float64 `json:"steady_step_s"`
	Drain  float64 `json:"drain_s"`
}

// PipelinedOf describes a run of a plan; nil means the plan has no lags.
func PipelinedOf(s *schedule.Schedule, plan *schedule.Plan) *Pipelined {
	if plan == nil || plan.Lags == nil || len(s.Spans) == 0 {
		return nil
	}
	first, last := make([]time.Duration, len(plan.Order)), make([]time.Duration, len(plan.Order))
	began := make([]bool, len(plan.Order))
	for i := range s.Spans {
		span := &s.Spans[i]
		if w := span.Worker; !began[w] {
			began[w], first[w] = true, span.Start
		}
		last[span.Worker] = max(last[span.Worker], span.End)
	}
	p := &Pipelined{Lag: slices.Max(plan.Lags), Steady: s.Period.Seconds()}
	drains := s.Makespan
	for w, ran := range began {
		if ran {
			p.Fill, drains = max(p.Fill, first[w].Seconds()), min(drains, last[w])
		}
	}
	p.Drain = (s.Makespan - drains).Seconds()
	return p
}
