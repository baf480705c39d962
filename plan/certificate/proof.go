package certificate

import (
	"errors"
	"fmt"
	"math"
	"math/big"
)

// Proof is multipliers of rows that add up to a lower bound.
type Proof struct {
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

// Bound is what a proof proves of a model: no plan has an objective below it. It is rounded down.
func (p *Proof) Bound(m *Model) (float64, error) {
	if !(p.Value > 0) || math.IsInf(p.Value, 0) {
		return 0, errors.New("a proof without the value of a plan")
	}
	reduced := make([]big.Rat, m.NumColumns())
	for j, c := range m.Cost() {
		reduced[j].SetFloat64(c)
	}
	var sum, y, a, product big.Rat
	for i := range p.Rows {
		r := &p.Rows[i]
		f, err := m.Form(&r.Row)
		if err != nil {
			return 0, err
		}
		if math.IsNaN(r.Multiplier) || math.IsInf(r.Multiplier, 0) || r.Multiplier < 0 && !f.Equal {
			return 0, fmt.Errorf("row %q has the multiplier %g; want a number that is not negative", r.Row.Family, r.Multiplier)
		}
		y.SetFloat64(r.Multiplier)
		a.SetFloat64(f.Least)
		sum.Add(&sum, product.Mul(&y, &a))
		for k, j := range f.Columns {
			a.SetFloat64(f.Coefficients[k])
			reduced[j].Sub(&reduced[j], product.Mul(&y, &a))
		}
	}
	horizon := m.Horizon(p.Value)
	for j := range reduced {
		if reduced[j].Sign() < 0 {
			a.SetFloat64(m.Upper(j, horizon))
			sum.Add(&sum, product.Mul(&reduced[j], &a))
		}
	}
	var known big.Rat
	if known.SetFloat64(p.Value); sum.Cmp(&known) > 0 { // the plan itself may be the best
		sum.Set(&known)
	}
	bound, exact := sum.Float64()
	if !exact {
		bound = math.Nextafter(bound, math.Inf(-1))
	}
	return bound, nil
}
