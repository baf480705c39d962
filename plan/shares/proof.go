package shares

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"slices"
	"time"

	"dahl/plan/problem"
)

// Proof is multipliers of the rows of a model. They add up to a bound.
type Proof struct {
	Units  []float64 `json:"units"`  // by device: of the time of its units
	Chains []float64 `json:"chains"` // by chain: of its time; those that are left out are 0
	// Moves are by chain, by its link between works that all lowerings have, the one from the last to the first work last, and by place: of what gets
	// there.
	Moves [][][]float64 `json:"moves,omitempty"`
}

// Bound is a lower bound of the model's objective by a proof, in nanoseconds or nanojoules, rounded down. For energy times time it bounds energy.
// A step takes no longer than the deadline; zero means no matter.
//
// Let a share s of some work run on device k with the multiplier λ_k, in tiles of a share q each. They take s/q·(fixed + q·nanos) of the device. A
// chain has one of them with the probability s and takes fixed + q·nanos for it. With the multiplier μ of the chain
// that is, per share, λ_k·(fixed/q + nanos) + μ·(fixed + q·nanos). Over all q it is no less than λ_k·nanos + μ·fixed + 2·√(λ_k·fixed·μ·nanos),
// as the geometric mean of two numbers is no more than their mean. If the tiles of an option are all smaller than the one where both are equal, or
// all larger, it is least at the one that is nearest. Sums in several terms are in sums.go.
//
// A chain goes to a place after some work with at least the probability by which the next work is more often there. That takes the
// latency of the place, so that a multiplier of a move is at most μ times the latency. What gets to the memories of processors takes the latencies of the memory and of all
// these together.
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
	for _, x := range p.Chains {
		time.Sub(time, rat(x))
	}
	for k, n := range m.Units {
		time.Sub(time, product(p.Units[k], float64(n)))
	}
	if time.Sign() < 0 {
		if deadline == 0 {
			return 0, errors.New("its multipliers count more time than there is")
		}
		sum.Mul(time, rat(float64(deadline)))
	}
	l := leasts{m: m, p: p, known: make([]*big.Rat, len(m.Views))}
	for work := range m.Views {
		if m.Sometimes[work] {
			continue
		}
		least, err := l.of(work)
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

func product(x, y float64) *big.Rat { return new(big.Rat).Mul(rat(x), rat(y)) }

// check verifies that a model may have the multipliers.
func (p *Proof) check(m *Model) error {
	wrong := func(x float64) bool { return !(x >= 0) || math.IsInf(x, 1) }
	if len(p.Units) != len(m.Units) || len(p.Chains) > len(m.Chains) || len(p.Moves) > len(p.Chains) {
		return errors.New("a proof of another model")
	}
	for _, x := range slices.Concat(p.Chains, p.Units) {
		if wrong(x) {
			return fmt.Errorf("the multiplier %g; want a number that is not negative", x)
		}
	}
	for chain, links := range p.Moves {
		if links != nil && len(links) != m.Always(chain) {
			return errors.New("a proof of another model")
		}
		for link, list := range links {
			if len(list) != len(m.Latency) {
				return errors.New("a proof of another model")
			}
			for to, x := range list {
				if wrong(x) || rat(x).Cmp(product(p.Chains[chain], m.Latency[to])) > 0 || x > 0 && !m.Moves(chain, link) {
					return fmt.Errorf("the multiplier %g of a move; want one from 0 to the chain's times the latency", x)
				}
			}
		}
	}
	return nil
}

// Always is how many works of a chain all lowerings have: its first ones.
func (m *Model) Always(chain int) (n int) {
	for _, l := range m.Chains[chain] {
		if m.Sometimes[l.Work] {
			break
		}
		n++
	}
	return n
}

// Moves reports whether it is known with which probabilities the works on both sides of a link are at a memory.
func (m *Model) Moves(chain, link int) bool {
	c := m.Chains[chain][:m.Always(chain)]
	next := (link + 1) % len(c)
	return c[link].Uniform && c[next].Uniform && (next > 0 || m.Steady)
}
