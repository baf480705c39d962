package simd

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// winogradMatrices are B', G and A' of F(4×4,3×3) as the theorem of Cook and Toom gives them for the
// points 0, ±5/8, ±3/2 and ∞: with M(x) the product of all x-p and N the product of the p-r, r≠p,
// G has the rows (1, p, p²)/N and A' the columns (1, p, p², p³). B' has the coefficients of M(x)/(x-p),
// in ascending order, and of M(x) for ∞. Signs of the rows of B' and G may be changed together.
func winogradMatrices() (b [6][6]float64, g [6][3]float64, a [4][6]float64) {
	points := []float64{0, 0.625, -0.625, 1.5, -1.5}
	times := func(poly [6]float64, root float64) (product [6]float64) {
		for i, v := range poly {
			product[i] -= root * v
			if i < 5 {
				product[i+1] += v
			}
		}
		return product
	}
	all := [6]float64{1}
	for i, p := range points {
		n, others := 1.0, [6]float64{1}
		for j, r := range points {
			if j != i {
				n *= p - r
				others = times(others, r)
			}
		}
		b[i] = others
		for k := range 3 {
			g[i][k] = math.Pow(p, float64(k)) / n
		}
		for k := range 4 {
			a[k][i] = math.Pow(p, float64(k))
		}
		all = times(all, p)
	}
	b[5], g[5][2], a[3][5] = all, 1, 1
	return b, g, a
}

// TestWinogradMatrices: a convolution by them of numbers of one line gives what it should.
func TestWinogradMatrices(t *testing.T) {
	b, g, a := winogradMatrices()
	d, w := []float64{2, -3, 5, -7, 11, -13}, []float64{17, -19, 23}
	for k := range 4 {
		var got float64
		for i := range 6 {
			var u, v float64
			for j := range 6 {
				v += b[i][j] * d[j]
			}
			for j := range 3 {
				u += g[i][j] * w[j]
			}
			got += a[k][i] * u * v
		}
		if want := d[k]*w[0] + d[k+1]*w[1] + d[k+2]*w[2]; math.Abs(got-want) > 1e-10 {
			t.Errorf("result %d is %g, want %g", k, got, want)
		}
	}
}

// transform is matrix·tile·matrix' in float64, and the same of all absolute values.
func transform(matrix [][]float64, tile [][]float64) (result, size [][]float64) {
	for i := range matrix {
		result, size = append(result, nil), append(size, nil)
		for j := range matrix {
			var sum, abs float64
			for k := range tile {
				for m := range tile {
					term := matrix[i][k] * tile[k][m] * matrix[j][m]
					sum, abs = sum+term, abs+math.Abs(term)
				}
			}
			result[i], size[i] = append(result[i], sum), append(size[i], abs)
		}
	}
	return result, size
}

func transposed(m [][]float64) [][]float64 {
	t := make([][]float64, len(m[0]))
	for i := range m {
		for j := range m[i] {
			t[j] = append(t[j], m[i][j])
		}
	}
	return t
}

// TestWinogradTransforms compares every transform with its matrices at every level. A sum of at most 36 terms, each a
// product of a value and two rounded constants, errs by less than 41 roundings of the sum of absolute
// values; the additions of a bias and of old contents are two more.
func TestWinogradTransforms(t *testing.T) {
	b, g, a := winogradMatrices()
	rows := func(n int, row func(i int) []float64) (m [][]float64) {
		for i := range n {
			m = append(m, row(i))
		}
		return m
	}
	data := rows(6, func(i int) []float64 { return b[i][:] })
	filter := rows(6, func(i int) []float64 { return g[i][:] })
	result := rows(4, func(i int) []float64 { return a[i][:] })
	for _, c := range []struct {
		name   string
		matrix [][]float64
		out    bool
		run    func(w *Winograd, l Level)
	}{
		{"data", data, false, (*Winograd).Data},
		{"gradient", transposed(result), false, (*Winograd).Gradient},
		{"filter", filter, false, (*Winograd).Filter},
		{"result", result, true, (*Winograd).Result},
		{"filter gradient", transposed(filter), true, (*Winograd).FilterGradient},
	} {
		rng := rand.New(rand.NewPCG(7, 11))
		for range 60 {
			w := randomTiles(rng, min(len(c.matrix), len(c.matrix[0])), c.name == "result")
			for _, l := range supported() {
				got := *w
				got.X, got.Domain = slices.Clone(w.X), slices.Clone(w.Domain)
				c.run(&got, l)
				w.compareTiles(t, c.name, l, c.matrix, c.out, &got)
			}
		}
	}
}

// randomTiles draws tiles of side×side pixels, with gaps between all that must not change.
func randomTiles(rng *rand.Rand, side int, results bool) *Winograd {
	w := &Winograd{Tiles: 1 + rng.IntN(3), Channels: 1 + rng.IntN(40), Rows: side, Columns: side, Accumulate: rng.IntN(2) == 0}
	if results {
		w.Rows, w.Columns, w.ReLU = 1+rng.IntN(4), 1+rng.IntN(4), rng.IntN(2) == 0
	}
	random := func(n int) []float32 {
		all := make([]float32, n)
		for i := range all {
			all[i] = 2*rng.Float32() - 1
		}
		return all
	}
	w.XPixel = w.Channels + rng.IntN(3)
	w.XRow = side*w.XPixel + rng.IntN(3)
	w.XTile = side*w.XRow + rng.IntN(3)
	w.Position = w.Channels + rng.IntN(3)
	w.DomainTile = WinogradPositions*w.Position + rng.IntN(3)
	w.X, w.Domain = random(w.Tiles*w.XTile), random(w.Tiles*w.DomainTile)
	if results && rng.IntN(2) == 0 {
		w.Bias = random(w.Channels)
	}
	if results && rng.IntN(2) == 0 {
		w.WherePixel = w.Channels + rng.IntN(3)
		w.WhereRow = side*w.WherePixel + rng.IntN(3)
		w.WhereTile = side*w.WhereRow + rng.IntN(3)
		w.Where = random(w.Tiles * w.WhereTile)
	}
	return w
}

// compareTiles compares what a transform has written with what it should, and all else with what was there.
func (w *Winograd) compareTiles(t *testing.T, name string, l Level, matrix [][]float64, out bool, got *Winograd) {
	t.Helper()
	from, to, gotTo := w.X, slices.Clone(w.Domain), got.Domain
	read, written := [3]int{w.XTile, w.XRow, w.XPixel}, [3]int{w.DomainTile, WinogradData * w.Position, w.Position}
	rows, columns := len(matrix), len(matrix)
	if out {
		from, to, gotTo = w.Domain, slices.Clone(w.X), got.X
		read, written = written, read
		rows, columns = w.Rows, w.Columns
	}
	for n := range w.Tiles {
		for c := range w.Channels {
			var tile [][]float64
			for i := range matrix[0] {
				tile = append(tile, nil)
				for j := range matrix[0] {
					tile[i] = append(tile[i], float64(from[n*read[0]+i*read[1]+j*read[2]+c]))
				}
			}
			want, size := transform(matrix, tile)
			for i := range rows {
				for j := range columns {
					at := n*written[0] + i*written[1] + j*written[2] + c
					v, s := want[i][j], size[i][j]
					if out {
						v, s = w.finished(v, s, n, i, j, c, float64(to[at]))
					}
					if d := math.Abs(float64(gotTo[at]) - v); !(d <= 43*0x1p-24*s) {
						t.Fatalf("%s, %v, tile %d, channel %d of %d: (%d, %d) is %g, want %g", name, l, n, c, w.Channels, i, j, gotTo[at], v)
					}
					to[at] = gotTo[at]
				}
			}
		}
	}
	if !slices.Equal(gotTo, to) {
		t.Fatalf("%s, %v: something beside the tiles has changed", name, l)
	}
}

// finished is what becomes of a result, and the size of its terms.
func (w *Winograd) finished(v, size float64, n, i, j, c int, old float64) (result, terms float64) {
	if w.Accumulate {
		v, size = v+old, size+math.Abs(old)
	}
	if w.Bias != nil {
		v, size = v+float64(w.Bias[c]), size+math.Abs(float64(w.Bias[c]))
	}
	if w.ReLU && v < 0 || w.Where != nil && !(w.Where[n*w.WhereTile+i*w.WhereRow+j*w.WherePixel+c] > 0) {
		return 0, size
	}
	return v, size
}
