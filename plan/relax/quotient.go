package relax

import (
	"fmt"
	"math"

	"dahl/plan/certificate"
	"dahl/plan/lp"
	"dahl/plan/problem"
	"dahl/platform"
)

// quotient is the linear program of a model in which the columns of a colour are one, and the rows of a
// class are one: their mean.
type quotient struct {
	m       *certificate.Model
	colours *colours
	column  []int32 // by column of the model: of the program
	program *lp.Problem
	classes [][]certificate.Row // by row of the program: the rows of the model that it stands for
	has     map[string]bool     // keys of classes
}

// newQuotient makes the columns.
func newQuotient(m *certificate.Model, c *colours, horizon float64) *quotient {
	q := &quotient{m: m, colours: c, program: new(lp.Problem), has: map[string]bool{}}
	n := m.NumColumns()
	q.column = make([]int32, n)
	cost := m.Cost()
	like := q.like()
	total := make([]float64, n)
	for j := range n {
		total[like[j]] += cost[j]
	}
	for j := range n {
		if like[j] != int32(j) {
			q.column[j] = q.column[like[j]]
			continue
		}
		upper := math.Inf(1) // the rows and the objective keep it below its bound, which would cost the solver time
		if total[j] < 0 || m.Upper(j, horizon) == 0 {
			upper = m.Upper(j, horizon)
		}
		q.column[j] = int32(q.program.AddColumn(total[j], 0, upper))
	}
	return q
}

// like is the first column of the same colour, for each column of the model.
func (q *quotient) like() []int32 {
	like := make([]int32, q.m.NumColumns())
	for j := range like {
		like[j] = int32(j)
	}
	same := func(a, b int32) { like[b] = a }
	for _, tasks := range q.colours.tasks {
		for _, t := range tasks[1:] {
			for k := range q.m.Tasks[t].Options {
				same(int32(q.m.ColumnShare(tasks[0])+k), int32(q.m.ColumnShare(t)+k))
			}
			same(int32(q.m.ColumnStart(tasks[0])), int32(q.m.ColumnStart(t)))
		}
	}
	for _, versions := range q.colours.versions {
		for _, v := range versions[1:] {
			for at := range q.m.Memories {
				same(int32(q.m.ColumnCopy(int(versions[0]), at)), int32(q.m.ColumnCopy(int(v), at)))
			}
		}
	}
	return like
}

// add adds a class of rows of the model under a key, if there is none yet.
func (q *quotient) add(key string, rows []certificate.Row) {
	if q.has[key] {
		return
	}
	q.has[key] = true
	sums := map[int32]float64{}
	var order []int32
	var least float64
	equal := false
	for i := range rows {
		f, err := q.m.Form(&rows[i])
		if err != nil {
			panic("relax: " + err.Error())
		}
		for k, j := range f.Columns {
			at := q.column[j]
			if _, ok := sums[at]; !ok {
				order = append(order, at)
			}
			sums[at] += f.Coefficients[k]
		}
		least, equal = least+f.Least, f.Equal
	}
	n := float64(len(rows))
	terms := make([]lp.Term, 0, len(order))
	for _, at := range order {
		if sums[at] != 0 {
			terms = append(terms, lp.Term{Column: int(at), Coefficient: sums[at] / n})
		}
	}
	most := math.Inf(1)
	if equal {
		most = least / n
	}
	q.program.AddRow(least/n, most, terms)
	q.classes = append(q.classes, rows)
}

// addFixed adds the rows that do not depend on a solution.
func (q *quotient) addFixed() {
	q.addWork()
	q.addCrossing()
	q.addPools()
	q.addOrders()
}

// addOrders adds the rows of edges and of data.
func (q *quotient) addOrders() {
	m := q.m
	type group struct {
		key  string
		rows []certificate.Row
	}
	var groups []*group
	at := map[string]*group{}
	put := func(key string, r certificate.Row) {
		g, ok := at[key]
		if !ok {
			g = &group{key: key}
			at[key], groups = g, append(groups, g)
		}
		g.rows = append(g.rows, r)
	}
	leads := make([]bool, len(m.Tasks))
	for i := range m.Edges {
		e := &m.Edges[i]
		leads[e.From] = leads[e.From] || e.Back == 0
		key := fmt.Sprint(q.colours.task[e.From], q.colours.task[e.To], e.Back, e.Nanos)
		put("precede "+key, certificate.Row{Family: certificate.Precede, From: e.From, To: e.To, Back: e.Back})
		for memory := range m.Memories {
			if e.Bytes > 0 && len(m.Memories) > 1 && e.Nanos[memory] < int64(platform.Unreachable) {
				put(fmt.Sprintf("deliver %d %s", memory, key), certificate.Row{Family: certificate.Deliver, From: e.From, To: e.To, Back: e.Back, Where: memory})
			}
		}
	}
	for t := range int32(len(m.Tasks)) {
		if !leads[t] && !m.Steady {
			put(fmt.Sprint("finish ", q.colours.task[t]), certificate.Row{Family: certificate.Finish, To: t})
		}
	}
	for memory := range m.Memories {
		if len(m.Memories) == 1 {
			break
		}
		for v := range m.Versions {
			for _, t := range m.Versions[v].Readers {
				r := certificate.Row{Family: certificate.Copy, From: int32(v), To: t, Where: memory}
				if _, err := m.Form(&r); err == nil {
					put(fmt.Sprintf("copy %d %d %d", memory, q.colours.version[v], q.colours.task[t]), r)
				}
			}
		}
		if m.Memories[memory].Engines > 0 {
			put(fmt.Sprint("engine ", memory), certificate.Row{Family: certificate.Engine, Where: memory})
		}
	}
	for _, g := range groups {
		q.add(g.key, g.rows)
	}
}

// addCrossing adds the rows of links, as far as the model has them.
func (q *quotient) addCrossing() {
	for _, family := range []certificate.Family{certificate.Cross, certificate.Tied} {
		r := certificate.Row{Family: family}
		if _, err := q.m.Form(&r); err == nil {
			q.add(string(family), []certificate.Row{r})
		}
	}
}

// addPools adds the rows of how long tasks take at least, counted whole. In a steady step these are about the
// task with the most work between itself and the next step's.
func (q *quotient) addPools() {
	m := q.m
	units := 0
	for d := range m.Devices {
		units += m.Devices[d].Units
	}
	if units == 1 {
		return // the work of one unit says as much
	}
	around := int32(0)
	if !m.Steady {
		q.add(string(certificate.Pool), []certificate.Row{{Family: certificate.Pool}})
	} else if around = busiest(m); around < 0 {
		return
	}
	if len(m.Memories) > 1 {
		q.add(string(certificate.Spread), []certificate.Row{{Family: certificate.Spread, To: around}})
	}
}

// addPeriod adds the row of a period, if there is one.
func (q *quotient) addPeriod(r *certificate.Row) {
	if r != nil {
		q.add(string(r.Family), []certificate.Row{*r})
	}
}

// busiest is the task with the most work between itself and the next step's; -1 means no task waits for its last step.
func busiest(m *certificate.Model) int32 {
	least := make([]float64, len(m.Tasks))
	for t := range least {
		least[t] = float64(m.LeastNanos(int32(t)))
	}
	sums := m.Sums(least)
	found, most := int32(-1), -1.0
	for t := range int32(len(m.Tasks)) {
		if !m.Precedes(t, t, 1) {
			continue
		}
		if work := least[t] + sums.Between(t, t, 1); work > most {
			found, most = t, work
		}
	}
	return found
}

// addWork adds the rows of what tasks take of the units of devices, without their order.
func (q *quotient) addWork() {
	for c, tasks := range q.colours.tasks {
		rows := make([]certificate.Row, len(tasks))
		for i, t := range tasks {
			rows[i] = certificate.Row{Family: certificate.Assign, To: t}
		}
		q.add(fmt.Sprint(certificate.Assign, " ", c), rows)
	}
	for d := range q.m.Devices {
		for _, family := range []certificate.Family{certificate.Area, certificate.Awake, certificate.Span} {
			q.add(fmt.Sprint(family, " ", d), []certificate.Row{{Family: family, Where: d}})
		}
	}
	for i := range q.m.Conditions {
		if len(q.m.Conditions[i].Tasks) > 0 { // else T has other bounds
			q.add(fmt.Sprint(certificate.Given, " ", i), []certificate.Row{{Family: certificate.Given, Where: i}})
		}
	}
	q.keepDeadline()
}

// keepDeadline makes T at most the deadline. Above it T is so dear that a program without a plan in time has a bound above
// every useful plan. Such a program keeps an optimum, whose multipliers are the proof.
func (q *quotient) keepDeadline() {
	most := q.m.Horizon(math.Inf(1))
	if math.IsInf(most, 1) || q.m.Objective == problem.Time {
		return
	}
	all := 0.0 // that any plan costs within the deadline
	for j, c := range q.m.Cost() {
		all += float64(max(0, c) * q.m.Upper(j, most))
	}
	const asDear = 10
	late := q.program.AddColumn(asDear*all/most, 0, math.Inf(1))
	q.program.AddRow(math.Inf(-1), most, []lp.Term{{Column: int(q.column[q.m.ColumnSpan()]), Coefficient: 1}, {Column: late, Coefficient: -1}})
	q.classes = append(q.classes, nil)
}
