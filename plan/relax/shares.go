package relax

import (
	"cmp"
	"context"
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
}

// Shares finds a bound of all lowerings on all sets of devices. It splits the sets with the least bound by the units of the device of
// which they have the most different numbers: with few units each has more of the bandwidth of the memory. When ctx ends, it is the best so far.
func Shares(ctx context.Context, s *Sharing) (*shares.Bound, error) {
	first, err := s.leaf(ctx, shares.All(s.Platform))
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
			l, err := s.leaf(ctx, sets)
			if err != nil {
				return nil, err
			}
			parts = append(parts, *l)
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

// leaf finds proofs for some sets, and their bounds in floating-point numbers.
func (s *Sharing) leaf(ctx context.Context, sets shares.Sets) (*shares.Leaf, error) {
	l := &shares.Leaf{Sets: sets}
	for _, part := range shares.Parts(s.Objective) {
		m, err := shares.NewModel(s.Step, s.Platform, sets, part, s.Steady)
		if err != nil {
			return nil, err
		}
		proof, bound, err := byShares(ctx, m, s.Deadline)
		if err != nil {
			return nil, err
		}
		l.Bounds, l.Proofs = append(l.Bounds, bound), append(l.Proofs, proof)
	}
	return l, nil
}

// multipliers are the columns of the program whose solution is a proof: the multipliers, and the least of each work under them. A
// row says that no tile of a certain share has less. Rows are added for the shares with less in the last solution.
type multipliers struct {
	m       *shares.Model
	program *lp.Problem
	units   []int
	chain   int
	moves   [][]int // by link and memory; -1 means there is none
	least   []int   // by work
	also    [][]int // by group and its work: the least
	links   [][]int // by work: its places in the chain
}

const (
	mostRounds = 30
	// mostMoves is the length of a chain up to which moves have multipliers.
	mostMoves = 60
)

// byShares finds the multipliers for a model.
func byShares(ctx context.Context, m *shares.Model, deadline time.Duration) (proof *shares.Proof, bound float64, err error) {
	f := newMultipliers(m, deadline)
	solver := lp.NewSolver(f.program)
	proof = &shares.Proof{Units: make([]float64, len(m.Units))}
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
		proof, bound = f.proof(r.X), -r.Objective
		if !f.tighten(r.X) {
			break
		}
	}
	return proof, bound, nil
}

func newMultipliers(m *shares.Model, deadline time.Duration) *multipliers {
	f := &multipliers{m: m, program: &lp.Problem{}, links: make([][]int, len(m.Options))}
	costs := 1.0
	if m.Objective != problem.Time {
		costs = m.FloorWatts
	}
	counted := []lp.Term{}
	for _, n := range m.Units {
		f.units = append(f.units, f.program.AddColumn(0, 0, math.Inf(1)))
		counted = append(counted, lp.Term{Column: f.units[len(f.units)-1], Coefficient: float64(n)})
	}
	fixed := 0.0
	for i, l := range m.Chain {
		if f.links[l.Work] = append(f.links[l.Work], i); !l.Uniform {
			least := math.Inf(1)
			for _, o := range m.Options[l.Work] {
				least = min(least, o.Fixed)
			}
			fixed += least
		}
	}
	most := math.Inf(1)
	if len(m.Chain) == 0 {
		most = 0
	}
	f.chain = f.program.AddColumn(-fixed, 0, most)
	counted = append(counted, lp.Term{Column: f.chain, Coefficient: 1})
	if deadline > 0 {
		counted = append(counted, lp.Term{Column: f.program.AddColumn(float64(deadline), 0, math.Inf(1)), Coefficient: -1})
	}
	f.program.AddRow(math.Inf(-1), costs, counted)
	f.addMoves()
	for _, group := range m.Also {
		var list []int
		for _, options := range group {
			column := f.program.AddColumn(0, math.Inf(-1), math.Inf(1))
			for _, o := range options {
				if o.Most == 1 { // smaller tiles take no less, as no chain has them
					f.program.AddRow(math.Inf(-1), o.Nanojoules, []lp.Term{{Column: column, Coefficient: 1}, {Column: f.units[o.Device], Coefficient: -(o.Fixed + o.Nanos)}})
				}
			}
			list = append(list, column)
		}
		f.also = append(f.also, list)
	}
	for work, options := range m.Options {
		f.least = append(f.least, f.program.AddColumn(-1, math.Inf(-1), math.Inf(1)))
		for i := range options {
			if options[i].Most == 1 {
				f.add(work, &options[i], 1)
			}
		}
	}
	return f
}

// addMoves adds the multipliers of moves.
func (f *multipliers) addMoves() {
	if len(f.m.Latency) == 1 || len(f.m.Chain) > mostMoves {
		return
	}
	for link := range f.m.Chain {
		list := slices.Repeat([]int{-1}, len(f.m.Latency))
		for to, nanos := range f.m.Latency {
			if nanos > 0 && f.m.Moves(link) {
				list[to] = f.program.AddColumn(0, 0, math.Inf(1))
				f.program.AddRow(math.Inf(-1), 0, []lp.Term{{Column: list[to], Coefficient: 1}, {Column: f.chain, Coefficient: -nanos}})
			}
		}
		f.moves = append(f.moves, list)
	}
}

// add says that tiles of a share have no less than the least of their work.
func (f *multipliers) add(work int, o *shares.Option, share float64) {
	terms, uniform := []lp.Term{{Column: f.least[work], Coefficient: 1}, {Column: f.units[o.Device], Coefficient: -(o.Fixed/share + o.Nanos)}}, 0
	move := func(column int, sign float64) {
		if i := slices.IndexFunc(terms, func(t lp.Term) bool { return t.Column == column }); i >= 0 {
			terms[i].Coefficient += sign
		} else if column >= 0 {
			terms = append(terms, lp.Term{Column: column, Coefficient: sign})
		}
	}
	if o.Also > 0 {
		for _, column := range f.also[o.Also-1] {
			terms = append(terms, lp.Term{Column: column, Coefficient: -1})
		}
	}
	at := f.m.Memory[o.Device]
	for _, i := range f.links[work] {
		if f.m.Chain[i].Uniform {
			uniform++
		}
		if f.moves == nil {
			continue
		}
		move(f.moves[(i+len(f.moves)-1)%len(f.moves)][at], -1)
		move(f.moves[i][at], 1)
	}
	if uniform > 0 {
		terms = append(terms, lp.Term{Column: f.chain, Coefficient: -float64(uniform) * (o.Fixed + float64(share*o.Nanos))})
	}
	f.program.AddRow(math.Inf(-1), o.Nanojoules, terms)
}

// tighten adds the shares for which there is less than the solution says: of each work the one with the least on each device. It
// reports whether there are any.
func (f *multipliers) tighten(x []float64) (any bool) {
	const enough = 1e-3
	all := 0.0
	for _, column := range f.least {
		all += x[column]
	}
	for work, options := range f.m.Options {
		uniform := 0
		for _, link := range f.links[work] {
			if f.m.Chain[link].Uniform {
				uniform++
			}
		}
		most := x[f.least[work]] - enough*math.Abs(all)/float64(len(f.least))
		for i := 0; i < len(options); {
			device := options[i].Device
			best, at := most-f.moved(x, work, f.m.Memory[device]), 0.0
			var by *shares.Option
			for ; i < len(options) && options[i].Device == device; i++ {
				if value, share := f.cheapest(x, &options[i], uniform); value < best {
					best, at, by = value, share, &options[i]
				}
			}
			if by != nil {
				f.add(work, by, at)
				any = true
			}
		}
	}
	return any
}

// cheapest is the least of an option by a solution, without moves, and the share of its tiles for which it is.
func (f *multipliers) cheapest(x []float64, o *shares.Option, uniform int) (value, share float64) {
	units, chain := x[f.units[o.Device]], x[f.chain]*float64(uniform)
	share = o.Most
	if perTile, perShare := units*o.Fixed, chain*o.Nanos; perTile < perShare*share*share {
		share = math.Sqrt(perTile / perShare)
	}
	share = max(share, o.Least, 1e-9)
	value = units*(o.Fixed/share+o.Nanos) + chain*(o.Fixed+float64(share*o.Nanos)) + o.Nanojoules
	if o.Also > 0 {
		for _, column := range f.also[o.Also-1] {
			value += x[column]
		}
	}
	return value, share
}

// moved adds up the multipliers of moves for work at a memory.
func (f *multipliers) moved(x []float64, work, at int) (sum float64) {
	if f.moves == nil {
		return 0
	}
	for _, i := range f.links[work] {
		if before := f.moves[(i+len(f.moves)-1)%len(f.moves)][at]; before >= 0 {
			sum += x[before]
		}
		if after := f.moves[i][at]; after >= 0 {
			sum -= x[after]
		}
	}
	return sum
}

// proof is the multipliers of a solution, a little less so that rounding counts no time too much.
func (f *multipliers) proof(x []float64) *shares.Proof {
	const less = 1 - 1e-9
	p := &shares.Proof{Chain: max(0, x[f.chain]) * less}
	for _, column := range f.units {
		p.Units = append(p.Units, max(0, x[column])*less)
	}
	for _, list := range f.moves {
		row := make([]float64, len(list))
		for to, column := range list {
			if column >= 0 {
				row[to] = max(0, min(x[column], p.Chain*f.m.Latency[to]*less))
			}
		}
		p.Moves = append(p.Moves, row)
	}
	return p
}
