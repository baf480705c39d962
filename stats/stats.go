// Package stats has the order statistics that several packages print, so that a median is the same number everywhere.
package stats

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// Median is the middle one of some values, or the mean of the two there; 0 of none.
func Median[T time.Duration | float64](values []T) T {
	n := len(values)
	if n == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// Quantile of a sorted, non-empty list: the smallest value with at least the fraction q of the list at or below it.
func Quantile[T cmp.Ordered](sorted []T, q float64) T {
	i := int(math.Ceil(q*float64(len(sorted)))) - 1
	return sorted[max(0, min(i, len(sorted)-1))]
}
