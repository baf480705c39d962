package certificate

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
)

// Sums of products are those of rational numbers, of any size that floating-point numbers have.
func TestDyadic(t *testing.T) {
	r := rand.New(rand.NewPCG(6, 6))
	number := func() float64 {
		switch r.IntN(6) {
		case 0:
			return 0
		case 1:
			return math.SmallestNonzeroFloat64 * float64(r.IntN(9)-4)
		case 2:
			return math.Ldexp(r.NormFloat64(), r.IntN(2000)-1000)
		}
		return float64(r.IntN(9)-4) * math.Ldexp(1+r.Float64(), r.IntN(60)-30)
	}
	for range 500 {
		var d, multiple dyadic
		var s scratch
		var want, x, y big.Rat
		for range 1 + r.IntN(8) {
			a, b := number(), number()
			d.add(&s, a, b)
			x.SetFloat64(a)
			y.SetFloat64(b)
			want.Add(&want, x.Mul(&x, &y))
		}
		if d.rat().Cmp(&want) != 0 || d.sign() != want.Sign() {
			t.Fatalf("%v, want %v", d.rat(), &want)
		}
		c := number()
		multiple.add(&s, 3, 0.5)
		multiple.addMultiple(&s, &d, c)
		want.Mul(&want, x.SetFloat64(c))
		if want.Add(&want, big.NewRat(3, 2)); multiple.rat().Cmp(&want) != 0 {
			t.Fatalf("%v, want %v", multiple.rat(), &want)
		}
	}
}
