package simd

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// poolValues are drawn for pixels: ties, both zeros, NaN and infinities are as likely
// as anything else.
var poolValues = []float64{-2, -1, math.Copysign(0, -1), 0, 1, 1, 2, 3, math.NaN(), math.Inf(1), math.Inf(-1)}

// TestPool compares both directions with a scan of each window at every level, bit for
// bit: pooling selects values, its gradient adds a value to zero or to an element that
// was there. Whatever lies between rows and pixels must not change.
func TestPool(t *testing.T) {
	t.Run("float32", testPool[float32])
	t.Run("float64", testPool[float64])
}

func testPool[T Float](t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 5))
	for range 400 {
		p := Pooling[T]{
			Rows: rng.IntN(4), Windows: 1 + rng.IntN(5), Channels: 1 + rng.IntN(40),
			Size: 1 + rng.IntN(4), Step: 1 + rng.IntN(4), ReLU: rng.IntN(2) == 0,
		}
		gap := func() int { return rng.IntN(3) }
		p.Width, p.Across = rng.IntN(5), rng.IntN(5) // 0 is as for rows
		if rng.IntN(2) == 0 {                        // several windows in a vector
			p.Width, p.Across = 0, 0
			p.Size, p.Step, p.Channels, p.Windows = 2, 2, 1+rng.IntN(9), 1+rng.IntN(40)
			gap = func() int { return 0 }
		}
		p.YPixel = p.Channels + gap()
		p.IndexPixel = p.Channels + gap()
		p.XPixel = p.Channels + gap()
		p.YRow = p.Windows*p.YPixel + rng.IntN(3)
		p.IndexRow = p.Windows*p.IndexPixel + rng.IntN(3)
		p.XRow = ((p.Windows-1)*p.across()+p.width())*p.XPixel + rng.IntN(3)
		rows := max(p.Rows, 1)
		p.Y, p.Index = make([]T, rows*p.YRow), make([]uint8, rows*p.IndexRow)
		p.X = make([]T, ((rows-1)*p.Step+p.Size)*p.XRow)
		for i := range p.X {
			p.X[i] = T(poolValues[rng.IntN(len(poolValues))])
		}
		for i := range p.Y {
			p.Y[i], p.Index[i%len(p.Index)] = -7, 77
		}
		want := p
		want.Y, want.Index = slices.Clone(p.Y), slices.Clone(p.Index)
		want.scan()
		for _, l := range Levels() {
			if !l.Supported() {
				continue
			}
			got := p
			got.Y, got.Index = slices.Clone(p.Y), slices.Clone(p.Index)
			got.Max(l)
			if !slices.Equal(got.Index, want.Index) || !slices.EqualFunc(got.Y, want.Y, sameBits) {
				t.Fatalf("%v, %d windows of %d×%d at steps %d and %d, %d channels, ReLU %v: differs from a scan",
					l, p.Windows, p.Size, p.width(), p.Step, p.across(), p.Channels, p.ReLU)
			}
		}
		testSpread(t, rng, &want)
	}
}

// scan is Max element by element.
func (p *Pooling[T]) scan() {
	p.each(func(y, index, x int) {
		most, position := p.X[x], uint8(0)
		for n := range p.Size * p.width() {
			e := p.X[x+n/p.width()*p.XRow+n%p.width()*p.XPixel]
			if e > most || e != e && most == most {
				most, position = e, uint8(n)
			}
		}
		if p.ReLU && most <= 0 {
			most, position = 0, NoMaximum
		}
		p.Y[y], p.Index[index] = most, position
	})
}

// each visits the elements of the output, and the first pixels of their windows.
func (p *Pooling[T]) each(visit func(y, index, x int)) {
	for u := range max(p.Rows, 1) {
		for v := range p.Windows {
			for c := range p.Channels {
				visit(u*p.YRow+v*p.YPixel+c, u*p.IndexRow+v*p.IndexPixel+c, u*p.Step*p.XRow+v*p.across()*p.XPixel+c)
			}
		}
	}
}

// testSpread spreads the maxima that p has found.
func testSpread[T Float](t *testing.T, rng *rand.Rand, p *Pooling[T]) {
	t.Helper()
	q := *p
	q.Accumulate = p.Step < p.Size || p.across() < p.width() || rng.IntN(3) == 0
	want := slices.Clone(p.X)
	if !q.Accumulate {
		p.each(func(y, index, x int) {
			for n := range p.Size * p.width() {
				want[x+n/p.width()*p.XRow+n%p.width()*p.XPixel] = 0
			}
		})
	}
	p.each(func(y, index, x int) {
		if n := int(p.Index[index]); n != NoMaximum {
			want[x+n/p.width()*p.XRow+n%p.width()*p.XPixel] += p.Y[y]
		}
	})
	for _, l := range Levels() {
		if !l.Supported() {
			continue
		}
		got := q
		got.X = slices.Clone(p.X)
		got.Spread(l)
		if !slices.EqualFunc(got.X, want, sameBits) {
			t.Fatalf("%v, gradient of %d windows of %d×%d at steps %d and %d, %d channels, accumulate %v: differs from a sum",
				l, p.Windows, p.Size, p.width(), p.Step, p.across(), p.Channels, q.Accumulate)
		}
	}
}

// sameBits holds for NaN and NaN, and tells the zeros apart.
func sameBits[T Float](a, b T) bool {
	return a == b && math.Signbit(float64(a)) == math.Signbit(float64(b)) || a != a && b != b
}
