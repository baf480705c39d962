package simd

import (
	"math"
	"math/rand/v2"
	"testing"
)

// supported are the levels of this machine.
func supported() []Level {
	var levels []Level
	for _, l := range Levels() {
		if l.Supported() {
			levels = append(levels, l)
		}
	}
	return levels
}

// integers are small whole numbers: sums of fewer than a million products of them are
// exact in both types, so that the order of additions cannot be seen.
func integers[T Float](rng *rand.Rand, n int) []T {
	out := make([]T, n)
	for i := range out {
		out[i] = T(rng.IntN(9) - 4)
	}
	return out
}

// randomProduct has the given extents and distances that leave gaps, or none.
func randomProduct[T Float](rng *rand.Rand, m, n, k, batch, groups int) *Product[T] {
	p := &Product[T]{M: m, N: n, K: k, Batch: batch, Outer: rng.IntN(4), Groups: groups}
	gap := func() int { return rng.IntN(3) }
	if rng.IntN(2) == 0 {
		p.AStep = 1 + gap()
		p.ARow = k*p.AStep + gap()
		p.ABatch = m*p.ARow + gap()
	} else {
		p.ARow = 1 + gap()
		p.AStep = m*p.ARow + gap()
		p.ABatch = k*p.AStep + gap()
	}
	p.AOuter = rng.IntN(2 * batch * p.ABatch)
	p.AGroup = rng.IntN(2 * p.ARow)
	p.BRow = n + gap()
	p.BBatch = rng.IntN(2) * k * p.BRow
	p.BOuter = rng.IntN(2) * batch * k * p.BRow
	p.CRow = n + gap()
	p.CGroup = m*p.CRow + gap()
	last, outer := max(groups, 1)-1, max(p.Outer, 1)-1
	p.A = integers[T](rng, (m-1)*p.ARow+(k-1)*p.AStep+(batch-1)*p.ABatch+outer*p.AOuter+last*p.AGroup+1)
	p.B = integers[T](rng, (k-1)*p.BRow+(batch-1)*p.BBatch+outer*p.BOuter+n)
	if rng.IntN(3) == 0 {
		p.Next = [2][]T{p.A[rng.IntN(len(p.A)):], p.B[rng.IntN(len(p.B)):]}
	}
	p.C = integers[T](rng, (m-1)*p.CRow+last*p.CGroup+n)
	if rng.IntN(2) == 0 {
		p.Bias = integers[T](rng, n)
	}
	p.Accumulate, p.ReLU = rng.IntN(3) == 0, rng.IntN(2) == 0
	if rng.IntN(3) == 0 {
		p.WhereRow, p.WhereGroup = n+gap(), rng.IntN(m*n)
		p.Where = integers[T](rng, (m-1)*p.WhereRow+last*p.WhereGroup+n)
	}
	return p
}

// want is the product by its definition; elements of C that are not results stay.
func (p *Product[T]) want() []T {
	c := append([]T(nil), p.C...)
	for g := range max(p.Groups, 1) {
		for i := range p.M {
			for j := range p.N {
				at := g*p.CGroup + i*p.CRow + j
				var sum T
				if p.Bias != nil {
					sum = p.Bias[j]
				}
				if p.Accumulate {
					sum = c[at]
				}
				for step := range max(p.Outer, 1) * p.Batch * p.K {
					o, b, q := step/p.K/p.Batch, step/p.K%p.Batch, step%p.K
					sum += p.A[g*p.AGroup+i*p.ARow+q*p.AStep+b*p.ABatch+o*p.AOuter] * p.B[o*p.BOuter+b*p.BBatch+q*p.BRow+j]
				}
				if p.ReLU {
					sum = max(sum, 0)
				}
				if p.Where != nil && p.Where[g*p.WhereGroup+i*p.WhereRow+j] <= 0 {
					sum = 0
				}
				c[at] = sum
			}
		}
	}
	return c
}

// TestProduct compares all levels with the definition, exactly, over every number of
// rows and columns up to more than the largest block and panel, and random others.
func TestProduct(t *testing.T) {
	t.Run("float32", testProduct[float32])
	t.Run("float64", testProduct[float64])
}

func testProduct[T Float](t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	try := func(m, n, k, batch, groups int) {
		p := randomProduct[T](rng, m, n, k, batch, groups)
		want := p.want()
		for _, l := range supported() {
			q := *p
			q.C = append([]T(nil), p.C...)
			q.Run(l)
			for i, v := range q.C {
				if v != want[i] {
					t.Fatalf("%v %d×%d×%d, batch %d, outer %d, groups %d, next %v, accumulate %v, relu %v, where %v: C[%d] is %v, want %v",
						l, m, n, k, batch, p.Outer, groups, p.Next[0] != nil, p.Accumulate, p.ReLU, p.Where != nil, i, v, want[i])
				}
			}
		}
	}
	for m := 1; m <= 33; m++ {
		for n := 1; n <= 67; n++ {
			try(m, n, 1+rng.IntN(5), 1+rng.IntN(3), rng.IntN(4))
		}
	}
	for range 50 {
		try(1+rng.IntN(70), 1+rng.IntN(300), 1+rng.IntN(70), 1+rng.IntN(5), rng.IntN(3))
	}
}

// TestProductSpecial: NaN stays with ReLU, infinities pass, and a sum starts from the
// bias, so that 0·∞ in a product shows.
func TestProductSpecial(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	for _, l := range supported() {
		p := Product[float32]{M: 1, N: 4, K: 1, Batch: 1, A: []float32{1}, B: []float32{nan, inf, -inf, -1}, C: make([]float32, 4), ARow: 1, AStep: 1, BRow: 4, CRow: 4, ReLU: true}
		p.Run(l)
		if c := p.C; c[0] == c[0] || c[1] != inf || c[2] != 0 || c[3] != 0 {
			t.Errorf("%v: %v, want [NaN +Inf 0 0]", l, c)
		}
		p.Where, p.ReLU = []float32{0, inf, -1, nan}, false
		p.Run(l)
		if c := p.C; c[0] != 0 || c[1] != inf || c[2] != 0 || c[3] != 0 {
			t.Errorf("%v: %v where %v, want [0 +Inf 0 0]", l, c, p.Where)
		}
	}
}

// TestProductOrder: a sum takes the products in the order of b, then p, each added with
// one rounding. Where a block of m rows by one vector would leave the multipliers idle,
// up to 2 rows take p = 0, 4, …, 1, 5, … and so on apart, up to 6 rows p = 0, 2, … and
// 1, 3, …, as far as there are four or two more; the rest goes to the first.
func TestProductOrder(t *testing.T) {
	const k, batch = 11, 3
	rng := rand.New(rand.NewPCG(3, 4))
	random := func(n int) []float64 {
		x := make([]float64, n)
		for i := range x {
			x[i] = rng.Float64() - 0.3
		}
		return x
	}
	for m, sets := range map[int]int{1: 4, 2: 4, 3: 2, 6: 2, 7: 1, 12: 1} {
		p := Product[float64]{M: m, N: 3, K: k, Batch: batch, ARow: k * batch, AStep: 1, ABatch: k, BRow: 3, BBatch: 3 * k, CRow: 3}
		p.A, p.B, p.C, p.Bias = random(m*k*batch), random(3*k*batch), make([]float64, 3*m), random(3)
		for _, l := range []Level{AVX2, AVX512} {
			if !l.Supported() {
				continue
			}
			p.Run(l)
			for at, got := range p.C {
				i, j := at/3, at%3
				sums := [4]float64{p.Bias[j]}
				for b := range batch {
					for q := range k {
						set := q % sets
						if q >= k/sets*sets {
							set = 0
						}
						sums[set] = math.FMA(p.A[i*p.ARow+b*k+q], p.B[(b*k+q)*3+j], sums[set])
					}
				}
				if want := (sums[0] + sums[1]) + (sums[2] + sums[3]); got != want {
					t.Errorf("%v, %d rows: C[%d,%d] is %v, want %v", l, m, i, j, got, want)
				}
			}
		}
	}
}

func TestProductOutOfReach(t *testing.T) {
	good := Product[float32]{M: 2, N: 3, K: 5, Batch: 2, Groups: 2,
		A: make([]float32, 41), B: make([]float32, 30), C: make([]float32, 12),
		ARow: 5, AStep: 1, ABatch: 10, AGroup: 20, BRow: 3, BBatch: 15, CRow: 3, CGroup: 6}
	for name, bad := range map[string]func(p *Product[float32]){
		"A": func(p *Product[float32]) { p.A = p.A[:39] }, "B": func(p *Product[float32]) { p.B = p.B[:29] },
		"C": func(p *Product[float32]) { p.C = p.C[:11] }, "bias": func(p *Product[float32]) { p.Bias = p.B[:2] },
		"outer": func(p *Product[float32]) { p.Outer, p.BOuter = 2, 1 }, "M": func(p *Product[float32]) { p.M = 0 }, "distance": func(p *Product[float32]) { p.ARow = -1 },
	} {
		for _, l := range supported() {
			p := good
			p.Run(l)
			bad(&p)
			func() {
				defer func() {
					if recover() == nil {
						t.Errorf("%v: %s: no panic", l, name)
					}
				}()
				p.Run(l)
			}()
		}
	}
}
