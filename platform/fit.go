package platform

import (
	"math"
	"slices"
)

// A fit says how long a call takes as a line in its work,
//
//	t(flops, bytes) = a + b·flops + c·bytes,   a, b, c ≥ 0:
//
// a start-up time and the inverse rates of arithmetic and memory. The
// coefficients minimise the sum over the measured shapes i of the squared
// relative error ((a + b·fᵢ + c·mᵢ)/tᵢ − 1)², so that short calls count as much
// as long ones. With rows rᵢ = (1, fᵢ, mᵢ)/tᵢ that is the least squares solution
// of R·x = 1 under x ≥ 0.
//
// The problem is convex: its solution is the unconstrained one over the columns
// of its positive coefficients, and if those columns are dependent another
// solution needs fewer. So all seven subsets of the three columns are solved, by
// normal equations of at most 3×3, and the best solution without a negative
// coefficient is taken. Columns are scaled to length 1 first; a subset whose
// columns are nearly dependent is passed over.
type fit struct {
	coef     [3]float64
	relError float64 // median of |t(fᵢ, mᵢ)/tᵢ − 1|
}

const minFitShapes = 3

// dependent is the pivot, of columns of length 1, below which a subset is passed over.
const dependent = 1e-10

func (f *fit) ns(flops, bytes float64) float64 {
	return f.coef[0] + float64(f.coef[1]*flops) + float64(f.coef[2]*bytes)
}

// fitModels fits the models of one variant, one for each shape.
func fitModels(models []*Model) (f fit, ok bool) {
	if len(models) < minFitShapes {
		return fit{}, false
	}
	rows := make([][3]float64, len(models))
	var scale [3]float64
	for i, m := range models {
		ns := m.expectedNs()
		rows[i] = [3]float64{1 / ns, m.Flops / ns, float64(m.MovedBytes) / ns}
		for j, v := range rows[i] {
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
				f.coef[j] = 0
				if x[j] > 0 {
					f.coef[j] = x[j] / scale[j]
				}
			}
		}
	}
	f.relError = medianResidual(rows, f.coef, scale)
	return f, ok
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

// medianResidual is the median (the upper one of two) of the relative errors; rows are scaled, coef is not.
func medianResidual(rows [][3]float64, coef, scale [3]float64) float64 {
	x := [3]float64{float64(coef[0] * scale[0]), float64(coef[1] * scale[1]), float64(coef[2] * scale[2])}
	errs := make([]float64, len(rows))
	for i, r := range rows {
		errs[i] = math.Abs(residual(r, x))
	}
	slices.Sort(errs)
	return errs[len(errs)/2]
}
