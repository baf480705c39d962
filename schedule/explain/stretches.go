package explain

import (
	"cmp"
	"iter"
	"slices"
	"time"

	"dahl/schedule"
)

// Stretch is a time in which a unit or a link changed its state, or slept.
type Stretch struct {
	Change     *schedule.Change // the change itself, or the one into the sleep
	Asleep     bool
	Start, End time.Duration
}

// Stretches lists the stretches of every worker and of every link up to the makespan, in the order of time. They do
// not overlap: where the clock of a device changes while a unit sleeps, it sleeps.
func Stretches(p *schedule.Problem, s *schedule.Schedule) (units, links [][]Stretch) {
	unitChanges, linkChanges := changesOf(p, s)
	all := func(lists [][]int32) [][]Stretch {
		stretches := make([][]Stretch, len(lists))
		for i, list := range lists {
			stretches[i] = stretchesOf(s, list)
		}
		return stretches
	}
	return all(unitChanges), all(linkChanges)
}

// changesOf lists the changes of every worker and of every link, by start.
func changesOf(p *schedule.Problem, s *schedule.Schedule) (units, links [][]int32) {
	units, links = make([][]int32, len(p.Platform.Workers)), make([][]int32, len(p.Platform.Links))
	for i := range s.Changes {
		c := &s.Changes[i]
		if c.Device < 0 {
			links[c.Link] = append(links[c.Link], int32(i))
			continue
		}
		for w := range p.Platform.Workers {
			if unit := &p.Platform.Workers[w]; c.Covers(unit.Device, unit.Index) {
				units[w] = append(units[w], int32(i))
			}
		}
	}
	return units, links
}

func stretchesOf(s *schedule.Schedule, changes []int32) (all []Stretch) {
	for _, i := range changes {
		c := &s.Changes[i]
		if c.Kind == schedule.SwitchClock {
			continue
		}
		if n := len(all); n > 0 && all[n-1].Asleep {
			all[n-1].End = c.Start
		}
		all = append(all, Stretch{c, false, c.Start, c.End})
		if c.Kind == schedule.FallAsleep {
			all = append(all, Stretch{c, true, c.End, s.Makespan})
		}
	}
	sleeps := all
	for _, i := range changes {
		if c := &s.Changes[i]; c.Kind == schedule.SwitchClock {
			for from, to := range Without(c.Start, c.End, sleeps) {
				all = append(all, Stretch{c, false, from, to})
			}
		}
	}
	for i := range all {
		all[i].End = min(all[i].End, s.Makespan)
	}
	all = slices.DeleteFunc(all, func(x Stretch) bool { return x.End <= x.Start })
	slices.SortStableFunc(all, func(a, b Stretch) int { return cmp.Compare(a.Start, b.Start) })
	return all
}

// Without is the rest of a time outside the stretches of one unit or link.
func Without(from, to time.Duration, stretches []Stretch) iter.Seq2[time.Duration, time.Duration] {
	return func(yield func(from, to time.Duration) bool) {
		next, _ := slices.BinarySearchFunc(stretches, from, func(x Stretch, from time.Duration) int { return cmp.Or(cmp.Compare(x.End, from), -1) })
		for _, x := range stretches[next:] {
			if x.Start >= to {
				break
			}
			if x.Start > from && !yield(from, x.Start) {
				return
			}
			from = max(from, x.End)
		}
		if from < to {
			yield(from, to)
		}
	}
}
