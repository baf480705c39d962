package simd

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// gemmOf returns C = A·B for row-major A and B of whole numbers, or stored transposed,
// with gaps between rows.
func gemmOf[T Float](rng *rand.Rand, m, n, k int, transposeA, transposeB bool, gap int) *Gemm[T] {
	g := &Gemm[T]{M: m, N: n, K: k, ARow: k + gap, ACol: 1, BRow: n + gap, BCol: 1, CRow: n + gap}
	if transposeA {
		g.ARow, g.ACol = 1, m+gap
	}
	if transposeB {
		g.BRow, g.BCol = 1, k+gap
	}
	g.A = integers[T](rng, (m-1)*g.ARow+(k-1)*g.ACol+1)
	g.B = integers[T](rng, (k-1)*g.BRow+(n-1)*g.BCol+1)
	g.C = integers[T](rng, (m-1)*g.CRow+n)
	return g
}

// spread doubles all distances of A and B, so that none is contiguous.
func (g *Gemm[T]) spread(rng *rand.Rand) {
	g.ARow, g.ACol, g.BRow, g.BCol = 2*g.ARow, 2*g.ACol, 2*g.BRow, 2*g.BCol
	g.A, g.B = integers[T](rng, 2*len(g.A)), integers[T](rng, 2*len(g.B))
}

// TestGemm compares every transposition, at extents below and above the blocks, with
// the definition. Sums of whole numbers up to 4·4·K are exact.
func TestGemm(t *testing.T) {
	t.Run("float32", testGemm[float32])
	t.Run("float64", testGemm[float64])
}

func testGemm[T Float](t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for _, e := range [][3]int{{1, 1, 1}, {7, 11, 13}, {3, 700, 331}, {37, 523, 1031}, {263, 1031, 257}, {131, 31, 521}, {11, 2203, 257}, {5, 3, 1031}, {257, 521, 67}} {
		for form := range 16 {
			g := gemmOf[T](rng, e[0], e[1], e[2], form&1 != 0, form&2 != 0, form%3)
			g.Accumulate = form&4 != 0
			if form&8 != 0 {
				g.spread(rng)
			}
			want := definition(g)
			for _, l := range supported() {
				h := *g
				h.C = append([]T(nil), g.C...)
				h.Work = make([]T, h.WorkElems(l))
				h.Run(l)
				for i, v := range h.C {
					if v != want[i] {
						t.Fatalf("%v %v form %d: C[%d] is %v, want %v", l, e, form, i, v, want[i])
					}
				}
			}
		}
	}
}

// definition is what C has to be. The sums of a row are taken side by side, so that B is read
// along its rows.
func definition[T Float](g *Gemm[T]) []T {
	b := make([]T, g.K*g.N)
	for p := range g.K {
		for j := range g.N {
			b[p*g.N+j] = g.B[p*g.BRow+j*g.BCol]
		}
	}
	c := append([]T(nil), g.C...)
	for i := range g.M {
		row := c[i*g.CRow:][:g.N]
		if !g.Accumulate {
			clear(row)
		}
		for p := range g.K {
			a := g.A[i*g.ARow+p*g.ACol]
			for j, v := range b[p*g.N:][:g.N] {
				row[j] += a * v
			}
		}
	}
	return c
}

func BenchmarkGemm(b *testing.B) {
	for _, n := range []int{64, 256, 512, 1024} {
		for form := range 4 {
			for _, l := range supported() {
				b.Run(fmt.Sprintf("%d/form%d/%v/float32", n, form, l), func(b *testing.B) { benchGemm[float32](b, l, n, form) })
				b.Run(fmt.Sprintf("%d/form%d/%v/float64", n, form, l), func(b *testing.B) { benchGemm[float64](b, l, n, form) })
			}
		}
	}
}

func benchGemm[T Float](b *testing.B, l Level, n, form int) {
	g := gemmOf[T](rand.New(rand.NewPCG(1, 2)), n, n, n, form&1 != 0, form&2 != 0, 0)
	g.Work = make([]T, g.WorkElems(l))
	for b.Loop() {
		g.Run(l)
	}
	b.ReportMetric(2*float64(n*n*n)*float64(b.N)/float64(b.Elapsed().Nanoseconds()), "GFLOP/s")
}
