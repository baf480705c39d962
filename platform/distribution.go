package platform

import (
	"dahl/platform/quantity"
	"slices"
	"strconv"
	"strings"
	"time"
)

// DistributionParts is into how many parts of equal probability a distribution is cut.
const DistributionParts = 16

// Distribution keeps the repeated times of one call in little space. Entry i is the mean, in
// nanoseconds, of the i-th sixteenth of the sorted times. An entry drawn at random has the mean
// of all times as its expectation. All zero: not known.
type Distribution [DistributionParts]float64

// NewDistribution summarises sorted, positive times; with fewer than
// DistributionParts of them, neighbouring entries share a time.
func NewDistribution(sorted []time.Duration) (d Distribution) {
	n := len(sorted)
	if n == 0 {
		return d
	}
	for i := range d {
		from := i * n / DistributionParts
		to := max((i+1)*n/DistributionParts, from+1)
		var sum time.Duration
		for _, t := range sorted[from:to] {
			sum += t
		}
		// Whole nanoseconds: the measurement is no finer.
		d[i] = float64(max(1, (sum+time.Duration(to-from)/2)/time.Duration(to-from)))
	}
	return d
}

// Known reports whether there is a distribution.
func (d *Distribution) Known() bool { return d[0] > 0 }

// Mean is the mean of the entries.
func (d *Distribution) Mean() float64 {
	sum := 0.0
	for _, v := range d {
		sum += v
	}
	return sum / DistributionParts
}

// relative is the distribution divided by its mean.
func (d *Distribution) relative() (r Distribution) {
	if mean := d.Mean(); mean > 0 {
		for i, v := range d {
			r[i] = v / mean
		}
	}
	return r
}

// valid reports whether the entries are times in ascending order, or all zero.
func (d *Distribution) valid() bool {
	return slices.IsSorted(d[:]) && amount(d[DistributionParts-1]) && d[DistributionParts-1] <= quantity.MaxWhole && (d[0] > 0 || *d == Distribution{})
}

// format writes "11.9 12 … 14.1 us" so that parse gives the same numbers back.
func (d *Distribution) format() string {
	parts := make([]string, len(d))
	for i, v := range d {
		parts[i] = strconv.FormatFloat(v, 'f', -1, 64)
	}
	return strings.Join(parts, " ") + " ns"
}

// parseDistribution reads the numbers before a unit.
func parseDistribution(text string) (d Distribution, ok bool) {
	fields := strings.Fields(text)
	if len(fields) != DistributionParts+1 {
		return d, false
	}
	for i := range d {
		v, err := quantity.Nanoseconds.Parse(fields[i] + " " + fields[DistributionParts])
		if err != nil {
			return d, false
		}
		d[i] = v
	}
	return d, true
}
