package execute

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"dahl/platform"
	"dahl/schedule"
)

const (
	// timingTurns is how often steps are run with and without a record, so that what changes
	// with time does not look like what changes with the record.
	timingTurns = 2
	// minTimingSteps are those of a turn: enough for a period.
	minTimingSteps = 3
)

// CalibrateTiming runs steps of a runner's graph recorded and not recorded in turn, about as
// many in all as the options say, and adds to the collection what the record adds to a step,
// by task: beside the events around each, that steps are kept out of CUDA graphs and keep
// orders that others do without. The runner must be ready to run and be warm.
func CalibrateTiming(ctx context.Context, r *Runner, opt InSituOptions, into *StepTimes) error {
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
		if per, ok := timingPerTask(r.platform, recorded, others.Period); ok {
			into.timing = append(into.timing, per)
		}
	}
	return nil
}

// timingPerTask is how much longer recorded steps are than others, by task of the busiest
// unit that is no processor's; ok is false where such units run nothing.
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

// clearTiming is the median of turns, and nothing where it may be noise: where a quarter of
// the turns or more were no slower with a record.
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
	return median(turns)
}
