package simd

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestTranspose moves matrices of numbers that are all different, at distances with and
// without gaps, which must not change.
func TestTranspose(t *testing.T) {
	t.Run("float32", testTranspose[float32])
	t.Run("float64", testTranspose[float64])
}

func testTranspose[T Float](t *testing.T) {
	rng := rand.New(rand.NewPCG(19, 23))
	for range 500 {
		m := Transpose[T]{Rows: 1 + rng.IntN(40), Columns: 1 + rng.IntN(40), Flip: rng.IntN(2) == 0}
		m.FromRow = m.Columns + rng.IntN(3)
		m.ToRow = m.Rows + rng.IntN(3)
		m.From = make([]T, m.Rows*m.FromRow)
		for i := range m.From {
			m.From[i] = T(i)
		}
		want := slices.Repeat([]T{-7}, m.Columns*m.ToRow)
		for i := range m.Rows {
			for j := range m.Columns {
				to := j
				if m.Flip {
					to = m.Columns - 1 - j
				}
				want[to*m.ToRow+i] = m.From[i*m.FromRow+j]
			}
		}
		for _, l := range supported() {
			m.To = slices.Repeat([]T{-7}, len(want))
			m.Run(l)
			if !slices.Equal(m.To, want) {
				t.Fatalf("%v, %d rows of %d, distances %d and %d, flipped %v: %v, want %v",
					l, m.Rows, m.Columns, m.FromRow, m.ToRow, m.Flip, m.To, want)
			}
		}
	}
}
