package relax

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"dahl/plan/lp"
	"dahl/plan/problem"
	"dahl/plan/shares"
	"dahl/platform"
)

// Sharing says of what a bound by shares is.
type Sharing struct {
	Step     *shares.Step
	Platform *platform.Platform
	problem.Aim
	Leaves int     // into how many parts of all sets it may go
	Enough float64 // a bound that needs no more parts, as the value of a plan

	known map[*shares.Proof]*multiplied
}

// Shares finds a bound of all lowerings on all sets of devices. It splits the sets with the least bound by the units of the device of
// which they have the most different numbers: with few units each has more of the bandwidth of the memory. When ctx ends, it is the best so far.
func Shares(ctx context.Context, s *Sharing) (*shares.Bound, error) {
	s.known = map[*shares.Proof]*multiplied{}
	first, err := s.leaf(ctx, shares.All(s.Platform), nil)
	if err != nil {
		return nil, err
	}
	b := &shares.Bound{Of: shares.Covered, Leaves: []shares.Leaf{*first}}
	for len(b.Leaves) < s.Leaves && ctx.Err() == nil {
		least := slices.MinFunc(b.Leaves, func(x, y shares.Leaf) int { return cmp.Compare(x.Bound(), y.Bound()) })
		device, units := split(least.Sets)
		if device < 0 || least.Bound() >= s.Enough {
			break
		}
		at := slices.IndexFunc(b.Leaves, func(l shares.Leaf) bool { return l.Proofs[0] == least.Proofs[0] })
		low, high := b.Leaves[at].SplitAt(device, units)
		var parts []shares.Leaf
		for _, sets := range []shares.Sets{low, high} {
			if !slices.ContainsFunc(sets.Most, func(n int) bool { return n > 0 }) {
				continue
			}
			l, err := s.leaf(ctx, sets, &least)
			if err != nil && ctx.Err() == nil {
				return nil, err
			}
			if err == nil {
				parts = append(parts, *l)
			}
		}
		if ctx.Err() == nil { // else their bounds may be less than the one of the whole
			b.Leaves = slices.Replace(b.Leaves, at, at+1, parts...)
		}
	}
	for i := range b.Leaves {
		if err := s.prove(&b.Leaves[i]); err != nil {
			return nil, err
		}
	}
	return b, nil
}

// prove finds what the proofs of a leaf prove.
func (s *Sharing) prove(l *shares.Leaf) error {
	for i, part := range shares.Parts(s.Objective) {
		m, err := shares.NewModel(s.Step, s.Platform, l.Sets, part, s.Steady)
		if err != nil {
			return err
		}
		if l.Bounds[i], err = l.Proofs[i].Bound(m, s.Deadline); err != nil {
			return err
		}
	}
	return nil
}

// split is a device of sets and a number of its units between the least and the most; -1 means that all numbers are much the same.
func split(s shares.Sets) (device, units int) {
	const alike = 1.04
	device, most := -1, alike
	for d := range s.Most {
		if ratio := float64(s.Most[d]) / float64(max(1, s.Least[d])); ratio > most {
			device, most = d, ratio
		}
	}
	if device < 0 {
		return device, 0
	}
	low := max(1, s.Least[device])
	return device, max(low+1, int(math.Sqrt(float64(low)*float64(s.Most[device]))))
}

// leaf finds proofs for some sets, which are a part of others, and their bounds in floating-point numbers.
func (s *Sharing) leaf(ctx context.Context, sets shares.Sets, of *shares.Leaf) (*shares.Leaf, error) {
	l := &shares.Leaf{Sets: sets}
	for i, part := range shares.Parts(s.Objective) {
		m, err := shares.NewModel(s.Step, s.Platform, sets, part, s.Steady)
		if err != nil {
			return nil, err
		}
		var begin *multiplied
		if of != nil {
			begin = s.known[of.Proofs[i]]
		}
		found, err := byShares(ctx, m, s.Deadline, begin)
		if err != nil {
			return nil, err
		}
		s.known[found.Proof] = found
		l.Bounds, l.Proofs = append(l.Bounds, found.bound), append(l.Proofs, found.Proof)
	}
	return l, nil
}

// multipliers are the columns of the program whose solution is a proof: the multipliers, and the least of each work under them. A
// row says that no tile of a certain share has less. Rows are added for the shares with less in the last solution.
type multipliers struct {
	m       *shares.Model
	program *lp.Problem
	units   []int
	chains  []int
	moves   [][][]int  // by chain, link and place; -1 means there is none
	least   []int      // by work
	view    []int      // by work: by which of its views it takes least
	links   [][]onLink // by work
	x       []float64  // the last solution
}

// onLink is a place of some work in a chain.
type onLink struct{ chain, link int }

const (
	mostRounds = 30
	mostViews  = 3 // how often other views are tried
	// mostResults is how many works are all looked at by results first.
	mostResults = 150
	// mostMoves is how many links chains have together of which moves have multipliers.
	mostMoves = 60
)

// multiplied is a proof, its bound, and the views of works that it is by.
type multiplied struct {
	*shares.Proof
	bound float64
	view  []int
}

// byShares finds the multipliers for a model. The proof of more sets says with which tiles and views to begin; nil means there is none. Without any multipliers
// all tiles are equal, and of a deep network it would take minutes to add all of them up. So there is no such proof.
func byShares(ctx context.Context, m *shares.Model, deadline time.Duration, of *multiplied) (best *multiplied, err error) {
	best = &multiplied{Proof: &shares.Proof{Units: make([]float64, len(m.Units))}}
	if of != nil && of.view != nil {
		err = best.raise(ctx, m, deadline, *of)
	} else {
		err = best.raiseAll(ctx, m, deadline)
	}
	if err == nil && best.view == nil {
		err = cmp.Or(ctx.Err(), errors.New("no multipliers were found"))
	}
	return best, err
}

// raiseAll begins with each kind of views.
func (m *multiplied) raiseAll(ctx context.Context, model *shares.Model, deadline time.Duration) error {
	for last := range 2 { // by single tiles, or by all tiles of a result
		if last > 0 && len(model.Views) > mostResults {
			break
		}
		view := make([]int, len(model.Views))
		for work, views := range model.Views {
			view[work] = min(last, len(views)-1)
		}
		if err := m.raise(ctx, model, deadline, multiplied{view: view}); err != nil {
			return err
		}
	}
	return nil
}

// raise solves programs from some proof on, each with the views of the greatest leasts in the solution before it.
func (m *multiplied) raise(ctx context.Context, model *shares.Model, deadline time.Duration, from multiplied) error {
	for range mostViews {
		f := newMultipliers(model, deadline, from.view)
		if from.Proof != nil {
			f.begin(from.Proof)
		}
		proof, bound, err := f.solve(ctx)
		if err != nil || proof == nil {
			return err
		}
		better, too := f.better()
		from.Proof, from.bound = proof, bound-too
		if from.bound > m.bound || m.view == nil {
			*m = from
		}
		if from.view = better; better == nil || ctx.Err() != nil {
			break
		}
	}
	return nil
}

// solve adds rows to the program until it has all that matter.
func (f *multipliers) solve(ctx context.Context) (proof *shares.Proof, bound float64, err error) {
	solver := lp.NewSolver(f.program)
	for range mostRounds {
		r, err := solver.Solve(ctx, iterations)
		switch {
		case ctx.Err() != nil:
			return proof, bound, nil
		case err != nil:
			return nil, 0, fmt.Errorf("multipliers of shares: %w", err)
		case r.Status != lp.Optimal:
			return proof, bound, nil
		}
		proof, bound, f.x = f.proof(r.X), -r.Objective, r.X
		if !f.tighten(r.X) {
			break
		}
	}
	return proof, bound, nil
}

// better are the views of works that say most under the last solution; nil means that the program has them. The solution says too much where it does not
// know all tiles yet.
func (f *multipliers) better() (view []int, too float64) {
	const more = 1.003
	for work, views := range f.m.Views {
		least := make([]float64, len(views))
		for i := range views {
			least[i] = slices.Min(f.search(f.x, work, i, math.Inf(1)).values)
		}
		if !f.m.Sometimes[work] {
			too += max(0, f.x[f.least[work]]-slices.Max(least))
		}
		if to := len(views) - 1 - f.view[work]; to >= 0 && to != f.view[work] && least[to] > more*least[f.view[work]] {
			if view == nil {
				view = slices.Clone(f.view)
			}
			view[work] = to
		}
	}
	return view, too
}

func newMultipliers(m *shares.Model, deadline time.Duration, view []int) *multipliers {
	f := &multipliers{m: m, program: &lp.Problem{}, links: make([][]onLink, len(m.Views)), view: view}
	costs := 1.0
	if m.Objective != problem.Time {
		costs = m.FloorWatts
	}
	counted := []lp.Term{}
	column := func(times float64) int {
		c := f.program.AddColumn(0, 0, math.Inf(1))
		counted = append(counted, lp.Term{Column: c, Coefficient: times})
		return c
	}
	for _, n := range m.Units {
		f.units = append(f.units, column(float64(n)))
	}
	for chain, links := range m.Chains {
		f.chains = append(f.chains, column(1))
		for i, l := range links {
			f.links[l.Work] = append(f.links[l.Work], onLink{chain, i})
		}
	}
	if deadline > 0 {
		counted = append(counted, lp.Term{Column: f.program.AddColumn(float64(deadline), 0, math.Inf(1)), Coefficient: -1})
	}
	f.program.AddRow(math.Inf(-1), costs, counted)
	f.addMoves()
	for work := range m.Views {
		cost := -1.0
		if m.Sometimes[work] {
			cost = 0
		}
		f.least = append(f.least, f.program.AddColumn(cost, math.Inf(-1), math.Inf(1)))
	}
	for work := range m.Views {
		ways := m.Views[work][f.view[work]]
		for i := range ways {
			w := &ways[i]
			for k := range w.Levels[0].Options {
				o := &w.Levels[0].Options[k]
				f.add(work, &tiled{way: w, sum: &w.Sums[0], early: o, late: o, share: w.Levels[0].Most})
			}
		}
	}
	return f
}

// addMoves adds the multipliers of moves, of the longest chains.
func (f *multipliers) addMoves() {
	links := 0
	for chain := range f.m.Chains {
		if links += f.m.Always(chain); len(f.m.Latency) == 1 || links > mostMoves {
			return
		}
		var ofChain [][]int
		for link := range f.m.Always(chain) {
			list := slices.Repeat([]int{-1}, len(f.m.Latency))
			for to, nanos := range f.m.Latency {
				if nanos > 0 && f.m.Moves(chain, link) {
					list[to] = f.program.AddColumn(0, 0, math.Inf(1))
					f.program.AddRow(math.Inf(-1), 0, []lp.Term{{Column: list[to], Coefficient: 1}, {Column: f.chains[chain], Coefficient: -nanos}})
				}
			}
			ofChain = append(ofChain, list)
		}
		f.moves = append(f.moves, ofChain)
	}
}

// tiled is tiles of some work that have a share of all results, those early and late in a sum by an option each.
type tiled struct {
	way         *shares.Way
	sum         *shares.Sum
	early, late *shares.Option
	empty       *shares.Option // the best for a tile without work
	add, last   *shares.Option // the best for a sum of accumulators, and for the last one
	share       float64
}

// add says that such tiles have no less than the least of their work.
func (f *multipliers) add(work int, c *tiled) {
	terms := []lp.Term{{Column: f.least[work], Coefficient: 1}}
	plus := func(column int, coefficient float64) {
		if i := slices.IndexFunc(terms, func(t lp.Term) bool { return t.Column == column }); i >= 0 {
			terms[i].Coefficient -= coefficient
		} else if column >= 0 && coefficient != 0 {
			terms = append(terms, lp.Term{Column: column, Coefficient: -coefficient})
		}
	}
	for _, other := range c.way.Also {
		plus(f.least[other], 1)
	}
	nanojoules, onChain := 0.0, 0.0
	for i, o := range []*shares.Option{c.early, c.late} {
		part := []float64{1 - c.sum.Part, c.sum.Part}[i]
		nanojoules += float64(part * o.Nanojoules)
		onChain += float64(part * o.Fixed)
		plus(f.units[o.Device], float64(part*(o.Fixed/c.share+o.Nanos)))
		f.eachMove(work, f.m.Memory[o.Device], func(column int, sign float64) { plus(column, float64(sign*part)) })
	}
	onChain += float64(c.sum.Late * c.share * c.late.Nanos)
	if more := float64(c.sum.Terms - 1); more > 0 {
		plus(f.units[c.empty.Device], more*c.empty.Fixed/c.share+float64((more+float64(c.sum.Adding))*c.empty.Again))
		nanojoules += (more + float64(c.sum.Adding)) * c.empty.AgainNanojoules
	}
	if c.sum.Accumulators > 1 && c.add != nil {
		n := float64(c.sum.Accumulators - 2)
		plus(f.units[c.add.Device], n*(c.add.Fixed/c.share+c.add.Nanos))
		plus(f.units[c.last.Device], c.last.Fixed/c.share+c.last.Nanos)
		onChain += c.last.Fixed + float64(c.share*c.last.Nanos)
		nanojoules += float64(n*c.add.Nanojoules) + c.last.Nanojoules
	}
	for _, l := range f.links[work] {
		if f.m.Chains[l.chain][l.link].Uniform {
			plus(f.chains[l.chain], onChain)
		} else {
			plus(f.chains[l.chain], f.leastFixed(work))
		}
	}
	f.program.AddRow(math.Inf(-1), nanojoules, terms)
}

// eachMove visits the multipliers of moves for work at a memory, with their signs.
func (f *multipliers) eachMove(work, at int, visit func(column int, sign float64)) {
	for _, l := range f.links[work] {
		if l.chain >= len(f.moves) || l.link >= len(f.moves[l.chain]) {
			continue
		}
		moves := f.moves[l.chain]
		for _, place := range f.m.Places[at] {
			if before := moves[(l.link+len(moves)-1)%len(moves)][place]; before >= 0 {
				visit(before, 1)
			}
			if after := moves[l.link][place]; after >= 0 {
				visit(after, -1)
			}
		}
	}
}

// leastFixed is the least fixed time of some work.
func (f *multipliers) leastFixed(work int) float64 {
	least := math.Inf(1)
	for _, w := range f.m.Views[work][f.view[work]] {
		for _, l := range w.Levels {
			for _, o := range l.Options {
				least = min(least, o.Fixed)
			}
		}
	}
	return least
}

// tighten adds the shares for which there is less than the solution says: of each work the one with the least on each device. It
// reports whether there are any.
func (f *multipliers) tighten(x []float64) (any bool) {
	const enough = 1e-3
	all := 0.0
	for _, column := range f.least {
		all += math.Abs(x[column])
	}
	for work, column := range f.least {
		any = f.addBelow(x, work, x[column]-enough*all/float64(len(f.least))) || any
	}
	return any
}

// addBelow adds the tiles of some work that have least on each device, and less than a limit.
func (f *multipliers) addBelow(x []float64, work int, limit float64) (any bool) {
	for _, c := range f.search(x, work, f.view[work], limit).best {
		if c != nil {
			f.add(work, c)
			any = true
		}
	}
	return any
}

// begin adds the tiles that have least under a proof.
func (f *multipliers) begin(of *shares.Proof) {
	x := make([]float64, f.program.Columns())
	for device, column := range f.units {
		x[column] = of.Units[device]
	}
	for chain, column := range f.chains {
		x[column] = of.Chains[chain]
	}
	for chain, links := range f.moves {
		for link, list := range links {
			for to, column := range list {
				if column >= 0 && of.Moves[chain] != nil {
					x[column] = of.Moves[chain][link][to]
				}
			}
		}
	}
	for work := range f.least {
		f.addBelow(x, work, math.Inf(1))
	}
}

// proof is the multipliers of a solution, a little less so that rounding counts no time too much.
func (f *multipliers) proof(x []float64) *shares.Proof {
	const less = 1 - 1e-9
	p := &shares.Proof{}
	for _, column := range f.units {
		p.Units = append(p.Units, max(0, x[column])*less)
	}
	for _, column := range f.chains {
		p.Chains = append(p.Chains, max(0, x[column])*less)
	}
	for chain, links := range f.moves {
		var rows [][]float64
		if p.Chains[chain] > 0 {
			for _, list := range links {
				row := make([]float64, len(list))
				for to, column := range list {
					if column >= 0 {
						row[to] = max(0, min(x[column], p.Chains[chain]*f.m.Latency[to]*less))
					}
				}
				rows = append(rows, row)
			}
		}
		p.Moves = append(p.Moves, rows)
	}
	return p
}
