package simd

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestProductInBlocks: a product with room for copies has the bits of the product without, whose sums are in the order of p for 14 rows or more (TestProductOrder: no
// block of 7 rows or more by one vector has several sums, nor one of 4 by two), whether B is transposed or not. Extents are beyond one block of each kind, and rests of all sizes.
func TestProductInBlocks(t *testing.T) {
	t.Run("float32", testProductInBlocks[float32])
	t.Run("float64", testProductInBlocks[float64])
}

func testProductInBlocks[T Float](t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	try := func(m, n, k int) {
		p := randomProduct[T](rng, m, n, k, 1, 0)
		p.Outer, p.AOuter, p.BOuter, p.Next = 0, 0, 0, [2][]T{}
		if p.AStep < p.ARow { // one of the two is 1 in what is computed in blocks
			p.AStep = 1
		} else {
			p.ARow = 1
		}
		for _, x := range [][]T{p.A, p.B, p.C} {
			for i := range x {
				x[i] = T(rng.Float64() - 0.3)
			}
		}
		for _, l := range supported() {
			blocks := Blocks[T](l, m, n, k)
			if blocks == 0 {
				continue
			}
			plain, copied := *p, *p
			plain.C, copied.C, copied.Work = slices.Clone(p.C), slices.Clone(p.C), make([]T, blocks)
			plain.Run(l)
			copied.Run(l)
			compareBits(t, &copied, &plain, l)

			turned := copied
			turned.C, turned.Turned, turned.BRow = slices.Clone(p.C), true, k+rng.IntN(3)
			turned.B = make([]T, (n-1)*turned.BRow+k)
			for j := range n {
				for q := range k {
					turned.B[j*turned.BRow+q] = p.B[q*p.BRow+j]
				}
			}
			turned.Run(l)
			compareBits(t, &turned, &plain, l)
		}
	}
	for m := 128; m < 128+15; m++ {
		for n := blockColumns; n < blockColumns+35; n++ {
			try(m, n, blockSteps+rng.IntN(9))
		}
	}
	for range 10 {
		try(4*blockRows+rng.IntN(600), blockColumns+rng.IntN(100), blockSteps+rng.IntN(600))
	}
}

// TestBlockHeights: the loops over packed rows take 4 to 6 of them, whatever the rows of a product. Rows that were divided into blocks of one size, but for the last
// one, left 3 of 14,385 for it.
func TestBlockHeights(t *testing.T) {
	for k := blockSteps; k < 5*blockDepth; k += 7 {
		for m := blockRows; m < 70_000; m += 1 + m/997 {
			for _, size := range []int{4, 8} {
				depth, parts := blockExtents(m, k, size)
				room := blockElements(depth, (m+parts-1)/parts, size)
				for _, rows := range []int{m / parts, (m + parts - 1) / parts} {
					taken := 0
					for _, h := range heights(rows) {
						if h.count > 0 && (h.rows < 4 || h.rows > blockHeight) {
							t.Fatalf("%d×%d elements of %d bytes: blocks of %d rows have %d at a time", m, k, size, rows, h.rows)
						}
						taken += h.count * (h.rows*depth + lineBytes/size)
					}
					if taken > room {
						t.Fatalf("%d×%d elements of %d bytes: %d elements for %d rows, of %d", m, k, size, taken, rows, room)
					}
				}
			}
		}
	}
}

func compareBits[T Float](t *testing.T, got, want *Product[T], l Level) {
	t.Helper()
	if !slices.Equal(got.C, want.C) {
		t.Fatalf("%v %d×%d×%d, transposed %v, steps of A %d, accumulate %v, relu %v, bias %v, where %v: other bits in blocks",
			l, got.M, got.N, got.K, got.Turned, got.AStep, got.Accumulate, got.ReLU, got.Bias != nil, got.Where != nil)
	}
}
