// Package fit finds the times of calls and copies as lines through measured ones.
package fit

import (
	"math"
	"slices"
)

// Calls predicts the time of a call as a line in its work,
//
//	t(flops, bytes) = a + b·flops + c·bytes,   a, b, c ≥ 0:
//
// a start-up time and the inverse rates of arithmetic and memory. The coefficients minimise the
// sum, over the measured shapes i, of the squared relative error ((a + b·fᵢ + c·mᵢ)/tᵢ − 1)². So
// short calls count as much as long ones. With rows rᵢ = (1, fᵢ, mᵢ)/tᵢ that is the least squares
// solution of R·x = 1 under x ≥ 0.
//
// The problem is convex. Its solution is the unconstrained one over the columns of its positive
// coefficients; if those columns are dependent, another solution needs fewer. So all seven
// subsets of the three columns are solved, by normal equations of at most 3×3. The best solution
// without a negative coefficient wins. Columns are first scaled to length 1. A subset whose
// columns are nearly dependent is skipped.
//
// The error of a prediction is found by leaving out one shape at a time, fitting the others and
// predicting it (P. Allen, The relationship between variable selection and data augmentation and
// a method for prediction, Technometrics 16(1), 1974). Two of three shapes lie within RelError of
// their prediction from the others.
type Calls struct {
	Coef     [3]float64 // a, b, c in nanoseconds
	RelError float64
}

const (
	minFitShapes = 3
	// maxLeftOut bounds the number of shapes that are left out in turn.
	maxLeftOut = 64
)

// dependent is the pivot, for columns of length 1, below which a subset is skipped.
const dependent = 1e-10

// Ns is the time of a call in nanoseconds.
func (f *Calls) Ns(flops, bytes float64) float64 {
	return f.Coef[0] + float64(f.Coef[1]*flops) + float64(f.Coef[2]*bytes)
}

// Row is the equation of a measured call.
func Row(flops, bytes, ns float64) [3]float64 { return [3]float64{1 / ns, flops / ns, bytes / ns} }

// OfCalls fits the calls of one variant, one for each shape. ok is false with fewer than three shapes.
func OfCalls(rows [][3]float64) (f Calls, ok bool) {
	if len(rows) < minFitShapes {
		return Calls{}, false
	}
	if f.Coef, ok = Minimise(rows); ok {
		f.RelError = leaveOneOut(rows)
	}
	return f, ok
}

// Minimise returns the coefficients x ≥ 0 for which the sum of the squares of rows·x − 1 is least.
func Minimise(unscaled [][3]float64) (coef [3]float64, ok bool) {
	rows := slices.Clone(unscaled)
	var scale [3]float64
	for _, r := range rows {
		for j, v := range r {
			scale[j] += float64(v * v)
		}
	}
	for j := range scale {
		scale[j] = math.Sqrt(scale[j])
		for i := range rows {
			if scale[j] > 0 {
				rows[i][j] /= scale[j]
			}
		}
	}
	least := math.Inf(1)
	for subset := 1; subset < 8; subset++ {
		x, solved := leastSquares(rows, subset)
		if sum := squaredResiduals(rows, x); solved && sum < least {
			least, ok = sum, true
			for j := range x {
				coef[j] = 0
				if x[j] > 0 {
					coef[j] = x[j] / scale[j]
				}
			}
		}
	}
	return coef, ok
}

// leaveOneOut returns the relative error within which two of three shapes are
// predicted by the others; of many shapes, evenly spaced ones are left out.
func leaveOneOut(rows [][3]float64) float64 {
	n := min(len(rows), maxLeftOut)
	errs := make([]float64, 0, n)
	for k := range n {
		i := k * len(rows) / n
		if coef, ok := Minimise(slices.Concat(rows[:i], rows[i+1:])); ok {
			errs = append(errs, math.Abs(residual(rows[i], coef)))
		}
	}
	if len(errs) == 0 {
		return 0
	}
	slices.Sort(errs)
	return errs[(2*len(errs)+2)/3-1]
}

// leastSquares solves rows·x = 1 over the columns in a subset; ok is false when
// they are dependent or a coefficient comes out negative.
func leastSquares(rows [][3]float64, subset int) (x [3]float64, ok bool) {
	var cols []int
	for j := range 3 {
		if subset>>j&1 == 1 {
			cols = append(cols, j)
		}
	}
	n := len(cols)
	var m [3][4]float64 // normal equations and their right-hand side
	for _, r := range rows {
		for i, ci := range cols {
			for j, cj := range cols {
				m[i][j] += float64(r[ci] * r[cj])
			}
			m[i][n] += r[ci]
		}
	}
	for i := range n { // positive definite: elimination needs no exchange of rows
		if m[i][i] < dependent {
			return x, false
		}
		for k := i + 1; k < n; k++ {
			factor := m[k][i] / m[i][i]
			for j := i; j <= n; j++ {
				m[k][j] -= float64(factor * m[i][j])
			}
		}
	}
	for i := n - 1; i >= 0; i-- {
		sum := m[i][n]
		for j := i + 1; j < n; j++ {
			sum -= float64(m[i][j] * x[cols[j]])
		}
		if x[cols[i]] = sum / m[i][i]; x[cols[i]] < 0 {
			return x, false
		}
	}
	return x, true
}

func residual(r, x [3]float64) float64 {
	return float64(r[0]*x[0]) + float64(r[1]*x[1]) + float64(r[2]*x[2]) - 1
}

func squaredResiduals(rows [][3]float64, x [3]float64) float64 {
	sum := 0.0
	for _, r := range rows {
		d := residual(r, x)
		sum += float64(d * d)
	}
	return sum
}
