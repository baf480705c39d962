package experiment

import (
	"math"
	"slices"
)

// The interval of a median that needs no assumption about how values are distributed.
//
// Theory. Of n independent values each is below the median m of their distribution with
// probability 1/2, so the number B of those below is binomial. The k-th smallest value lies above m
// exactly if B < k, and the k-th largest below m exactly if B > n−k. So the interval from the
// k-th smallest to the k-th largest holds m with the probability
//
//	P = 1 − 2·(C(n,0) + … + C(n,k−1))/2ⁿ.
//
// The greatest k with P ≥ 95 % is taken. Below 6 values there is none, since 1 − 2/2⁵ = 93.75 %;
// then the interval is from the least to the greatest value, and its P is said.

// confidence is the probability that an interval has at least where there are enough values.
const confidence = 0.95

// Interval returns bounds of the median of the values' distribution, and the probability of a
// median between them. There is at least one value. A single value has probability 0.
func Interval(values []float64) (low, high, probability float64) {
	sorted, n := slices.Sorted(slices.Values(values)), len(values)
	k, outside := 1, 2*binomial(n, 0)
	for 2*(k+1) <= n && 1-outside-2*binomial(n, k) >= confidence {
		outside += 2 * binomial(n, k)
		k++
	}
	return sorted[k-1], sorted[n-k], max(0, 1-outside)
}

// binomial is C(n,k)/2ⁿ.
func binomial(n, k int) float64 {
	lgamma := func(x int) float64 { v, _ := math.Lgamma(float64(x) + 1); return v }
	return math.Exp(lgamma(n) - lgamma(k) - lgamma(n-k) - float64(float64(n)*math.Ln2))
}
