package relax

import (
	"context"
	"fmt"
	"math"
	"slices"

	"dahl/plan/certificate"
	"dahl/plan/lp"
)

// Branch proves a bound part by part, see [certificate.Condition]. It splits the part with the least bound by
// how many tasks of a colour run at a memory, where the relaxation says that this is no whole number, and one
// of energy times time by T as well. It ends after a number of solved parts, when all bounds reach the value of the known plan
// or cannot rise, and when the context ends, with the proofs so far. A part of a large program counts as more of
// them. All parts are solved by one program, of which a condition only changes the bounds of a column.
func Branch(ctx context.Context, m *certificate.Model, value float64, nodes int) (*Parts, error) {
	b := newBranching(ctx, m, value)
	root := &part{proof: &certificate.Proof{Value: value}}
	err := b.solve(root, maxRounds)
	all := []*part{root}
	for err == nil && 2*len(all)-1 < nodes && b.effort < float64(nodes)*effortPerNode {
		least := 0
		for i, p := range all {
			if p.bound < all[least].bound {
				least = i
			}
		}
		if all[least].bound >= value || !b.splits(all[least]) {
			break
		}
		var sides [2]*part
		if sides, err = b.split(all[least]); err == nil {
			all[least] = sides[0]
			all = append(all, sides[1])
		}
	}
	if err != nil && ctx.Err() == nil {
		return nil, err
	}
	found := &Parts{Effort: b.effort / effortPerNode}
	for _, p := range all {
		found.Proofs = append(found.Proofs, p.proof)
	}
	return found, nil
}

// Parts are proofs of parts that are all plans together. Effort is their price, in nodes of a program of middle size.
type Parts struct {
	Proofs []*certificate.Proof
	Effort float64
}

// split solves both parts of a part.
func (b *branching) split(p *part) (sides [2]*part, err error) {
	by, err := b.choose(p)
	for i, c := range [2]certificate.Condition{by, by.Other()} {
		if err == nil {
			sides[i] = p.given(c)
			err = b.solve(sides[i], partRounds)
		}
	}
	return sides, err
}

const (
	// effortPerNode is the price of a solved part in iterations times rows, so that large programs have fewer parts: each of those
	// takes seconds.
	effortPerNode = 3e5
	// nearEnough, relative to the value, is how near a bound has to come for a part to be left alone.
	nearEnough = 1e-9
	// partRounds is how often rows are added for one part.
	partRounds = 3
	// wholeEnough is how far from a whole number a count of tasks may be without being split.
	wholeEnough = 1e-6
)

// part is some of all plans.
type part struct {
	proof   *certificate.Proof
	bound   float64
	between []fraction // counts that are no whole numbers

	// Of energy times time: where between the part's bounds of T it was solved, and whether T was then let
	// free, since nothing runs so fast.
	span float64
	free bool
}

// fraction is a count in a solution that is not whole.
type fraction struct {
	count int
	is    float64
}

// given is the part of a part that fulfils one more condition, with the bound of the whole.
func (p *part) given(c certificate.Condition) *part {
	return &part{proof: &certificate.Proof{Value: p.proof.Value, Where: append(slices.Clip(p.proof.Where), c), Rows: p.proof.Rows}, bound: p.bound}
}

// branching is a program of which parts are solved one after another.
type branching struct {
	ctx    context.Context
	q      *quotient
	solver *lp.Solver
	counts []count
	upper  []float64 // by column of the program: as it is now
	effort float64   // iterations so far, times the rows that the program had
}

// count is how many tasks of a colour run at a memory.
type count struct {
	tasks   []int32
	devices []int
	shares  []int32 // columns of the program, of one task
	column  int     // of the count; -1 means the colour has one task, and the shares say it all

	raised [2]float64 // by side of a split: by how much bounds rose for each task that the count moved, in all
	tried  [2]float64 // and how often
}

func newBranching(ctx context.Context, m *certificate.Model, value float64) *branching {
	q := newQuotient(m, refine(m), m.Horizon(value))
	b := &branching{ctx: ctx, q: q}
	b.addCounts()
	q.addFixed()
	b.solver = lp.NewSolver(q.program)
	b.upper = slices.Repeat([]float64{math.Inf(1)}, q.program.Columns())
	return b
}

// addCounts finds what can be split, and adds a column and a row for each count of more than one task.
func (b *branching) addCounts() {
	m := b.q.m
	for memory := range m.Memories {
		for _, tasks := range b.q.colours.tasks {
			c := count{tasks: tasks, column: -1}
			for k, o := range m.Tasks[tasks[0]].Options {
				if m.Devices[o.Device].Memory != memory {
					continue
				}
				c.shares = append(c.shares, b.q.column[m.ColumnShare(tasks[0])+k])
				if !slices.Contains(c.devices, o.Device) {
					c.devices = append(c.devices, o.Device)
				}
			}
			if len(c.shares) == 0 || len(c.shares) == len(m.Tasks[tasks[0]].Options) {
				continue
			}
			slices.Sort(c.devices)
			if n := float64(len(tasks)); n > 1 {
				c.column = b.q.program.AddColumn(0, 0, n)
				terms := []lp.Term{{Column: c.column, Coefficient: 1}}
				for _, j := range c.shares {
					terms = append(terms, lp.Term{Column: int(j), Coefficient: -n})
				}
				b.q.program.AddRow(0, 0, terms)
				b.q.classes = append(b.q.classes, nil)
			}
			b.counts = append(b.counts, c)
		}
	}
}

// begin solves the program with the bounds of a part.
func (b *branching) begin(p *part, most int) (given *certificate.Model, r *lp.Result, err error) {
	if given, err = b.q.m.Given(p.proof.Where); err == nil {
		b.setBounds(given, p.proof.Where)
		b.setSpan(given, p)
		r, err = b.run(most)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("relaxation: %w", err)
	}
	return given, r, nil
}

// run solves the program as it is.
func (b *branching) run(most int) (*lp.Result, error) {
	r, err := b.solver.Solve(b.ctx, most)
	if err == nil {
		b.effort += float64(r.Iterations * b.q.program.Rows())
	}
	return r, err
}

// solve bounds a part, and finds by what to split it.
func (b *branching) solve(p *part, rounds int) error {
	given, r, err := b.begin(p, iterations)
	for round := range rounds {
		if round > 0 {
			r, err = b.run(iterations)
		}
		if err != nil {
			return fmt.Errorf("relaxation: %w", err)
		}
		if r.Status == lp.Infeasible {
			if b.freeSpan(given, p) {
				continue
			}
			return b.close(p, r.Y, r.Ray)
		}
		if r.Status != lp.Optimal {
			return nil
		}
		if bound := b.bound(given, p, r); bound > p.bound || p.proof.Rows == nil {
			p.bound = max(p.bound, bound)
			p.proof.Rows = b.rows(p, r.Y)
		}
		p.between = b.fractions(r.X)
		if round+1 == rounds {
			break
		}
		if b.q.separate(r.X) == 0 {
			return nil
		}
	}
	return nil
}

// setBounds sets the bounds of columns to a part's.
func (b *branching) setBounds(given *certificate.Model, where []certificate.Condition) {
	for _, tasks := range b.q.colours.tasks {
		for k := range given.Tasks[tasks[0]].Options {
			j := given.ColumnShare(tasks[0]) + k
			upper := math.Inf(1)
			if given.Upper(j, 1) == 0 {
				upper = 0
			}
			at := b.q.column[j]
			if b.upper[at] != upper {
				b.upper[at] = upper
				b.q.program.SetBounds(int(at), 0, upper)
			}
		}
	}
	for i := range b.counts {
		c := &b.counts[i]
		if c.column < 0 {
			continue
		}
		least, most := 0.0, float64(len(c.tasks))
		for k := range where {
			if w := &where[k]; c.is(w) && w.More {
				least = max(least, w.Most+1)
			} else if c.is(w) {
				most = min(most, w.Most)
			}
		}
		b.q.program.SetBounds(c.column, least, most)
	}
}

// is reports whether a condition is about a count.
func (c *count) is(w *certificate.Condition) bool {
	return slices.Equal(c.tasks, w.Tasks) && slices.Equal(c.devices, w.Devices)
}

// fractions are the counts that are no whole numbers in a solution.
func (b *branching) fractions(x []float64) (list []fraction) {
	for i := range b.counts {
		c := &b.counts[i]
		is := 0.0
		for _, j := range c.shares {
			is += float64(x[j] * float64(len(c.tasks)))
		}
		if math.Abs(is-math.Round(is)) > wholeEnough {
			list = append(list, fraction{i, is})
		}
	}
	return list
}

// rows returns the rows of a part's proof with their multipliers. The row of a count says nothing of plans; its multiplier goes
// to the condition that bounds the count.
func (b *branching) rows(p *part, y []float64) []certificate.Multiplied {
	rows := b.q.multiplied(y)
	row := 0
	for i := range b.counts {
		c := &b.counts[i]
		if c.column < 0 {
			continue
		}
		reduced := -y[row]
		row++
		at, tightest := -1, 0.0
		for k := range p.proof.Where {
			if w := &p.proof.Where[k]; reduced != 0 && w.More == (reduced > 0) && c.is(w) && (at < 0 || w.More == (w.Most > tightest)) {
				at, tightest = k, w.Most
			}
		}
		if at >= 0 {
			rows = append(rows, certificate.Multiplied{Row: certificate.Row{Family: certificate.Given, Where: len(b.q.m.Conditions) + at}, Multiplier: math.Abs(reduced)})
		}
	}
	return rows
}

// close bounds a part without a solution, by multipliers that prove this: any multiple of
// them may be added to others.
func (b *branching) close(p *part, y, ray []float64) error {
	p.between = nil
	for scale := 1.0; scale < 1e20; scale *= 1000 {
		sum := slices.Clone(y)
		for i := range sum {
			sum[i] += float64(scale * ray[i])
		}
		try := *p.proof
		try.Rows = b.rows(p, sum)
		bound, err := try.Bound(b.q.m)
		if err != nil {
			return fmt.Errorf("relaxation: %w", err)
		}
		if bound > p.bound {
			p.bound, p.proof.Rows = bound, try.Rows
		}
		if bound >= p.proof.Value {
			return nil
		}
	}
	return nil
}
