package simd

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestSoftmaxOfTwo has two classes, 0 and x ≤ 0, so that the gradient of the second at
// batch 1 is p = e/(1+e), e = exp(x). With e off by at most 3u (see Softmax), math.Exp by
// less than 2u and each rounded to the type once, the relative difference is at most 6u,
// for e and again in 1+e; a sum and a quotient in both add 4u. Below the normal numbers
// the distance of numbers is absolute: one of the smallest for each rounding of e and p.
func TestSoftmaxOfTwo(t *testing.T) {
	t.Run("float32", testSoftmaxOfTwo[float32])
	t.Run("float64", testSoftmaxOfTwo[float64])
}

func testSoftmaxOfTwo[T Float](t *testing.T) {
	u, least := T(0x1p-53), T(0)+T(math.SmallestNonzeroFloat64)
	if size([]T{}) == 4 {
		u, least = T(math.Ldexp(1, -24)), T(math.SmallestNonzeroFloat32)
	}
	rng := rand.New(rand.NewPCG(29, 31))
	xs := []float64{0, math.Copysign(0, -1), -1e-300, -0.3465, -0.3466, -math.Ln2, -87, -88, -103, -104, -708, -709, -744, -745, -746, -999, -1e9, math.Inf(-1)}
	for range 3000 {
		xs = append(xs, -math.Exp(8*rng.Float64()-1))
	}
	for _, l := range supported() {
		lanes := SoftmaxRows[T](l)
		if lanes == 0 {
			continue
		}
		s := Softmax[T]{Classes: 2, ZRow: 3, DZRow: 2, Batch: 1, Keep: 1, Work: make([]T, SoftmaxWork[T](2))}
		for i := 0; i < len(xs); i += lanes {
			row := xs[i:min(i+lanes, len(xs))]
			z, dz := make([]T, 3*lanes), make([]T, 2*lanes)
			for r, x := range row {
				z[3*r+1] = T(x)
			}
			most, class, sum := s.Block(l, dz, z, make([]int32, len(row)))
			for r, x := range row {
				e := T(math.Exp(float64(T(x))))
				p := e / (1 + e)
				if bound := 16*u*p + 4*least; !(max(dz[2*r+1]-p, p-dz[2*r+1]) <= bound) {
					t.Errorf("%v: exp(%g) gives %g, want %g, bound %g", l, x, dz[2*r+1], p, bound)
				}
				if most[r] != 0 || class[r] != 0 || !(sum[r] >= 1 && sum[r] <= 2) {
					t.Errorf("%v: maximum %g of class %g, sum %g for (0, %g)", l, most[r], class[r], sum[r], x)
				}
			}
		}
	}
}

// TestSoftmaxNaN: a NaN is the maximum, and every number of its row becomes NaN; other
// rows do not notice.
func TestSoftmaxNaN(t *testing.T) {
	for _, l := range supported() {
		if SoftmaxRows[float64](l) == 0 {
			continue
		}
		s := Softmax[float64]{Classes: 3, ZRow: 3, DZRow: 3, Batch: 1, Keep: 1, Work: make([]float64, SoftmaxWork[float64](3))}
		dz := make([]float64, 6)
		most, class, sum := s.Block(l, dz, []float64{1, math.NaN(), 2, 5, 5, 5}, []int32{0, 2})
		for j, v := range dz {
			if math.IsNaN(v) != (j < 3) {
				t.Errorf("%v: dz is %v", l, dz)
			}
		}
		if !math.IsNaN(most[0]) || class[0] != 1 || !math.IsNaN(sum[0]) || most[1] != 5 || class[1] != 0 || sum[1] != 3 {
			t.Errorf("%v: maxima %v, classes %v, sums %v", l, most, class, sum)
		}
	}
}
