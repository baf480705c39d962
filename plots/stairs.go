package plots

import (
	"slices"
	"time"

	"dahl/energy"
)

// maxStairs bounds the points of a step function in a picture.
const maxStairs = 2400

// mergedTimes lists the moments at which any of several step functions changes, ascending and
// once each, from 0 to end inclusive. If there are more than most, it returns a grid of equal
// columns instead.
func mergedTimes(traces []energy.PowerTrace, end time.Duration, most int) []time.Duration {
	times := []time.Duration{0, end}
	for _, t := range traces {
		for _, step := range t.Samples {
			if step.At > 0 && step.At < end {
				times = append(times, step.At)
			}
		}
	}
	slices.Sort(times)
	if times = slices.Compact(times); len(times) > most+1 {
		return grid(end, most)
	}
	return times
}

func grid(end time.Duration, columns int) []time.Duration {
	times := make([]time.Duration, columns+1)
	for k := range times {
		times[k] = columnEdge(end, k, columns)
	}
	return times
}

// joulesBetween integrates a step function over each interval between
// neighbouring times. Before its first step it is zero.
func joulesBetween(steps []energy.PowerSample, times []time.Duration) []float64 {
	joules := make([]float64, len(times)-1)
	i, watts := 0, 0.0
	for k := range joules {
		at := times[k]
		for at < times[k+1] {
			for i < len(steps) && steps[i].At <= at {
				watts = steps[i].Watts
				i++
			}
			until := times[k+1]
			if i < len(steps) {
				until = min(until, steps[i].At)
			}
			joules[k] += float64(watts * (until - at).Seconds())
			at = until
		}
	}
	return joules
}
