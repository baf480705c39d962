package shares

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"dahl/plan/problem"
	"dahl/platform"
)

// Covered names the plans of which none is below a bound.
const Covered = "all lowerings of the layers on all sets of these devices at all clocks"

// Bound is a lower bound of an objective for all plans of all lowerings of a step on all sets of devices of a machine.
type Bound struct {
	Of     string `json:"of"`     // Covered
	Leaves []Leaf `json:"leaves"` // of whose sets each set is in one
}

// Leaf is a bound for some sets of devices.
type Leaf struct {
	Sets
	Bounds []float64 `json:"bounds"` // of each of the Parts: nanoseconds or nanojoules
	Proofs []*Proof  `json:"proofs"`
}

// Parts are the objectives of the proofs of a leaf. Energy times time is no less than the product of both bounds.
func Parts(o problem.Objective) []problem.Objective {
	if o == problem.EDP {
		return []problem.Objective{problem.Time, problem.Energy}
	}
	return []problem.Objective{o}
}

// Bound is the bound of the objective for the sets of the leaf: seconds, joules, or their product.
func (l *Leaf) Bound() float64 {
	product := 1.0
	for _, b := range l.Bounds {
		product = below(product * max(0, b) / 1e9)
	}
	return product
}

// Bound is the bound of the objective: seconds, joules, or their product.
func (b *Bound) Bound() float64 {
	least := math.Inf(1)
	for i := range b.Leaves {
		least = min(least, b.Leaves[i].Bound())
	}
	return least
}

// Check proves a bound again, and that it leaves out no set of the devices of a machine.
func (b *Bound) Check(step *Step, p *platform.Platform, of problem.Aim) error {
	if b.Of != Covered {
		return fmt.Errorf("it is of %q; want %q", b.Of, Covered)
	}
	if !covered(All(p), b.Leaves) {
		return errors.New("it leaves out sets of devices")
	}
	for i := range b.Leaves {
		if err := b.Leaves[i].check(step, p, of); err != nil {
			return err
		}
	}
	return nil
}

func (l *Leaf) check(step *Step, p *platform.Platform, of problem.Aim) error {
	parts := Parts(of.Objective)
	if len(l.Bounds) != len(parts) || len(l.Proofs) != len(parts) || slices.Contains(l.Proofs, nil) {
		return fmt.Errorf("%d bounds with %d proofs; want one of each of %v", len(l.Bounds), len(l.Proofs), parts)
	}
	for i, part := range parts {
		m, err := NewModel(step, p, l.Sets, part, of.Steady)
		if err != nil {
			return err
		}
		bound, err := l.Proofs[i].Bound(m, of.Deadline)
		if err != nil {
			return err
		}
		if !(l.Bounds[i] <= bound) {
			return fmt.Errorf("it claims that no plan takes less %s than %.12g, and proves %.12g", part, l.Bounds[i], bound)
		}
	}
	return nil
}

// covered reports whether each of some sets is a set of a leaf. A set without any unit is none.
func covered(of Sets, leaves []Leaf) bool {
	if !slices.ContainsFunc(of.Most, func(n int) bool { return n > 0 }) {
		return true
	}
	var rest []Leaf
	for _, l := range leaves {
		if len(l.Least) != len(of.Least) || len(l.Most) != len(of.Least) {
			return false
		}
		within, apart := true, false
		for d := range of.Least {
			within = within && l.Least[d] <= of.Least[d] && of.Most[d] <= l.Most[d]
			apart = apart || l.Most[d] < of.Least[d] || of.Most[d] < l.Least[d]
		}
		if within {
			return true
		}
		if !apart {
			rest = append(rest, l)
		}
	}
	if len(rest) == 0 {
		return false
	}
	for d := range of.Least {
		switch l := &rest[0]; {
		case of.Least[d] < l.Least[d]:
			low, high := of.SplitAt(d, l.Least[d])
			return covered(low, rest) && covered(high, rest)
		case l.Most[d] < of.Most[d]:
			low, high := of.SplitAt(d, l.Most[d]+1)
			return covered(low, rest) && covered(high, rest)
		}
	}
	panic("shares: sets within a leaf that are not")
}

// SplitAt splits sets in those with fewer units of a device than some number, and the others.
func (s Sets) SplitAt(device, units int) (low, high Sets) {
	low, high = Sets{s.Least, slices.Clone(s.Most)}, Sets{slices.Clone(s.Least), s.Most}
	low.Most[device], high.Least[device] = units-1, units
	return low, high
}
