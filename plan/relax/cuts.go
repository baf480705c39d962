package relax

import (
	"cmp"
	"fmt"
	"slices"

	"dahl/plan/certificate"
	"dahl/schedule/ready"
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

// Before is the order of a heap.
func (c cut) Before(other cut) bool { return compareCuts(c, other) < 0 }

// compareCuts is for sorting cuts of a family and device, the most violated first.
func compareCuts(a, b cut) int {
	return cmp.Or(cmp.Compare(b.by, a.by), cmp.Compare(a.back, b.back), cmp.Compare(a.a, b.a), cmp.Compare(a.b, b.b))
}

// separation looks for rows that a solution violates.
type separation struct {
	*quotient
	span  float64
	start []float64 // by task
	end   []float64

	// Of the device that is looked at:
	units, least  float64 // a violation that is worth a row
	work          *certificate.Sums
	after, before [2][]float64 // by how many steps later or earlier, and colour: the work that comes after or before its first task
}

// separate adds the rows that a solution violates most, and returns how many classes it added.
func (q *quotient) separate(x []float64) (added int) {
	m := q.m
	n := len(m.Tasks)
	s := &separation{quotient: q, span: x[q.column[m.ColumnSpan()]], start: make([]float64, n), end: make([]float64, n)}
	share := func(t, k int) float64 { return x[q.column[m.ColumnShare(int32(t))+k]] }
	for t := range n {
		s.start[t] = x[q.column[m.ColumnStart(int32(t))]]
		s.end[t] = s.start[t]
		for k, o := range m.Tasks[t].Options {
			s.end[t] += float64(float64(o.Nanos) * share(t, k))
		}
	}
	work := make([]float64, n)
	for d := range m.Devices {
		clear(work)
		for t := range n {
			for k, o := range m.Tasks[t].Options {
				if o.Device == d {
					work[t] += float64(float64(o.Nanos) * share(t, k))
				}
			}
		}
		s.lookAt(d, work)
		for _, cuts := range [][]cut{s.tails(d), s.betweens(d)} {
			for _, c := range cuts {
				rows := q.rowsOf(&c)
				if rows == nil || q.has[c.key()] {
					continue
				}
				q.add(c.key(), rows)
				added++
			}
		}
	}
	return added
}

// lookAt adds up the work on a device.
func (s *separation) lookAt(device int, work []float64) {
	s.units = float64(s.m.Devices[device].Units)
	s.least = cutTolerance * s.units * s.span
	s.work = s.m.Sums(work)
	for steps := range s.after {
		s.after[steps], s.before[steps] = make([]float64, len(s.colours.tasks)), make([]float64, len(s.colours.tasks))
		for a, tasks := range s.colours.tasks {
			if steps == 0 || s.m.Steady {
				s.after[steps][a], s.before[steps][a] = s.work.After(tasks[0], steps), s.work.Before(tasks[0], steps)
			}
		}
	}
}

// mostViolated are the cuts with the greatest violations, as far as they are worth rows.
func (s *separation) mostViolated(cuts []cut) []cut {
	slices.SortFunc(cuts, compareCuts)
	cuts = cuts[:min(len(cuts), cutsPerRound)]
	for len(cuts) > 0 && cuts[len(cuts)-1].by <= s.least {
		cuts = cuts[:len(cuts)-1]
	}
	return cuts
}

func (s *separation) tails(device int) (cuts []cut) {
	if s.m.Steady {
		return nil
	}
	for a, tasks := range s.colours.tasks {
		cuts = append(cuts, cut{family: certificate.Tail, device: device, a: a, by: s.after[0][a] - float64(s.units*(s.span-s.end[tasks[0]]))})
	}
	return s.mostViolated(cuts)
}

// betweens are the rows between a colour and another of which one has a single task, and in a steady step
// also into the next step and from each task to itself there. The sums of what is between are
// made where they may be among the greatest.
func (s *separation) betweens(device int) []cut {
	backs := int32(1)
	if s.m.Steady {
		backs = 2
	}
	var cuts ready.Heap[cut]
	for back := range backs {
		for a, from := range s.colours.tasks {
			for b, to := range s.colours.tasks {
				first, then := from[0], to[0]
				if len(from) > 1 && len(to) > 1 && !(a == b && back == 1) || !s.m.Precedes(first, then, int(back)) {
					continue
				}
				// What follows the second follows the first as well, and is not between them.
				most := min(s.after[0][a]-s.after[0][b], s.before[0][b]-s.before[0][a])
				if back == 1 {
					most = min(s.after[0][a]+s.after[1][a]-s.after[0][b], s.before[0][b]+s.before[1][b]-s.before[0][a])
				}
				time := s.start[then] + float64(float64(back)*s.span) - s.end[first]
				if by := most - float64(s.units*time); by > s.least {
					cuts.Push(cut{certificate.Between, device, a, b, back, by})
				}
			}
		}
	}
	var found []cut
	for len(cuts) > 0 && !(len(found) >= cutsPerRound && found[len(found)-1].by >= cuts[0].by) {
		c := cuts.Pop()
		first, then := s.colours.tasks[c.a][0], s.colours.tasks[c.b][0]
		c.by = s.work.Between(first, then, int(c.back)) - float64(s.units*(s.start[then]+float64(float64(c.back)*s.span)-s.end[first]))
		found = s.mostViolated(append(found, c))
	}
	return found
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
