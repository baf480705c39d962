package shares

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"time"

	"dahl/plan/problem"
)

// Proof is multipliers of the rows of a model. They add up to a bound.
type Proof struct {
	Units []float64 `json:"units"` // by device: of the time of its units
	Chain float64   `json:"chain"` // of the time of the chain
	// Moves are by link of the chain, the one from its last to its first work last, and by memory: of what gets into the memory there.
	Moves [][]float64 `json:"moves,omitempty"`
}

// Bound is a lower bound of the model's objective by a proof, in nanoseconds or nanojoules, rounded down. For energy times time it bounds energy.
// A step takes no longer than the deadline; zero means no matter.
//
// Let a share s of some work run on device k with the multiplier λ_k, in tiles of a share q each. They take s/q·(fixed + q·nanos) of the device. A
// chain has one of them with the probability s and takes fixed + q·nanos for it. With the multiplier μ of the chain
// that is, per share, λ_k·(fixed/q + nanos) + μ·(fixed + q·nanos). Over all q it is no less than λ_k·nanos + μ·fixed + 2·√(λ_k·fixed·μ·nanos),
// as the geometric mean of two numbers is no more than their mean. If the tiles of an option are all smaller than the one where both are equal, or
// all larger, it is least at the one that is nearest.
//
// A chain goes into a memory after some work with at least the probability by which the next work is more often there. That takes the
// memory's latency, so that a multiplier of a move is at most μ times the latency.
func (p *Proof) Bound(m *Model, deadline time.Duration) (float64, error) {
	if err := p.check(m); err != nil {
		return 0, err
	}
	time, sum := new(big.Rat), new(big.Rat)
	if m.Objective == problem.Time {
		time.SetInt64(1)
	} else {
		time.SetFloat64(m.FloorWatts)
	}
	time.Sub(time, rat(p.Chain))
	for k, n := range m.Units {
		time.Sub(time, new(big.Rat).Mul(rat(p.Units[k]), rat(float64(n))))
	}
	if time.Sign() < 0 {
		if deadline == 0 {
			return 0, errors.New("its multipliers count more time than there is")
		}
		sum.Mul(time, rat(float64(deadline)))
	}
	for work := range m.Options {
		least, err := p.least(m, work)
		if err != nil {
			return 0, err
		}
		sum.Add(sum, least)
	}
	bound, exact := sum.Float64()
	if !exact {
		bound = math.Nextafter(bound, math.Inf(-1))
	}
	return bound, nil
}

func rat(x float64) *big.Rat { return new(big.Rat).SetFloat64(x) }

// check verifies that a model may have the multipliers.
func (p *Proof) check(m *Model) error {
	wrong := func(x float64) bool { return !(x >= 0) || math.IsInf(x, 1) }
	if len(p.Units) != len(m.Units) || len(p.Moves) != 0 && len(p.Moves) != len(m.Chain) {
		return errors.New("a proof of another model")
	}
	for _, x := range append([]float64{p.Chain}, p.Units...) {
		if wrong(x) {
			return fmt.Errorf("the multiplier %g; want a number that is not negative", x)
		}
	}
	for link, list := range p.Moves {
		if len(list) != len(m.Latency) {
			return errors.New("a proof of another model")
		}
		for to, x := range list {
			most := new(big.Rat).Mul(rat(p.Chain), rat(m.Latency[to]))
			if wrong(x) || rat(x).Cmp(most) > 0 || x > 0 && !m.Moves(link) {
				return fmt.Errorf("the multiplier %g of a move; want one from 0 to the chain's times the latency", x)
			}
		}
	}
	return nil
}

// Moves reports whether it is known with which probabilities the works on both sides of a link are at a memory.
func (m *Model) Moves(link int) bool {
	next := (link + 1) % len(m.Chain)
	return m.Chain[link].Uniform && m.Chain[next].Uniform && (next > 0 || m.Steady)
}

// least is the least of some work over all ways to run it.
func (p *Proof) least(m *Model, work int) (*big.Rat, error) {
	uniform, other := 0, 0 // how often the chain has the work
	moves := make([]*big.Rat, len(m.Latency))
	for i := range moves {
		moves[i] = new(big.Rat)
	}
	for i, l := range m.Chain {
		switch {
		case l.Work != work:
			continue
		case l.Uniform:
			uniform++
		default:
			other++
		}
		if len(p.Moves) == 0 {
			continue
		}
		before := (i + len(m.Chain) - 1) % len(m.Chain)
		for at := range moves {
			moves[at].Add(moves[at], rat(p.Moves[before][at]))
			moves[at].Sub(moves[at], rat(p.Moves[i][at]))
		}
	}
	also, err := p.also(m, work)
	if err != nil {
		return nil, err
	}
	var least, fixed *big.Rat
	chain := new(big.Rat).Mul(rat(p.Chain), rat(float64(uniform)))
	near := p.near(m, work, float64(uniform), moves, also)
	for i := range m.Options[work] {
		o := &m.Options[work][i]
		if f := rat(o.Fixed); fixed == nil || f.Cmp(fixed) < 0 {
			fixed = f
		}
		if !near(o) {
			continue
		}
		x := leastPerShare(rat(p.Units[o.Device]), chain, o)
		x.Add(x, moves[m.Memory[o.Device]])
		x.Add(x, rat(o.Nanojoules))
		x.Add(x, also[o.Also])
		if least == nil || x.Cmp(least) < 0 {
			least = x
		}
	}
	if least == nil {
		return nil, errors.New("some work can run on no device")
	}
	fixed.Mul(fixed, rat(p.Chain))
	return least.Add(least, fixed.Mul(fixed, rat(float64(other)))), nil
}

// also is the least of each group of more work that options of some work have.
func (p *Proof) also(m *Model, work int) (map[int]*big.Rat, error) {
	all := map[int]*big.Rat{0: new(big.Rat)}
	for i := range m.Options[work] {
		group := m.Options[work][i].Also
		if all[group] != nil {
			continue
		}
		sum := new(big.Rat)
		for _, options := range m.Also[group-1] {
			var least *big.Rat
			for k := range options {
				o := &options[k]
				x := leastPerShare(rat(p.Units[o.Device]), new(big.Rat), o)
				if x.Add(x, rat(o.Nanojoules)); least == nil || x.Cmp(least) < 0 {
					least = x
				}
			}
			if least == nil {
				return nil, errors.New("some work can run on no device")
			}
			sum.Add(sum, least)
		}
		all[group] = sum
	}
	return all, nil
}

// near reports whether an option may have the least of some work. All terms of an option but moves are positive, so that a
// few roundings change their sum by less than a part of 10^12 of it.
func (p *Proof) near(m *Model, work int, uniform float64, moves []*big.Rat, also map[int]*big.Rat) func(o *Option) bool {
	value := func(o *Option) (sum, error float64) {
		units, chain := p.Units[o.Device], p.Chain*uniform
		sum = units*o.Nanos + chain*o.Fixed + o.Nanojoules
		if perTile, perShare := units*o.Fixed, chain*o.Nanos; perTile+perShare > 0 {
			if q := min(o.Most, max(o.Least, math.Sqrt(perTile/perShare))); q > 0 {
				sum += perTile/q + float64(q*perShare)
			}
		}
		more, _ := also[o.Also].Float64()
		sum += more
		moved, _ := moves[m.Memory[o.Device]].Float64()
		return sum + moved, (sum + math.Abs(moved)) * 1e-12
	}
	least := math.Inf(1)
	for i := range m.Options[work] {
		v, e := value(&m.Options[work][i])
		least = min(least, v+e)
	}
	return func(o *Option) bool {
		v, e := value(o)
		return !(v-e > least)
	}
}

// leastPerShare is no more than λ·(fixed/q + nanos) + μ·(fixed + q·nanos) for any q of an option.
func leastPerShare(units, chain *big.Rat, o *Option) *big.Rat {
	fixed, nanos := rat(o.Fixed), rat(o.Nanos)
	x, y := new(big.Rat).Mul(units, nanos), new(big.Rat).Mul(chain, fixed) // without what depends on q
	sum := x.Add(x, y)
	perTile, perShare := new(big.Rat).Mul(units, fixed), new(big.Rat).Mul(chain, nanos)
	for _, q := range [...]float64{o.Least, o.Most} {
		at := rat(q)
		grown := new(big.Rat).Mul(perShare, at)
		side := perTile.Cmp(new(big.Rat).Mul(grown, at)) // of the q where both are equal: above, at or below
		if q == o.Least && side <= 0 && q > 0 || q == o.Most && side >= 0 {
			return sum.Add(sum, grown.Add(grown, at.Quo(perTile, at)))
		}
	}
	product := perTile.Mul(perTile, perShare)
	approximate, _ := product.Float64()
	root := rat(math.Sqrt(approximate) * (1 - 1e-15))
	if new(big.Rat).Mul(root, root).Cmp(product) > 0 {
		root.SetInt64(0) // where a number so small has no root as exact
	}
	return sum.Add(sum, root.Add(root, root))
}
