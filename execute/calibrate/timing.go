package calibrate

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"dahl/execute"
	"dahl/platform"
	"dahl/schedule"
	"dahl/stats"
)

const (
	// timingTurns is how often steps run with and without a record in turn, so that a drift in
	// time does not look like an effect of the record.
	timingTurns = 2
	// minTimingSteps is the number of steps in a turn that a period needs.
	minTimingSteps = 3
)

// Timing runs steps of a runner's graph in turn with and without a record, about as many
// in all as the options say. It adds to the collection the time that the record adds to a step,
// per task. That covers the events around each task, steps kept out of CUDA graphs, and orders of
// recorded steps only. The runner must be ready to run and warm.
func Timing(ctx context.Context, r *execute.Runner, opt InSituOptions, into *StepTimes) error {
	most := cmp.Or(opt.Steps, defaultSteps)
	steps := min(most, max(minTimingSteps, most/(2*timingTurns)))
	for range timingTurns {
		recorded, err := r.Run(ctx, opt.Graph, steps, true)
		if err != nil {
			return fmt.Errorf("calibrate timing: recorded steps: %w", err)
		}
		others, err := r.Run(ctx, opt.Graph, steps, false)
		if err != nil {
			return fmt.Errorf("calibrate timing: steps without a record: %w", err)
		}
		if per, ok := timingPerTask(r.Platform(), recorded, others.Period); ok {
			into.timing = append(into.timing, per)
		}
	}
	return nil
}

// timingPerTask is how much longer recorded steps are, per task of the busiest unit that is no
// processor's. ok is false where such units run nothing.
func timingPerTask(p *platform.Platform, recorded *schedule.Schedule, others time.Duration) (per time.Duration, ok bool) {
	tasks := make([]int, len(p.Workers))
	for i := range recorded.Spans {
		if w := recorded.Spans[i].Worker; !p.Devices[p.Workers[w].Device].IsProcessor() {
			tasks[w]++
		}
	}
	busiest := slices.Max(tasks)
	if busiest == 0 {
		return 0, false
	}
	return (recorded.Period - others) * time.Duration(recorded.Steps) / time.Duration(busiest), true
}

// clearTiming is the median of turns. It is 0 where that may be noise: at least a quarter of the
// turns were no slower with a record.
func clearTiming(turns []time.Duration) time.Duration {
	faster := 0
	for _, t := range turns {
		if t <= 0 {
			faster++
		}
	}
	if 4*faster >= len(turns) {
		return 0
	}
	return stats.Median(turns)
}
