package simd

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestDepthwise multiplies small whole numbers, whose sums are exact, and compares with the definition.
// What lies between and behind the pixels must not change.
func TestDepthwise(t *testing.T) {
	t.Run("float32", testDepthwise[float32])
	t.Run("float64", testDepthwise[float64])
}

func testDepthwise[T Float](t *testing.T) {
	rng := rand.New(rand.NewPCG(29, 31))
	for range 400 {
		p := Depthwise[T]{N: 1 + rng.IntN(40), Pixels: 1 + rng.IntN(19), Groups: 1 + rng.IntN(3), Rows: 1 + rng.IntN(3), Columns: 1 + rng.IntN(4), ReLU: rng.IntN(2) == 0}
		numbers := func(n int) (all []T) {
			for range n + rng.IntN(3) {
				all = append(all, T(rng.IntN(7)-3))
			}
			return all
		}
		operand := func(group, pixel *int) []T {
			*pixel = p.N + rng.IntN(3)
			*group = p.Pixels**pixel + rng.IntN(3)
			return numbers((p.Groups-1)**group + (p.Pixels-1)**pixel + p.N)
		}
		before := operand(&p.CGroup, &p.CPixel)
		p.AColumn, p.APixel = rng.IntN(50), rng.IntN(50)
		p.ARow, p.AGroup, p.BColumn = rng.IntN(70), rng.IntN(90), p.N+rng.IntN(3)
		p.BRow = p.Columns*p.BColumn + rng.IntN(3)
		p.A = numbers((p.Groups-1)*p.AGroup + (p.Pixels-1)*p.APixel + (p.Rows-1)*p.ARow + (p.Columns-1)*p.AColumn + p.N)
		p.B = numbers((p.Rows-1)*p.BRow + (p.Columns-1)*p.BColumn + p.N)
		switch rng.IntN(3) {
		case 0:
			p.Accumulate = true
		case 1:
			p.Bias = numbers(p.N)
		}
		if rng.IntN(2) == 0 {
			p.Where = operand(&p.WhereGroup, &p.WherePixel)
		}
		want := slices.Clone(before)
		for g := range p.Groups {
			for i := range p.Pixels {
				for n := range p.N {
					c := &want[g*p.CGroup+i*p.CPixel+n]
					sum := T(0)
					if p.Accumulate {
						sum = *c
					} else if p.Bias != nil {
						sum = p.Bias[n]
					}
					for r := range p.Rows {
						for s := range p.Columns {
							sum += p.A[g*p.AGroup+i*p.APixel+r*p.ARow+s*p.AColumn+n] * p.B[r*p.BRow+s*p.BColumn+n]
						}
					}
					if p.ReLU && sum < 0 || p.Where != nil && p.Where[g*p.WhereGroup+i*p.WherePixel+n] <= 0 {
						sum = 0
					}
					*c = sum
				}
			}
		}
		for _, l := range supported() {
			p.C = slices.Clone(before)
			p.Run(l)
			if !slices.Equal(p.C, want) {
				t.Fatalf("%v: %+v, want %v", l, p, want)
			}
		}
	}
}
