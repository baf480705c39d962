package energy

import (
	"cmp"
	"slices"

	"dahl/schedule"
)

// Traces is the power of each consumer over the run: the host, the devices and
// the links in the order of the platform. It fails where FromSchedule does.
func Traces(s *schedule.Schedule, prob *schedule.Problem) ([]PowerTrace, error) {
	a, err := newAccount(s, prob)
	if err != nil {
		return nil, err
	}
	return a.traces, nil
}

// Power is the power of the whole platform over the run, in steps. Its integral
// is Report.TotalJoules. It is empty where FromSchedule fails.
func Power(s *schedule.Schedule, prob *schedule.Problem) []PowerSample {
	traces, err := Traces(s, prob)
	if err != nil {
		return nil
	}
	type change struct {
		PowerSample
		trace int
	}
	var changes []change
	for i, t := range traces {
		for _, sample := range t.Samples {
			changes = append(changes, change{sample, i})
		}
	}
	slices.SortFunc(changes, func(a, b change) int {
		return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.trace, b.trace))
	})
	total := PowerTrace{}
	now := make([]float64, len(traces))
	for i, c := range changes {
		now[c.trace] = c.Watts
		if i+1 < len(changes) && changes[i+1].At == c.At {
			continue
		}
		sum := 0.0 // from zero each time, so that no rounding error accumulates
		for _, w := range now {
			sum += w
		}
		total.add(c.At, sum)
	}
	return total.Samples
}
