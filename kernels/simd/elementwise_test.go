package simd

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// specials are drawn for elements that loops compare or pass on.
func specials[T Float](rng *rand.Rand, n int) []T {
	out := make([]T, n)
	for i := range out {
		out[i] = T(poolValues[rng.IntN(len(poolValues))])
	}
	return out
}

// uniform are numbers from 0.5 to 2 of either sign.
func uniform[T Float](rng *rand.Rand, n int) []T {
	out := make([]T, n)
	for i := range out {
		out[i] = T((0.5 + 1.5*rng.Float64()) * float64(1-2*rng.IntN(2)))
	}
	return out
}

// randomBytes are below limit.
func randomBytes(rng *rand.Rand, n, limit int) []uint8 {
	out := make([]uint8, n)
	for i := range out {
		out[i] = uint8(rng.IntN(limit))
	}
	return out
}

// TestElementwise compares the assembly with the loops in Go, bit for bit, over runs of
// every length up to several vectors. A run ends before its slice does; what follows
// must not change.
func TestElementwise(t *testing.T) {
	t.Run("float32", testElementwise[float32])
	t.Run("float64", testElementwise[float64])
}

func testElementwise[T Float](t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 11))
	for n := range 70 {
		for _, c := range []struct {
			name string
			run  func(l Level, a, b, c, d []T, mask []uint8)
		}{
			{"relu", func(l Level, y, x, _, _ []T, mask []uint8) { ReLU(l, y, mask, x[:n]) }},
			{"gradient of relu", func(l Level, dx, dy, _, _ []T, mask []uint8) { ReLUGradient(l, dx, dy[:n], mask) }},
			{"add", func(l Level, dst, src, _, _ []T, _ []uint8) { Add(l, dst, src[:n]) }},
			{"bytes", func(l Level, y, _, _, _ []T, bytes []uint8) { DivideBytes(l, y, bytes[:n], 255) }},
			{"sgd", func(l Level, w, g, v, _ []T, _ []uint8) { (&SGD[T]{Factor: 1, Rate: 0.1}).Step(l, w, g[:n], v) }},
			{"sgd of a clipped gradient", func(l Level, w, g, v, _ []T, _ []uint8) { (&SGD[T]{Factor: 0.3, Rate: 0.1}).Step(l, w, g[:n], v) }},
			{"sgd with momentum", func(l Level, w, g, v, _ []T, _ []uint8) {
				(&SGD[T]{Factor: 1, Rate: 0.1, Momentum: 0.9}).Step(l, w, g[:n], v)
			}},
			{"sgd with decay", func(l Level, w, g, v, _ []T, _ []uint8) {
				(&SGD[T]{Factor: 1, Rate: 0.1, Decay: 0.01}).Step(l, w, g[:n], v)
			}},
			{"sgd of Nesterov with decay", func(l Level, w, g, v, _ []T, _ []uint8) {
				(&SGD[T]{Factor: 1, Rate: 0.1, Momentum: 0.9, Decay: 0.01, Nesterov: true}).Step(l, w, g[:n], v)
			}},
			{"adam", func(l Level, w, g, m, v []T, _ []uint8) { adamStep(l, 0, 1, w, g[:n], m, v) }},
			{"adam with decay", func(l Level, w, g, m, v []T, _ []uint8) { adamStep(l, 0.01, 1, w, g[:n], m, v) }},
			{"adam with decoupled decay", func(l Level, w, g, m, v []T, _ []uint8) { adamStep(l, 0, 0.99, w, g[:n], m, v) }},
		} {
			draw := uniform[T]
			if c.name != "bytes" && n%2 == 0 {
				draw = specials[T]
			}
			var operands [4][]T
			for i := range operands {
				operands[i] = draw(rng, n+9)
			}
			limit := 2
			if c.name == "bytes" {
				limit = 256
			}
			mask := randomBytes(rng, n+9, limit)
			compareLevels(t, c.name, n, operands, mask, c.run)
		}
	}
}

func adamStep[T Float](l Level, decay, keep T, w, g, m, v []T) {
	for i := range v { // a sum of squares
		v[i] = max(v[i], -v[i])
	}
	(&Adam[T]{0.9, 0.1, 0.999, 0.001, 0.01, 0.3, 1e-8, decay, keep, 0.75}).Step(l, w, g, m, v)
}

func compareLevels[T Float](t *testing.T, name string, n int, operands [4][]T, mask []uint8, run func(l Level, a, b, c, d []T, mask []uint8)) {
	t.Helper()
	clone := func() ([4][]T, []uint8) {
		var c [4][]T
		for i := range c {
			c[i] = slices.Clone(operands[i])
		}
		return c, slices.Clone(mask)
	}
	want, wantMask := clone()
	run(Go, want[0], want[1], want[2], want[3], wantMask)
	for _, l := range supported() {
		got, gotMask := clone()
		run(l, got[0], got[1], got[2], got[3], gotMask)
		for i := range got {
			if !slices.EqualFunc(got[i], want[i], sameBits) {
				t.Fatalf("%s at %v, %d elements, operand %d: %v, want %v", name, l, n, i, got[i], want[i])
			}
		}
		if !slices.Equal(gotMask, wantMask) {
			t.Fatalf("%s at %v, %d elements: bytes %v, want %v", name, l, n, gotMask, wantMask)
		}
	}
}

// TestColumnSums adds small integers, whose sums are exact in any order, in matrices
// with and without gaps between their rows.
func TestColumnSums(t *testing.T) {
	t.Run("float32", testColumnSums[float32])
	t.Run("float64", testColumnSums[float64])
}

func testColumnSums[T Float](t *testing.T) {
	rng := rand.New(rand.NewPCG(13, 17))
	for n := 1; n < 300; n += 1 + rng.IntN(5) {
		rows, gap := 1+rng.IntN(200), rng.IntN(2)*rng.IntN(5)
		x := integers[T](rng, rows*(n+gap))
		before := integers[T](rng, n)
		for _, accumulate := range []bool{false, true} {
			want := make([]T, n)
			for j := range want {
				if accumulate {
					want[j] = before[j]
				}
				for i := range rows {
					want[j] += x[i*(n+gap)+j]
				}
			}
			for _, l := range supported() {
				got := append(slices.Clone(before), -7)
				ColumnSums(l, got[:n], x, rows, n+gap, accumulate)
				if !slices.Equal(got[:n], want) || got[n] != -7 {
					t.Fatalf("%v, %d rows of %d at %d, accumulate %v: %v, want %v", l, rows, n, n+gap, accumulate, got, want)
				}
			}
		}
	}
}
