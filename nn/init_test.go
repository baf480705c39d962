package nn

import (
	"math"
	"testing"
)

func TestFanIn(t *testing.T) {
	for _, test := range []struct {
		shape []int
		want  int
	}{
		{[]int{7, 11}, 11},             // dense 11 → 7
		{[]int{5, 3, 2, 13}, 78},       // 3 channels of 2×13
		{[]int{6, 1, 5, 5}, 25},        // lenet5's conv1
		{[]int{10, 676}, 26 * 26},      // dahl-cnn's fc1: 4 channels of 13×13
		{[]int{2, 17, 1, 1}, 17},       // pointwise
		{[]int{32, 64, 3, 3}, 64 * 9},  // deeper
		{[]int{1, 1}, 1},               // smallest
		{[]int{4, 16, 5, 5}, 16 * 25},  // lenet5's conv2
		{[]int{512, 784}, 28 * 28},     // mlp
		{[]int{4, 3, 3, 3}, 3 * 3 * 3}, // dahl-cnn-cifar
	} {
		if got := FanIn(test.shape); got != test.want {
			t.Errorf("FanIn(%v) = %d, want %d", test.shape, got, test.want)
		}
		if b, want := DefaultBound(test.shape), math.Sqrt(1/float64(test.want)); math.Abs(b-want) > 1e-15*want {
			t.Errorf("DefaultBound(%v) = %v, want %v", test.shape, b, want)
		}
	}
}

// U(-b, b) has mean 0, variance b²/3 and the extreme ±b: of n draws none is
// beyond, and the largest falls short of b(1-2k/n) with probability at most e^-k.
func TestInitUniform(t *testing.T) {
	const n, bound = 50_021, 0.25
	w := make([]float64, n)
	InitUniform(w, 3, "fc1.weight", bound)
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
	InitUniform(long, 3, "conv1.weight", 1)
	InitUniform(other, 3, "conv1.bias", 1)
	InitUniform(short, 3, "conv1.weight", 1)
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
	InitBetween(other, 3, "conv1.weight", 2, 4) // 3 + U(-1, 1), two roundings of numbers below 4
	for i := range other {
		if math.Abs(other[i]-3-long[i]) > 0x1p-50 {
			t.Errorf("InitBetween gives %v, want 3 + %v", other[i], long[i])
		}
	}
}
