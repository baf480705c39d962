package relax

import (
	"cmp"
	"math"
	"slices"

	"dahl/plan/certificate"
	"dahl/plan/problem"
)

const (
	// references is how many references a period is looked for from, and mostLengths, over the tasks of a step, how many lengths are
	// tried in all: each takes milliseconds for a hundred tasks, and a second for a few thousand.
	references  = 3
	mostLengths = 16_000
	// apartEnough is how much less work there is around the second task that is taken for a reference.
	apartEnough = 0.9
)

// period returns the row that excludes steps of a length between a known and a sufficient one; nil means there is none.
func period(m *certificate.Model, known, enough float64) *certificate.Row {
	tries := min(24, mostLengths/len(m.Tasks)) / references
	const longest = 1e15 // more may be infinite, where nothing draws power for the sake of time
	if !m.Steady || len(m.Memories) > 1 || m.Objective == problem.EDP || tries == 0 || enough > longest {
		return nil
	}
	var found *certificate.Row
	low, high := int64(known), int64(math.Ceil(enough))
	for _, around := range referencesOf(m) {
		length := high
		for range tries {
			r := &certificate.Row{Family: certificate.Period, To: around[0], With: around[1:], Nanos: length}
			if _, err := m.Form(r); err != nil {
				high = length
			} else if found, low = r, length; low == high {
				return found
			}
			if length = (low + high) / 2; length == low {
				break
			}
		}
		high = int64(math.Ceil(enough))
	}
	return found
}

// referencesOf are the single task and the tasks of a colour with the most work between them and the next step's, and another
// single one: what most has to go through, and all of a step cannot avoid.
func referencesOf(m *certificate.Model) (all [][]int32) {
	type reference struct {
		tasks []int32
		work  float64
	}
	var single, several []reference
	for _, tasks := range refine(m).tasks {
		r := reference{tasks: tasks, work: around(m, tasks)}
		switch {
		case r.work == 0:
		case len(tasks) == 1:
			single = append(single, r)
		default:
			several = append(several, r)
		}
	}
	byWork := func(a, b reference) int { return cmp.Compare(b.work, a.work) }
	slices.SortStableFunc(single, byWork)
	slices.SortStableFunc(several, byWork)
	for _, list := range [][]reference{single, several} {
		if len(list) > 0 {
			all = append(all, list[0].tasks)
		}
	}
	if k := slices.IndexFunc(single, func(r reference) bool { return r.work < float64(apartEnough*single[0].work) }); k > 0 {
		all = append(all, single[k].tasks)
	}
	return all
}

// around is the work that follows all of some tasks and comes before one of them, or is one of them, a step later.
func around(m *certificate.Model, tasks []int32) (work float64) {
	for step := range 2 {
		for t := range int32(len(m.Tasks)) {
			follows := !slices.ContainsFunc(tasks, func(j int32) bool { return !m.Precedes(j, t, step) })
			if follows && slices.ContainsFunc(tasks, func(j int32) bool { return step == 1 && j == t || m.Precedes(t, j, 1-step) }) {
				work += float64(m.LeastNanos(t))
			}
		}
	}
	return work
}
