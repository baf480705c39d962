package simd

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// supported are the levels of this machine.
func supported() []Level {
	var levels []Level
	for _, l := range Levels {
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
	p := &Product[T]{M: m, N: n, K: k, Batch: batch, Groups: groups}
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
	p.AGroup = rng.IntN(2 * p.ARow)
	p.BRow = n + gap()
	p.BBatch = rng.IntN(2) * k * p.BRow
	p.CRow = n + gap()
	p.CGroup = m*p.CRow + gap()
	last := max(groups, 1) - 1
	p.A = integers[T](rng, (m-1)*p.ARow+(k-1)*p.AStep+(batch-1)*p.ABatch+last*p.AGroup+1)
	p.B = integers[T](rng, (k-1)*p.BRow+(batch-1)*p.BBatch+n)
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
				for b := range p.Batch {
					for q := range p.K {
						sum += p.A[g*p.AGroup+i*p.ARow+q*p.AStep+b*p.ABatch] * p.B[b*p.BBatch+q*p.BRow+j]
					}
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
					t.Fatalf("%v %d×%d×%d, batch %d, groups %d, accumulate %v, relu %v, where %v: C[%d] is %v, want %v",
						l, m, n, k, batch, groups, p.Accumulate, p.ReLU, p.Where != nil, i, v, want[i])
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

// TestProductSameOrder: an element has the same bits alone and in any larger product,
// at any position.
func TestProductSameOrder(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for _, l := range supported() {
		p := randomProduct[float32](rng, 29, 71, 37, 2, 0)
		for i := range p.A {
			p.A[i] = rng.Float32()
		}
		for i := range p.B {
			p.B[i] = rng.Float32()
		}
		p.Accumulate, p.ReLU, p.Where = false, false, nil
		p.Run(l)
		for range 200 {
			i, j := rng.IntN(p.M), rng.IntN(p.N)
			q := *p
			q.M, q.N, q.A, q.B, q.C = 1, 1, p.A[i*p.ARow:], p.B[j:], make([]float32, 1)
			if p.Bias != nil {
				q.Bias = p.Bias[j:]
			}
			q.Run(l)
			if q.C[0] != p.C[i*p.CRow+j] {
				t.Fatalf("%v: C[%d,%d] is %v alone and %v among others", l, i, j, q.C[0], p.C[i*p.CRow+j])
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
		"M": func(p *Product[float32]) { p.M = 0 }, "distance": func(p *Product[float32]) { p.ARow = -1 },
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

func BenchmarkProduct(b *testing.B) {
	for _, e := range [][4]int{{26, 4, 3, 3}, {32, 32, 96, 3}, {32, 64, 288, 1}, {96, 32, 32, 32}, {32, 512, 512, 1}, {128, 128, 128, 1}} {
		for _, l := range supported() {
			b.Run(fmt.Sprint(e, l), func(b *testing.B) { benchProduct[float32](b, l, e) })
		}
	}
}

func benchProduct[T Float](b *testing.B, l Level, e [4]int) {
	p := Product[T]{M: e[0], N: e[1], K: e[2], Batch: e[3], ARow: e[2], AStep: 1, ABatch: e[0] * e[2], BRow: e[1], BBatch: e[1] * e[2], CRow: e[1]}
	p.A, p.B, p.C = make([]T, p.ABatch*p.Batch), make([]T, p.BBatch*p.Batch), make([]T, p.M*p.N)
	for b.Loop() {
		p.Run(l)
	}
	b.ReportMetric(2*float64(p.M*p.N*p.K*p.Batch)*float64(b.N)/float64(b.Elapsed().Nanoseconds()), "GFLOP/s")
}
