package relax

import (
	"cmp"
	"fmt"
	"iter"
	"slices"

	"dahl/plan/certificate"
)

// Of the rows that say how much work lies before, behind or between tasks there are too many, and
// most never bind. They are added where a solution violates them.

// cutsPerRound is how many classes of each family and device are added at once.
const cutsPerRound = 30

// cutTolerance, relative to the time of all units, is a violation that is worth a row.
const cutTolerance = 1e-6

// cut is a class of rows of which a solution violates the first.
type cut struct {
	family       certificate.Family
	device, a, b int // a and b: colours
	back         int32
	by           float64
}

func (c *cut) key() string {
	return fmt.Sprint(c.family, " ", c.device, " ", c.back, " ", c.a, " ", c.b)
}

// separation looks for rows that a solution violates.
type separation struct {
	*quotient
	span  float64
	start []float64 // by task
	end   []float64
	work  []float64 // by task: on the device that is looked at
}

// separate adds the rows that a solution violates most, and returns how many classes it added.
func (q *quotient) separate(x []float64) (added int, err error) {
	m := q.m
	n := len(m.Tasks)
	s := &separation{quotient: q, span: x[q.column[m.ColumnSpan()]], start: make([]float64, n), end: make([]float64, n), work: make([]float64, n)}
	share := func(t, k int) float64 { return x[q.column[m.ColumnShare(int32(t))+k]] }
	for t := range n {
		s.start[t] = x[q.column[m.ColumnStart(int32(t))]]
		s.end[t] = s.start[t]
		for k, o := range m.Tasks[t].Options {
			s.end[t] += float64(float64(o.Nanos) * share(t, k))
		}
	}
	for d := range m.Devices {
		clear(s.work)
		for t := range n {
			for k, o := range m.Tasks[t].Options {
				if o.Device == d {
					s.work[t] += float64(float64(o.Nanos) * share(t, k))
				}
			}
		}
		for _, cuts := range [][]cut{s.tails(d), s.heads(d), s.betweens(d)} {
			slices.SortStableFunc(cuts, func(a, b cut) int { return cmp.Compare(b.by, a.by) })
			for _, c := range cuts[:min(len(cuts), cutsPerRound)] {
				if q.has[c.key()] {
					continue
				}
				rows := q.rowsOf(&c)
				if rows == nil {
					continue
				}
				if err := q.add(c.key(), rows); err != nil {
					return added, err
				}
				added++
			}
		}
	}
	return added, nil
}

// violated appends a cut if the work of some tasks is more than the device has time for.
func (s *separation) violated(cuts []cut, c cut, tasks iter.Seq[int32], time float64) []cut {
	units := float64(s.m.Devices[c.device].Units)
	c.by = -float64(units * time)
	for t := range tasks {
		c.by += s.work[t]
	}
	if c.by <= cutTolerance*units*s.span {
		return cuts
	}
	return append(cuts, c)
}

func (s *separation) tails(device int) (cuts []cut) {
	if s.m.Steady {
		return nil
	}
	for a, tasks := range s.colours.tasks {
		t := tasks[0]
		cuts = s.violated(cuts, cut{family: certificate.Tail, device: device, a: a}, s.m.After(t, 0), s.span-s.end[t])
	}
	return cuts
}

func (s *separation) heads(device int) (cuts []cut) {
	if s.m.Steady {
		return nil
	}
	for a, tasks := range s.colours.tasks {
		t := tasks[0]
		cuts = s.violated(cuts, cut{family: certificate.Head, device: device, a: a}, s.m.Before(t, 0), s.start[t])
	}
	return cuts
}

// betweens are the rows between a colour and another of which one has a single task, and in a steady step
// also into the next step and from each task to itself there.
func (s *separation) betweens(device int) (cuts []cut) {
	backs := int32(1)
	if s.m.Steady {
		backs = 2
	}
	after, before := s.sums(s.m.After), s.sums(s.m.Before)
	units := float64(s.m.Devices[device].Units)
	for back := range backs {
		for a, from := range s.colours.tasks {
			for b, to := range s.colours.tasks {
				first, then := from[0], to[0]
				if len(from) > 1 && len(to) > 1 && !(a == b && back == 1) || !s.m.Precedes(first, then, int(back)) {
					continue
				}
				time := s.start[then] + float64(float64(back)*s.span) - s.end[first]
				// What follows the second follows the first as well, and is not between them.
				most := min(after[0][a]-after[0][b], before[0][b]-before[0][a])
				if back == 1 {
					most = min(after[0][a]+after[1][a]-after[0][b], before[0][b]+before[1][b]-before[0][a])
				}
				if most <= units*time {
					continue
				}
				cuts = s.violated(cuts, cut{certificate.Between, device, a, b, back, 0}, s.m.Between(first, then, int(back)), time)
			}
		}
	}
	return cuts
}

// sums is the work on the device that is looked at of what comes after or before the first task of each
// colour, by how many steps away.
func (s *separation) sums(of func(t int32, steps int) iter.Seq[int32]) (sums [2][]float64) {
	for steps := range sums {
		sums[steps] = make([]float64, len(s.colours.tasks))
		for a, tasks := range s.colours.tasks {
			for t := range of(tasks[0], steps) {
				sums[steps][a] += s.work[t]
			}
		}
	}
	return sums
}

// rowsOf are the rows of a class; nil where not all of them hold. Within a colour a task is paired with
// itself.
func (q *quotient) rowsOf(c *cut) (rows []certificate.Row) {
	for _, s := range q.colours.tasks[c.a] {
		if c.family != certificate.Between {
			rows = append(rows, certificate.Row{Family: c.family, From: s, To: s, Where: c.device})
			continue
		}
		for _, t := range q.colours.tasks[c.b] {
			if c.a == c.b && s != t {
				continue
			}
			if !q.m.Precedes(s, t, int(c.back)) {
				return nil
			}
			rows = append(rows, certificate.Row{Family: c.family, From: s, To: t, Back: c.back, Where: c.device})
		}
	}
	return rows
}
