package kerneltest

import (
	"math"
	"slices"

	"dahl/dag"
	"dahl/kernels/calls"
)

// RowParams are the parameters of layernorm.
func RowParams(center, eps float64) dag.Params {
	return append(FlagParams("center", center), dag.Param{Name: "eps", Value: eps})
}

// rowCases are the cases of layer normalisations. The row 1 3 5 7 has the mean 4 and deviations -3 -1 1 3, whose squares have the mean 5. With
// eps = 11 the root is 4, so that n = -0.75 -0.25 0.25 0.75.
func rowCases() []HandCase {
	return []HandCase{
		{
			Name: "a row", Op: "layernorm", Params: RowParams(1, 11),
			Shapes: [][]int{{1, 4}, {1, 2}, {1, 4}, {4}, {4}},
			In:     [][]float64{nil, nil, {1, 3, 5, 7}, {16, 16, 16, 16}, {1, 2, 3, 4}},
			Want:   [][]float64{{-11, -2, 7, 16}, {4, 0.25}, nil, nil, nil},
		},
		{
			// The mean of 1 and 9 is 5, too.
			Name: "without the mean", Op: "layernorm", Params: RowParams(0, 11),
			Shapes: [][]int{{1, 2}, {1, 2}, {1, 2}, {2}},
			In:     [][]float64{nil, nil, {1, 3}, {16, 8}},
			Want:   [][]float64{{4, 6}, {0, 0.25}, nil, nil},
		},
		{
			// g = 16 0 0 0 has the mean 4, and g·n the mean -3: (16 - 4 + 3n)/4 and (-4 + 3n)/4.
			Name: "a row", Op: "layernorm.dx", Params: FlagParams("center", 1),
			Shapes: [][]int{{1, 4}, {1, 4}, {1, 4}, {1, 2}, {4}},
			In:     [][]float64{nil, {8, 0, 0, 0}, {1, 3, 5, 7}, {4, 0.25}, {2, 2, 2, 2}},
			Want:   [][]float64{{2.4375, -1.1875, -0.8125, -0.4375}, nil, nil, nil, nil},
		},
		{
			Name: "the row as a sum", Op: "layernorm.sum", Params: RowParams(1, 11),
			Shapes: [][]int{{1, 4}, {1, 2}, {1, 4}, {1, 4}, {1, 4}, {4}, {4}},
			In:     [][]float64{nil, nil, nil, {0, 1, 2, 3}, {1, 2, 3, 4}, {16, 16, 16, 16}, {1, 2, 3, 4}},
			Want:   [][]float64{{-11, -2, 7, 16}, {4, 0.25}, {1, 3, 5, 7}, nil, nil, nil, nil},
		},
		{
			Name: "with another part", Op: "layernorm.dx.sum", Params: FlagParams("center", 1),
			Shapes: [][]int{{1, 4}, {1, 4}, {1, 4}, {1, 2}, {4}, {1, 4}},
			In:     [][]float64{nil, {8, 0, 0, 0}, {1, 3, 5, 7}, {4, 0.25}, {2, 2, 2, 2}, {1, 2, 3, 4}},
			Want:   [][]float64{{3.4375, 0.8125, 2.1875, 3.5625}, nil, nil, nil, nil, nil},
		},
		{
			// n = 0.25 and -1: 8·0.25 - 3 and 8 + 3.
			Name: "two rows", Op: "layernorm.dw",
			Shapes: [][]int{{1}, {2, 1}, {2, 1}, {2, 2}, {1}},
			In:     [][]float64{nil, {8, 3}, {5, 1}, {4, 0.25, 3, 0.5}, nil},
			Want:   [][]float64{{-1}, nil, nil, nil, {11}},
		},
	}
}

// rowNormBounds is the bounds of layer normalisations, by operand and element. Nil means that the operation is none.
//
// A variant may add in any order and in the type itself. With c elements in a row, d = x - μ and means over the row, its
//
//	μ errs by             a = (c+2)·u·mean|x|
//	d errs by             a + u·|d|
//	σ²+eps by a relative  e = (c+4)·u + (2a·mean|d| + a²)/(σ²+eps)
//	r by                  (e/2 + 3u)·r, as long as e is small: e is twice that here
//	y by                  |w|·(r·(a + u|d|) + |d|·r·(e + 3u)) + 4u·(|w·d·r| + |b|)
//
// The sums of a gradient have products of at most six exactly known numbers as terms, and err by γ of their
// number of terms and eight roundings. The reference computes in float64 and rounds once, for which all is doubled.
func rowNormBounds(c *Case) [][]float64 {
	u := UnitRoundoff(c.Spec.Type)
	all := make([][]float64, len(c.Buffers))
	switch c.Kernel.Base {
	case "layernorm":
		x, w, columns := c.Values(2), c.Values(c.Operand("w")), c.Spec.Operands[2].Shape[1]
		if c.Kernel.With.Has(calls.Sum) { // one rounding, so that bits are equal
			r := c.Values(4)
			for i, v := range c.Values(3) {
				x[i] = c.rounded(v + r[i])
			}
		}
		b := make([]float64, columns)
		if at := c.Operand("b"); at < len(c.Buffers) {
			b = c.Values(at)
		}
		for row := range slices.Chunk(x, columns) {
			r := ofRow(row, c.Params()[0], c.Params()[1], u)
			r.bound(all, row, w, b, u)
		}
	case "layernorm.dx":
		dy, x, k, w, columns := c.Values(1), c.Values(2), c.Values(3), c.Values(4), c.Spec.Operands[2].Shape[1]
		gamma := float64(columns+8) * u
		for n, row := range rows(x, columns) {
			mean, inverse := k[2*n], math.Abs(k[2*n+1])
			var sum, products float64
			for i, v := range row {
				g := math.Abs(dy[n*columns+i] * w[i])
				sum, products = sum+g, products+g*math.Abs(v-mean)*inverse
			}
			for i, v := range row {
				g := math.Abs(dy[n*columns+i] * w[i])
				size := inverse * (g + sum/float64(columns) + math.Abs(v-mean)*inverse*products/float64(columns))
				all[0] = append(all[0], 2*inverse*(8*u*g+gamma*sum/float64(columns)+gamma*math.Abs(v-mean)*inverse*products/float64(columns)))
				if c.Kernel.With.Has(calls.Sum) { // both variants round it once more
					all[0][len(all[0])-1] += 2 * u * (size + math.Abs(c.Values(5)[n*columns+i]))
				}
			}
		}
	case "layernorm.dw":
		dy, x, k, columns := c.Values(1), c.Values(2), c.Values(3), c.Spec.Operands[2].Shape[1]
		gamma := 2 * float64(len(x)/columns+8) * u
		dw := slices.Clone(c.Values(0)) // the old contents are a term, if they are added to
		db := make([]float64, columns)
		if len(c.Buffers) > 4 {
			db = c.Values(4)
		}
		for i := range columns {
			products, sum := math.Abs(dw[i]), math.Abs(db[i])
			for n, row := range rows(x, columns) {
				g := math.Abs(dy[n*columns+i])
				products, sum = products+g*math.Abs(row[i]-k[2*n])*math.Abs(k[2*n+1]), sum+g
			}
			all[0] = append(all[0], gamma*products)
			if len(c.Buffers) > 4 {
				all[4] = append(all[4], gamma*sum)
			}
		}
	default:
		return nil
	}
	return all
}

// rows are the rows of a matrix with their numbers.
func rows(values []float64, columns int) func(func(int, []float64) bool) {
	return func(yield func(int, []float64) bool) {
		for n := 0; n*columns < len(values); n++ {
			if !yield(n, values[n*columns:][:columns]) {
				return
			}
		}
	}
}

// rowNorm is how a row is normalised, and by how much a variant errs in that.
type rowNorm struct {
	mean, inverse float64
	a, e          float64
}

func ofRow(row []float64, center, eps, u float64) rowNorm {
	count := float64(len(row))
	var sum, size, squares, deviation float64
	for _, v := range row {
		sum, size = sum+v, size+math.Abs(v)
	}
	mean := center * sum / count
	for _, v := range row {
		squares, deviation = squares+(v-mean)*(v-mean), deviation+math.Abs(v-mean)
	}
	variance := squares/count + eps
	a := center * (count + 2) * u * size / count
	return rowNorm{mean, 1 / math.Sqrt(variance), a, (count+4)*u + (2*a*deviation/count+a*a)/variance}
}

func (r *rowNorm) bound(all [][]float64, row, w, b []float64, u float64) {
	for i, v := range row {
		d := math.Abs(v - r.mean)
		err := math.Abs(w[i])*r.inverse*(r.a+u*d+d*(r.e+7*u)) + 4*u*math.Abs(b[i])
		all[0] = append(all[0], 2*err)
	}
	all[1] = append(all[1], 2*(r.a+u*math.Abs(r.mean)), 2*(r.e+3*u)*r.inverse)
}
