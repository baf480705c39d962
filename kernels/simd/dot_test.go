package simd

import (
	"math"
	"math/rand/v2"
	"testing"
)

func randomDot[T Float](rng *rand.Rand, m, n, k int) *Dot[T] {
	d := &Dot[T]{M: m, N: n, K: k, ARow: k + rng.IntN(3), BRow: k + rng.IntN(3), CRow: n + rng.IntN(3)}
	d.A = integers[T](rng, (m-1)*d.ARow+k)
	d.B = integers[T](rng, (n-1)*d.BRow+k)
	d.C = integers[T](rng, (m-1)*d.CRow+n)
	if rng.IntN(2) == 0 {
		d.Bias = integers[T](rng, n)
	}
	d.Accumulate, d.ReLU = rng.IntN(3) == 0, rng.IntN(2) == 0
	return d
}

// want is the product by its definition; elements of C that are not results stay.
func (d *Dot[T]) want() []T {
	c := append([]T(nil), d.C...)
	for i := range d.M {
		for j := range d.N {
			var sum T
			if d.Bias != nil {
				sum = d.Bias[j]
			}
			if d.Accumulate {
				sum = c[i*d.CRow+j]
			}
			for p := range d.K {
				sum += d.A[i*d.ARow+p] * d.B[j*d.BRow+p]
			}
			if d.ReLU {
				sum = max(sum, 0)
			}
			c[i*d.CRow+j] = sum
		}
	}
	return c
}

// TestDot compares all levels with the definition, exactly, over every number of rows
// and columns up to two blocks and every length up to two vectors, and random others.
func TestDot(t *testing.T) {
	t.Run("float32", testDot[float32])
	t.Run("float64", testDot[float64])
}

func testDot[T Float](t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	try := func(m, n, k int) {
		d := randomDot[T](rng, m, n, k)
		want := d.want()
		for _, l := range supported() {
			e := *d
			e.C = append([]T(nil), d.C...)
			e.Run(l)
			for i, v := range e.C {
				if v != want[i] {
					t.Fatalf("%v %d×%d×%d, accumulate %v, relu %v: C[%d] is %v, want %v", l, m, n, k, d.Accumulate, d.ReLU, i, v, want[i])
				}
			}
		}
	}
	for m := 1; m <= 13; m++ {
		for n := 1; n <= 9; n++ {
			for k := 1; k <= 33; k++ {
				try(m, n, k)
			}
		}
	}
	for range 50 {
		try(1+rng.IntN(30), 1+rng.IntN(30), 1+rng.IntN(300))
		try(1+rng.IntN(9), 1+rng.IntN(9), dotDepth+rng.IntN(2*dotDepth))
	}
}

// TestDotSameOrder: an element has the same bits alone and in any larger product, at
// any position.
func TestDotSameOrder(t *testing.T) {
	t.Run("float32", testDotSameOrder[float32])
	t.Run("float64", testDotSameOrder[float64])
}

func testDotSameOrder[T Float](t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for _, l := range supported() {
		d := randomDot[T](rng, 17, 23, 131)
		for _, s := range [][]T{d.A, d.B} {
			for i := range s {
				s[i] = T(rng.Float64())
			}
		}
		d.Accumulate, d.ReLU = false, false
		d.Run(l)
		for range 200 {
			i, j := rng.IntN(d.M), rng.IntN(d.N)
			e := *d
			e.M, e.N, e.A, e.B, e.C = 1, 1, d.A[i*d.ARow:], d.B[j*d.BRow:], make([]T, 1)
			if d.Bias != nil {
				e.Bias = d.Bias[j:]
			}
			e.Run(l)
			if e.C[0] != d.C[i*d.CRow+j] {
				t.Fatalf("%v: C[%d,%d] is %v alone and %v among others", l, i, j, e.C[0], d.C[i*d.CRow+j])
			}
		}
	}
}

// TestDotNaN: NaN stays with ReLU and without.
func TestDotNaN(t *testing.T) {
	for _, l := range supported() {
		for _, relu := range []bool{false, true} {
			d := Dot[float32]{M: 1, N: 2, K: 1, A: []float32{1}, B: []float32{float32(math.NaN()), -1}, C: make([]float32, 2), ARow: 1, BRow: 1, CRow: 2, ReLU: relu}
			d.Run(l)
			if d.C[0] == d.C[0] || relu != (d.C[1] == 0) {
				t.Errorf("%v, relu %v: %v", l, relu, d.C)
			}
		}
	}
}
