package lp

import (
	"fmt"
	"math"
	"math/big"
)

// Bound is the lower bound of the objective that multipliers of the rows prove, in exact
// arithmetic, whatever they are. It is nil where they prove none. The solver's numbers only
// matter for how good it is.
//
// For every x that keeps rows and bounds, and every y,
//
//	c·x = y·(Ax) + (c − Aᵀy)·x = Σᵢ yᵢ(aᵢ·x) + Σⱼ dⱼxⱼ   with d = c − Aᵀy
//
// where aᵢ·x lies between the sides of row i and xⱼ between the bounds of column j. Each
// product is least at the lower side where its factor is positive and at the upper side where
// that is negative, so
//
//	c·x >= Σᵢ (yᵢ > 0 ? yᵢ·loᵢ : yᵢ·hiᵢ) + Σⱼ (dⱼ > 0 ? dⱼ·lⱼ : dⱼ·uⱼ)
//
// and the right-hand side has no x. A multiplier that asks for an infinite side is taken as 0,
// which is another y. A reduced cost that asks for an infinite bound proves nothing. Where an
// optimum has a reduced cost of 0, that of its rounded multipliers is some 1e-15 of either sign.
// Problems whose bounds are not finite are therefore put into a box that no solution of interest leaves (inBox).
func Bound(p *Problem, y []float64) (*big.Rat, error) { return p.bound(p.cost, y) }

// ProvesInfeasible reports whether a ray proves that no x keeps all rows and bounds: with
// costs of 0 it would prove that 0 = 0·x is positive (Farkas).
func ProvesInfeasible(p *Problem, ray []float64) (bool, error) {
	bound, err := p.bound(make([]float64, len(p.cost)), ray)
	return err == nil && bound != nil && bound.Sign() > 0, err
}

func (p *Problem) bound(cost, y []float64) (*big.Rat, error) {
	if len(y) != p.Rows() {
		return nil, fmt.Errorf("%d multipliers for %d rows", len(y), p.Rows())
	}
	sum := new(big.Rat)
	reduced := make([]*big.Rat, len(cost))
	for j, c := range cost {
		reduced[j] = new(big.Rat).SetFloat64(c)
	}
	for i, x := range y {
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return nil, fmt.Errorf("multiplier %d is %g", i, x)
		}
		factor := new(big.Rat).SetFloat64(x)
		product, finite := atSide(factor, p.rowLower[i], p.rowUpper[i])
		if factor.Sign() == 0 || !finite {
			continue
		}
		sum.Add(sum, product)
		index, value := p.terms.at(int32(i))
		for k, j := range index {
			product := new(big.Rat).SetFloat64(value[k])
			reduced[j].Sub(reduced[j], product.Mul(product, factor))
		}
	}
	for j, d := range reduced {
		product, finite := atSide(d, p.lower[j], p.upper[j])
		if !finite {
			return nil, nil
		}
		sum.Add(sum, product)
	}
	return sum, nil
}

// atSide is the least product of a factor and what lies between two sides, if it is finite.
func atSide(factor *big.Rat, lower, upper float64) (product *big.Rat, finite bool) {
	side := lower
	switch factor.Sign() {
	case 0:
		return new(big.Rat), true
	case -1:
		side = upper
	}
	if math.IsInf(side, 0) {
		return nil, false
	}
	product = new(big.Rat).SetFloat64(side)
	return product.Mul(product, factor), true
}
