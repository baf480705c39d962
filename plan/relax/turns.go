package relax

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"

	"dahl/plan/certificate"
	"dahl/plan/lp"
)

// maxPairs bounds the rows of a class of turns, of which there is one for each pair of tasks.
const maxPairs = 100

// turn is two colours that a device of one unit runs: a task of the second begins no sooner, in the next step,
// than one of the first ends.
type turn struct{ device, from, to int }

func (t turn) key() string { return fmt.Sprint("turn ", t.device, " ", t.from, " ", t.to) }

// turns lists violated turns of devices that run the colours in every plan of a model: the last end before each, and each
// before the first start.
func (q *quotient) turns(m *certificate.Model, x []float64) (found []turn) {
	if !m.Steady || Without[certificate.Turn] {
		return nil
	}
	span := x[q.column[m.ColumnSpan()]]
	start, end := make([]float64, len(q.colours.tasks)), make([]float64, len(q.colours.tasks))
	for a, tasks := range q.colours.tasks {
		start[a] = x[q.column[m.ColumnStart(tasks[0])]]
		end[a] = start[a]
		for k, o := range m.Tasks[tasks[0]].Options {
			end[a] += float64(float64(o.Nanos) * x[q.column[m.ColumnShare(tasks[0])+k]])
		}
	}
	for d := range m.Devices {
		if m.Devices[d].Units != 1 {
			continue
		}
		var here []int
		for a, tasks := range q.colours.tasks {
			if m.OnlyOn(tasks[0], d) {
				here = append(here, a)
			}
		}
		if len(here) == 0 {
			continue
		}
		first := slices.MinFunc(here, func(a, b int) int { return cmp.Compare(start[a], start[b]) })
		last := slices.MaxFunc(here, func(a, b int) int { return cmp.Compare(end[a], end[b]) })
		for _, a := range here {
			for _, t := range [2]turn{{d, a, first}, {d, last, a}} {
				if end[t.from]-start[t.to]-span > cutTolerance*span && len(q.colours.tasks[t.from])*len(q.colours.tasks[t.to]) <= maxPairs {
					found = append(found, t)
				}
			}
		}
	}
	return found
}

// rowsOfTurn are the rows of all pairs of tasks of a turn.
func (q *quotient) rowsOfTurn(t turn) (rows []certificate.Row) {
	for _, from := range q.colours.tasks[t.from] {
		for _, to := range q.colours.tasks[t.to] {
			rows = append(rows, certificate.Row{Family: certificate.Turn, From: from, To: to, Where: t.device})
		}
	}
	return rows
}

// addTurn adds the one row that stands for all pairs of a turn. Where the turn need not hold, a spare column makes up for the
// difference; -1 means it holds always.
func (q *quotient) addTurn(t turn, spare int) {
	from, to := q.colours.tasks[t.from][0], q.colours.tasks[t.to][0]
	sums := map[int32]float64{}
	sums[q.column[q.m.ColumnSpan()]]++
	sums[q.column[q.m.ColumnStart(to)]]++
	sums[q.column[q.m.ColumnStart(from)]]--
	for k, o := range q.m.Tasks[from].Options {
		sums[q.column[q.m.ColumnShare(from)+k]] -= float64(o.Nanos)
	}
	var terms []lp.Term
	for _, j := range slices.Sorted(maps.Keys(sums)) {
		if sums[j] != 0 {
			terms = append(terms, lp.Term{Column: int(j), Coefficient: sums[j]})
		}
	}
	if spare >= 0 {
		terms = append(terms, lp.Term{Column: spare, Coefficient: 1})
	}
	q.program.AddRow(0, math.Inf(1), terms)
	q.has[t.key()] = true
	q.classes = append(q.classes, q.rowsOfTurn(t))
}

// separateTurns adds the turns that a solution violates.
func (q *quotient) separateTurns(x []float64) (added int) {
	for _, t := range q.turns(q.m, x) {
		if !q.has[t.key()] {
			q.addTurn(t, -1)
			added++
		}
	}
	return added
}
