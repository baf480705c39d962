package relax

import (
	"cmp"
	"fmt"
	"slices"

	"dahl/plan/certificate"
)

// Of the rows that say how much work lies before, behind or between tasks there are too many, and
// most never bind. They are added where a solution violates them.

// cutsPerRound is how many classes of each family and device are added at once.
const cutsPerRound = 30

// violation relative to the makespan that is worth a row.
const cutTolerance = 1e-6

// cut is a class of rows that a solution violates.
type cut struct {
	key  string
	rows []certificate.Row
	by   float64
}

// separate adds the rows that a solution violates most, and returns how many classes it added.
func (q *quotient) separate(x []float64) (added int, err error) {
	m := q.m
	for d := range m.Devices {
		tolerance := cutTolerance * x[q.column[m.ColumnSpan()]] * float64(m.Devices[d].Units)
		families := []func(int) []cut{q.betweens}
		if !m.Steady {
			families = append(families, q.tails, q.heads)
		}
		for _, find := range families {
			cuts := find(d)
			for i := range cuts {
				if cuts[i].by, err = q.violation(&cuts[i].rows[0], x); err != nil {
					return added, err
				}
			}
			slices.SortStableFunc(cuts, func(a, b cut) int { return cmp.Compare(b.by, a.by) })
			for _, c := range cuts[:min(len(cuts), cutsPerRound)] {
				if c.by <= tolerance {
					break
				}
				if err := q.add(c.key, c.rows); err != nil {
					return added, err
				}
				added++
			}
		}
	}
	return added, nil
}

// violation is by how much a solution violates a row.
func (q *quotient) violation(r *certificate.Row, x []float64) (float64, error) {
	f, err := q.m.Form(r)
	sum := -f.Least
	for k, j := range f.Columns {
		sum += f.Coefficients[k] * x[q.column[j]]
	}
	return -sum, err
}

// candidates lists the classes of a family that the program does not have.
func (q *quotient) candidates(family certificate.Family, device int, row func(t int32) certificate.Row) (cuts []cut) {
	for colour, tasks := range q.colours.tasks {
		key := fmt.Sprintf("%s %d %d", family, device, colour)
		if q.has[key] {
			continue
		}
		c := cut{key: key}
		for _, t := range tasks {
			c.rows = append(c.rows, row(t))
		}
		cuts = append(cuts, c)
	}
	return cuts
}

func (q *quotient) tails(device int) []cut {
	return q.candidates(certificate.Tail, device, func(t int32) certificate.Row {
		return certificate.Row{Family: certificate.Tail, From: t, Where: device}
	})
}

func (q *quotient) heads(device int) []cut {
	return q.candidates(certificate.Head, device, func(t int32) certificate.Row {
		return certificate.Row{Family: certificate.Head, To: t, Where: device}
	})
}

// betweens are the rows between a colour and another of which one has a single task, and in a steady step
// also into the next step and from each task to itself there.
func (q *quotient) betweens(device int) (cuts []cut) {
	backs := int32(1)
	if q.m.Steady {
		backs = 2
	}
	for back := range backs {
		for a, from := range q.colours.tasks {
			for b, to := range q.colours.tasks {
				if len(from) > 1 && len(to) > 1 && !(a == b && back == 1) {
					continue
				}
				if c := q.between(device, back, a, b); c.rows != nil {
					cuts = append(cuts, c)
				}
			}
		}
	}
	return cuts
}

// between is the class of rows between two colours; without rows where not all of them hold or the program
// has it. Within a colour a task is paired with itself.
func (q *quotient) between(device int, back int32, a, b int) cut {
	c := cut{key: fmt.Sprintf("%s %d %d %d %d", certificate.Between, device, back, a, b)}
	if q.has[c.key] {
		return c
	}
	for _, s := range q.colours.tasks[a] {
		for _, t := range q.colours.tasks[b] {
			if a == b && s != t {
				continue
			}
			if !q.m.Precedes(s, t, int(back)) {
				return cut{}
			}
			c.rows = append(c.rows, certificate.Row{Family: certificate.Between, From: s, To: t, Back: back, Where: device})
		}
	}
	return c
}
