package simd

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestPixels multiplies small whole numbers, whose sums are exact, and compares with the definition.
// What lies between and behind the pixels must not change.
func TestPixels(t *testing.T) {
	t.Run("float32", testPixels[float32])
	t.Run("float64", testPixels[float64])
}

func testPixels[T Float](t *testing.T) {
	rng := rand.New(rand.NewPCG(29, 31))
	for range 300 {
		p := Pixels[T]{N: 1 + rng.IntN(40), Pixels: 1 + rng.IntN(7)}
		operand := func(step *int) (all []T) {
			if *step = p.N + rng.IntN(3); rng.IntN(3) == 0 {
				*step = 0
			}
			for range (p.Pixels-1)**step + p.N + rng.IntN(3) {
				all = append(all, T(rng.IntN(7)-3))
			}
			return all
		}
		before := operand(&p.CPixel)
		p.A, p.B = operand(&p.APixel), operand(&p.BPixel)
		want := slices.Clone(before)
		for i := range p.Pixels {
			for n := range p.N {
				want[i*p.CPixel+n] += p.A[i*p.APixel+n] * p.B[i*p.BPixel+n]
			}
		}
		for _, l := range supported() {
			p.C = slices.Clone(before)
			p.Run(l)
			if !slices.Equal(p.C, want) {
				t.Fatalf("%v, %d pixels of %d, distances %d, %d and %d: %v, want %v", l, p.Pixels, p.N, p.CPixel, p.APixel, p.BPixel, p.C, want)
			}
		}
	}
}
