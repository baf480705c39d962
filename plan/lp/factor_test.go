package lp

import (
	"math"
	"math/rand/v2"
	"testing"
)

// basis is a matrix of sparse columns by the row at which the factor put them.
type basis []sparse

// randomColumn has the entry of a row, so that a basis is hardly ever singular, and few others.
func randomColumn(draw *rand.Rand, rows int, row int32) (c sparse) {
	for i := range int32(rows) {
		if i == row || draw.IntN(rows) < 4 {
			c.index, c.value = append(c.index, i), append(c.value, draw.NormFloat64())
		}
	}
	return c
}

// check solves with the basis and its transpose and multiplies back.
func (b basis) check(t *testing.T, f *factor, draw *rand.Rand) {
	t.Helper()
	right := make([]float64, len(b))
	for i := range right {
		right[i] = draw.NormFloat64()
	}
	x := append([]float64(nil), right...)
	f.solve(x, false)
	y := append([]float64(nil), right...)
	f.solveTransposed(y)
	back := make([]float64, len(b))
	for i, c := range b {
		subtract(back, -x[i], c.index, c.value)
		if got := dot(y, c.index, c.value); math.Abs(got-right[i]) > 1e-7 {
			t.Errorf("row %d of Bᵀy is %v, want %v", i, got, right[i])
		}
	}
	for i := range back {
		if math.Abs(back[i]-right[i]) > 1e-7 {
			t.Errorf("row %d of Bx is %v, want %v", i, back[i], right[i])
		}
	}
}

// TestFactor factors bases with and without logicals and replaces columns.
func TestFactor(t *testing.T) {
	for seed := range uint64(20) {
		draw := rand.New(rand.NewPCG(seed, 11))
		rows := 20 + draw.IntN(40)
		own := int32(draw.IntN(rows))
		f, b := &factor{}, make(basis, rows)
		f.begin(rows)
		for i := range own {
			f.addOwn(i)
			b[i] = sparse{[]int32{i}, []float64{-1}}
		}
		var columns []sparse
		for i := own; i < int32(rows); i++ {
			c := randomColumn(draw, rows, i)
			columns = append(columns, c)
			f.addColumn(c.index, c.value)
		}
		if !f.finish() {
			t.Fatalf("seed %d: singular", seed)
		}
		for slot, c := range columns {
			b[f.rowOf[slot]] = c
		}
		b.check(t, f, draw)
		for range 30 {
			row := int32(draw.IntN(rows))
			c := randomColumn(draw, rows, row)
			entering := make([]float64, rows)
			subtract(entering, -1, c.index, c.value)
			f.solve(entering, true)
			if math.Abs(entering[row]) < 0.01 {
				continue // the basis would be nearly singular
			}
			f.replace(row)
			b[row] = c
			b.check(t, f, draw)
		}
	}
}

// TestDependent: the factor says that a column has no pivot if it is empty beside a logical, and
// that one of two has none which differ only there.
func TestDependent(t *testing.T) {
	f := &factor{}
	f.begin(5)
	f.addOwn(4)
	for _, column := range [][]float64{{1, 2, 0, 0, 1}, {1, 2, 0, 0, 3}, {0, 0, 0, 0, 1}, {3, 0, 1, 0, 0}} {
		var c sparse
		c.gather(column)
		f.addColumn(c.index, c.value)
	}
	if f.finish() {
		t.Fatal("a singular basis is factored")
	}
	without := 0
	for slot, row := range f.rowOf {
		if row < 0 {
			without++
		}
		if slot == 3 && row < 0 || slot == 2 && row >= 0 {
			t.Errorf("column %d has its pivot at row %d", slot, row)
		}
	}
	if without != 2 {
		t.Errorf("%d columns have no pivot, want 2: that of zeros and one of the equal ones", without)
	}
}
