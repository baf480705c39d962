package random

import (
	"math"
	"testing"
)

// U(-b, b) has mean 0, variance b²/3 and the extreme ±b: of n draws none is
// beyond, and the largest falls short of b(1-2k/n) with probability at most e^-k.
func TestInitBetween(t *testing.T) {
	const n, bound = 50_021, 0.25
	w := make([]float64, n)
	InitBetween(w, 0, 3, "fc1.weight", -bound, bound)
	var sum, squares, largest float64
	for _, v := range w {
		sum += v
		squares += v * v
		largest = max(largest, math.Abs(v))
	}
	// The mean's standard deviation is b/√(3n), that of the mean square b²·√(4/45)/√n.
	if sigma := bound / math.Sqrt(3*n); math.Abs(sum/n) > 6*sigma {
		t.Errorf("mean %v, want 0 ± %v", sum/n, 6*sigma)
	}
	if sigma := bound * bound * math.Sqrt(4./45/n); math.Abs(squares/n-bound*bound/3) > 6*sigma {
		t.Errorf("variance %v, want %v ± %v", squares/n, bound*bound/3, 6*sigma)
	}
	if largest > bound || largest < bound*(1-2*20./n) {
		t.Errorf("largest magnitude %v of %d draws within ±%v", largest, n, bound)
	}
}

// A parameter's values depend on its name alone: a prefix of a longer draw, and
// the same whatever was drawn before.
func TestInitIndependentOfOrder(t *testing.T) {
	long, short, other := make([]float64, 101), make([]float64, 7), make([]float64, 101)
	InitBetween(long, 0, 3, "conv1.weight", -1, 1)
	InitBetween(other, 0, 3, "conv1.bias", -1, 1)
	InitBetween(short, 0, 3, "conv1.weight", -1, 1)
	for i, v := range short {
		if v != long[i] {
			t.Errorf("value %d is %v in a short and %v in a long parameter", i, v, long[i])
		}
	}
	for i := range long {
		if long[i] == other[i] {
			t.Errorf("two parameters share value %d", i)
		}
	}
	InitBetween(other, 0, 3, "conv1.weight", 2, 4) // 3 + U(-1, 1), two roundings of numbers below 4
	for i := range other {
		if math.Abs(other[i]-3-long[i]) > 0x1p-50 {
			t.Errorf("InitBetween gives %v, want 3 + %v", other[i], long[i])
		}
	}
}
