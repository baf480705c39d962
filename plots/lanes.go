package plots

import (
	"fmt"
	"time"

	"dahl/platform"
	"dahl/schedule"
)

// lanes assigns intervals, ordered by start, to the first free lane of their group, so that
// intervals in one lane do not overlap. It returns the lane of each interval and the number of
// lanes of each group. This is the greedy colouring of interval graphs. It uses only as many lanes
// as intervals of the group ever overlap.
func lanes[G comparable](n int, interval func(i int) (group G, from, to time.Duration)) (lane []int, count map[G]int) {
	lane, count = make([]int, n), map[G]int{}
	freeAt := map[G][]time.Duration{}
	for i := range n {
		group, from, to := interval(i)
		free, k := freeAt[group], 0
		for k < len(free) && free[k] > from {
			k++
		}
		if k == len(free) {
			free = append(free, 0)
			freeAt[group] = free
		}
		free[k], lane[i], count[group] = to, k, len(free)
	}
	return lane, count
}

// laneName names a lane of a group in a trace.
func laneName(group string, lane int) string {
	if lane == 0 {
		return group
	}
	return fmt.Sprintf("%s (%d)", group, lane+1)
}

// spanLanes are the lanes of the spans and their numbers by worker.
func spanLanes(s *schedule.Schedule) (lane []int, count map[platform.WorkerID]int) {
	return lanes(len(s.Spans), func(i int) (platform.WorkerID, time.Duration, time.Duration) {
		v := &s.Spans[i]
		return v.Worker, v.Start, v.End
	})
}
