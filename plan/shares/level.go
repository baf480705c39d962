package shares

import (
	"math"
	"slices"
)

// How much a tile moves for its share of an operation. A tile with the part f_s of each side s moves, of each operand, the bytes times the f_s of
// the operand's own sides. Per share, the product of all f_s, these are the bytes times 1/f_s for the other sides. With x_s = −ln f_s
// this is a sum of exponential functions, and so convex. A share of at most h says that the
// x_s add up to −ln h or more, and x_s is at most the logarithm of the extent.
//
// A path of small steps along the side with the least derivative comes near the least. It need not be: a convex
// function is nowhere below its tangent at a point, and the least of the tangent is found by filling the sides with the least slopes.
//
// An example. A product of matrices with 64 rows, columns and terms has three operands of 4096 elements and moves 3·4096 as a whole.
// Tiles with 1/8 of it move least as cubes, with f_s = 1/2: each 3·1024, and per share twice as much as the whole.

// level says that tiles with shares up to Most move Bytes per share at least.
type level struct{ most, bytes float64 }

const (
	// levelRatio is the ratio of shares of two levels, between which the bytes of the greater hold.
	levelRatio = 1.3
	mostLevels = 44 // down to 1/100,000
	pathSteps  = 8  // of a path between two levels
)

// newLevels finds the levels of a form, as far as smaller tiles move more.
func (f *form) newLevels() (all []level) {
	x := make([]float64, len(f.Sides))
	sum := 0.0
	for i := range mostLevels {
		to := float64(i) * math.Log(levelRatio)
		for step := (to - sum) / pathSteps; to-sum > 1e-12; {
			s := f.flattest(x)
			if s < 0 {
				return all // no tile is so small
			}
			by := min(step, to-sum, math.Log(float64(f.Sides[s]))-x[s])
			x[s] += by
			sum += by
		}
		bytes := below(f.tangent(x, to)) * (1 - 1e-9)
		if i == 0 || bytes > all[len(all)-1].bytes {
			all = append(all, level{min(1, math.Exp(-to)*(1+1e-12)), bytes})
		}
	}
	return all
}

// smallest is the share of the smallest tile.
func (f *form) smallest() float64 {
	share := 1 - 1e-9
	for _, extent := range f.Sides {
		share /= float64(extent)
	}
	return share
}

// slopes are the bytes per share at a point, and how fast they grow along each side.
func (f *form) slopes(x []float64) (bytes float64, slopes []float64) {
	slopes = make([]float64, len(x))
	for _, m := range f.Moved {
		exponent := 0.0
		for s := range x {
			if m.Depends>>s&1 == 0 {
				exponent += x[s]
			}
		}
		per := m.Bytes * math.Exp(exponent)
		bytes += per
		for s := range x {
			if m.Depends>>s&1 == 0 {
				slopes[s] += per
			}
		}
	}
	return bytes, slopes
}

// flattest is the side with the least slope of those that can be cut further; -1 means there is none.
func (f *form) flattest(x []float64) int {
	_, slopes := f.slopes(x)
	at := -1
	for s := range x {
		if x[s] < math.Log(float64(f.Sides[s]))-1e-12 && (at < 0 || slopes[s] < slopes[at]) {
			at = s
		}
	}
	return at
}

// tangent is the least of the tangent at a point, over all points whose coordinates add up to a sum.
func (f *form) tangent(x []float64, sum float64) float64 {
	bytes, slopes := f.slopes(x)
	order := make([]int, len(x))
	for s := range order {
		order[s] = s
		bytes -= slopes[s] * x[s]
	}
	slices.SortStableFunc(order, func(a, b int) int {
		switch {
		case slopes[a] < slopes[b]:
			return -1
		case slopes[a] > slopes[b]:
			return 1
		}
		return 0
	})
	for _, s := range order {
		by := min(sum, math.Log(float64(f.Sides[s])))
		bytes += slopes[s] * by
		sum -= by
	}
	return bytes
}
