package certificate

import (
	"errors"
	"fmt"
	"math"
	"math/big"

	"dahl/plan/problem"
)

// Proof is multipliers of rows that add up to a lower bound. Multipliers of [Assign] are left out: a task's share stands in one
// such row. Its best multiplier is the cheapest option's cost after all other rows are added up.
type Proof struct {
	// Where says of which plans it is; none: of all.
	Where []Condition `json:"where,omitempty"`
	// Value is the objective of a plan that is known. The proof is about plans that are better, so
	// that starts and makespan are bounded by [Model.Horizon].
	Value float64      `json:"value"`
	Rows  []Multiplied `json:"rows"`
}

// Multiplied is a row and its multiplier, which is not negative unless the row is an equation.
type Multiplied struct {
	Row        Row     `json:"row"`
	Multiplier float64 `json:"multiplier"`
}

// Bound returns the bound of a model by a proof: no plan that fulfils its conditions has an objective below it. It
// is rounded down.
func (p *Proof) Bound(m *Model) (float64, error) {
	if !(p.Value > 0) || math.IsInf(p.Value, 0) {
		return 0, errors.New("a proof without the value of a plan")
	}
	m, err := m.Given(p.Where)
	if err != nil {
		return 0, err
	}
	sum, reduced, err := p.add(m)
	if err != nil {
		return 0, err
	}
	horizon := m.Horizon(p.Value)
	if m.LeastSpan > horizon { // no better plan fulfils the conditions
		return p.Value, nil
	}
	var s scratch
	for t := range m.Tasks {
		if least := m.cheapest(int32(t), reduced, &s); least != nil {
			sum.addMultiple(&s, least, 1)
		}
	}
	span := m.ColumnSpan()
	for j := m.ColumnStart(0); j < len(reduced); j++ {
		if j == span || reduced[j].sign() >= 0 {
			continue
		}
		upper := m.Upper(j, horizon)
		if math.IsInf(upper, 1) {
			return 0, nil
		}
		sum.addMultiple(&s, &reduced[j], upper)
	}
	least := leastOver(sum.rat(), reduced[span].rat(), m.LeastSpan, horizon, m.Objective == problem.EDP)
	var known big.Rat
	if known.SetFloat64(p.Value); least == nil {
		return 0, nil
	} else if least.Cmp(&known) > 0 { // the plan itself may be the best
		least.Set(&known)
	}
	bound, exact := least.Float64()
	if !exact {
		bound = math.Nextafter(bound, math.Inf(-1))
	}
	return bound, nil
}

// cheapest is the least of the reduced costs of a task's options; nil means the conditions leave it none.
func (m *Model) cheapest(t int32, reduced []dyadic, s *scratch) (least *dyadic) {
	for k := range m.Tasks[t].Options {
		j := m.ColumnShare(t) + k
		if m.excluded != nil && m.excluded[j] {
			continue
		}
		if least == nil || reduced[j].less(least, s) {
			least = &reduced[j]
		}
	}
	return least
}

// add adds up the rows: the sum of their right sides, and what they leave of the cost of each column.
func (p *Proof) add(m *Model) (sum *dyadic, reduced []dyadic, err error) {
	var s scratch
	sum, reduced = new(dyadic), make([]dyadic, m.NumColumns())
	for j, c := range m.Cost() {
		reduced[j].add(&s, c, 1)
	}
	for i := range p.Rows {
		r := &p.Rows[i]
		f, err := m.Form(&r.Row)
		if err != nil {
			return nil, nil, err
		}
		if math.IsNaN(r.Multiplier) || math.IsInf(r.Multiplier, 0) || r.Multiplier < 0 && !f.Equal {
			return nil, nil, fmt.Errorf("row %q has the multiplier %g; want a number that is not negative", r.Row.Family, r.Multiplier)
		}
		sum.add(&s, r.Multiplier, f.Least)
		for k, j := range f.Columns {
			reduced[j].add(&s, -r.Multiplier, f.Coefficients[k])
		}
	}
	return sum, reduced, nil
}

// leastOver returns the least of rest + slope·T, or of T times that, for T between two numbers. The second number may be
// infinite. Nil means nothing is known.
//
// The product rest·T + slope·T² is least at one of the ends, or where its derivative rest + 2·slope·T is 0 if it
// opens upwards.
func leastOver(rest, slope *big.Rat, from, to float64, product bool) *big.Rat {
	if math.IsInf(to, 1) {
		if slope.Sign() < 0 || product && slope.Sign() == 0 && rest.Sign() < 0 {
			return nil
		}
		to = from // what follows grows with T, but for a product at its vertex
	}
	at := func(t *big.Rat) *big.Rat {
		value := new(big.Rat).Mul(slope, t)
		value.Add(value, rest)
		if product {
			value.Mul(value, t)
		}
		return value
	}
	ends := [2]*big.Rat{new(big.Rat).SetFloat64(from), new(big.Rat).SetFloat64(to)}
	least := at(ends[0])
	if other := at(ends[1]); other.Cmp(least) < 0 {
		least = other
	}
	if product && slope.Sign() > 0 && rest.Sign() < 0 {
		vertex := new(big.Rat).Quo(rest, slope)
		vertex.Mul(vertex, big.NewRat(-1, 2))
		if other := at(vertex); other.Cmp(least) < 0 {
			least = other // of any T, which is no more than between the ends
		}
	}
	return least
}
