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
		for _, find := range []func(int) []cut{q.tails, q.heads, q.betweens} {
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

// betweens are the rows between a colour and another of which one has a single task.
func (q *quotient) betweens(device int) (cuts []cut) {
	for a, from := range q.colours.tasks {
		for b, to := range q.colours.tasks {
			key := fmt.Sprintf("%s %d %d %d", certificate.Between, device, a, b)
			if len(from) > 1 && len(to) > 1 || q.has[key] {
				continue
			}
			c := cut{key: key}
			for _, s := range from {
				for _, t := range to {
					c.rows = append(c.rows, certificate.Row{Family: certificate.Between, From: s, To: t, Where: device})
				}
			}
			if !slices.ContainsFunc(c.rows, func(r certificate.Row) bool { return !q.m.Precedes(r.From, r.To) }) {
				cuts = append(cuts, c)
			}
		}
	}
	return cuts
}
