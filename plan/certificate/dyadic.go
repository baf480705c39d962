package certificate

import (
	"math"
	"math/big"
)

// dyadic is an exact sum of products of floating-point numbers: a whole number times a power of two. It needs no reduction,
// which takes most of the time of a sum of [big.Rat].
type dyadic struct {
	whole big.Int
	power int
}

// scratch is room for one product.
type scratch struct{ x, y big.Int }

// decompose splits a finite number as a whole number times a power of two.
func decompose(x float64) (whole int64, power int) {
	fraction, power := math.Frexp(x)
	return int64(fraction * (1 << 53)), power - 53
}

// add adds x·y.
func (d *dyadic) add(s *scratch, x, y float64) {
	a, i := decompose(x)
	b, k := decompose(y)
	s.x.SetInt64(a)
	s.y.SetInt64(b)
	d.addShifted(s.x.Mul(&s.x, &s.y), i+k)
}

// addMultiple adds x times another number.
func (d *dyadic) addMultiple(s *scratch, other *dyadic, x float64) {
	a, i := decompose(x)
	s.y.SetInt64(a)
	d.addShifted(s.x.Mul(&other.whole, &s.y), i+other.power)
}

// addShifted adds a whole number times a power of two, and changes the former.
func (d *dyadic) addShifted(x *big.Int, power int) {
	switch {
	case x.Sign() == 0:
		return
	case d.whole.Sign() == 0:
		d.whole.Set(x)
		d.power = power
		return
	case power >= d.power:
		x.Lsh(x, uint(power-d.power))
	default:
		d.whole.Lsh(&d.whole, uint(d.power-power))
		d.power = power
	}
	d.whole.Add(&d.whole, x)
}

func (d *dyadic) sign() int { return d.whole.Sign() }

// less reports whether the number is below another one.
func (d *dyadic) less(other *dyadic, s *scratch) bool {
	difference := dyadic{power: d.power}
	difference.whole.Set(&d.whole)
	difference.addShifted(s.x.Neg(&other.whole), other.power)
	return difference.sign() < 0
}

// rat is the same number.
func (d *dyadic) rat() *big.Rat {
	var shifted big.Int
	if d.power >= 0 {
		return new(big.Rat).SetInt(shifted.Lsh(&d.whole, uint(d.power)))
	}
	return new(big.Rat).SetFrac(&d.whole, shifted.Lsh(big.NewInt(1), uint(-d.power)))
}
