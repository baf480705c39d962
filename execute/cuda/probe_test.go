//go:build cuda

package cuda

import (
	"math"
	"math/rand/v2"
	"testing"
)

// Each primitive of device.h against Go: on the test driver its host equivalent, on a GPU
// the hardware, whose layouts of fragments the host's must equal.

func TestProbeSum(t *testing.T) {
	b := newBench(t)
	x := view[float32](b.at(0))
	const n = 3*128 + 17
	var want [4]float32
	for i := range n {
		x[i] = float32(i%11 - 3) // sums of small integers are exact
		want[i/128] += x[i]
	}
	b.run("probe_sum", n, 0, 4, 128, 0)
	if got := [4]float32(view[float32](b.at(1))[:4]); got != want {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestProbeReverse(t *testing.T) {
	b := newBench(t)
	const n, block = 2*4*64 + 101, 64 // the last block is short, its last copy of 4 elements too
	x := view[float32](b.at(0))
	for i := range x {
		x[i] = float32(i + 1)
	}
	b.run("probe_reverse", n, 0, 3, block, 4*4*block)
	y := view[float32](b.at(1))
	for i := range n {
		base := i / (4 * block) * (4 * block)
		from := base + 4*block - 1 - (i - base)
		want := float32(0)
		if from < n {
			want = x[from]
		}
		if y[i] != want {
			t.Fatalf("element %d: %g, want %g", i, y[i], want)
		}
	}
}

func TestProbeShuffle(t *testing.T) {
	b := newBench(t)
	b.run("probe_shuffle", 0, 0, 1, 32, 0)
	y := view[float64](b.at(1))
	for lane := range 32 {
		down := lane + 5
		if down > 31 {
			down = lane
		}
		for i, from := range []int{down, 31 - lane, lane ^ 7} {
			if got := y[32*i+lane]; got != float64(100*from) {
				t.Errorf("shuffle %d, lane %d: %g, want %d", i, lane, got, 100*from)
			}
		}
	}
}

// The functions are within the errors that device_math.h derives: 2 units in the last place
// of exp and log (the derived truncation and the roundings of the last steps), none of
// sqrt, and 8 roundings, so 8 units, of the 11th power: four squarings and three products. Those of
// tanh, the sigmoid and the normal distribution are derived in kerneltest/function.go.
func TestProbeMath(t *testing.T) {
	functions := []struct {
		of       func(float64) float64
		ulps     float64
		from, to float64 // of the base-10 exponent of |x|; some also of -x
	}{
		{math.Exp, 2, -9, 1.9},
		{math.Log, 2, -37, 37},
		{math.Sqrt, 0.5000001, -37, 37},
		{func(x float64) float64 { return math.Pow(x, 11) }, 8, -3, 3},
		{math.Tanh, 10, -9, 1.9},
		{func(x float64) float64 { return 1 / (1 + math.Exp(-x)) }, 8, -9, 1.9},
		{func(x float64) float64 { return math.Erfc(math.Abs(x)/math.Sqrt2) / 2 }, 40, -9, 0.5},
	}
	for mode := range 2 * len(functions) {
		b := newBench(t)
		f, single := functions[mode%len(functions)], mode < len(functions)
		const n = 4001
		rng := rand.New(rand.NewPCG(uint64(mode), 7))
		values := make([]float64, n)
		for i := range values {
			v := math.Pow(10, f.from+(f.to-f.from)*rng.Float64())
			if k := mode % len(functions); (k == 0 || k > 3) && i%2 == 1 {
				v = -v
			}
			if single {
				v = float64(float32(v))
				view[float32](b.at(0))[i] = float32(v)
			} else {
				view[float64](b.at(0))[i] = v
			}
			values[i] = v
		}
		b.run("probe_math", n, mode, (n+255)/256, 256, 0)
		for i, got := range view[float64](b.at(1))[:n] {
			want := f.of(values[i])
			if d := math.Abs(got - want); d > f.ulps*unit(want, single) {
				t.Fatalf("mode %d of %g: %g, want %g: %.2f units in the last place", mode, values[i], got, want, d/unit(want, single))
			}
		}
	}
}

// unit is the unit in the last place of x in the type, which has normal and subnormal numbers.
func unit(x float64, single bool) float64 {
	_, e := math.Frexp(x)
	if single {
		return math.Ldexp(1, max(e-24, -149))
	}
	return math.Ldexp(1, max(e-53, -1074))
}

// Special values go where IEEE 754 has them.
func TestProbeMathSpecial(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	for _, c := range []struct {
		mode    int
		x, want float64
	}{
		{0, 0, 1}, {0, -inf, 0}, {0, inf, inf}, {0, nan, nan}, {0, 89, inf}, {0, -104, 0},
		{1, 1, 0}, {1, 0, -inf}, {1, inf, inf}, {1, -1, nan}, {1, nan, nan},
		{7, 0, 1}, {7, -inf, 0}, {7, inf, inf}, {7, nan, nan}, {7, 710, inf}, {7, -746, 0},
		{8, 1, 0}, {8, 0, -inf}, {8, inf, inf}, {8, -1, nan}, {8, 5e-324, -744.4400719213812},
		{4, inf, 1}, {4, -inf, -1}, {4, nan, nan}, {5, inf, 1}, {5, -inf, 0}, {5, nan, nan}, {6, inf, 0}, {6, -inf, 0}, {6, nan, nan},
	} {
		b := newBench(t)
		if c.mode < 7 {
			view[float32](b.at(0))[0] = float32(c.x)
		} else {
			view[float64](b.at(0))[0] = c.x
		}
		b.run("probe_math", 1, c.mode, 1, 32, 0)
		got := view[float64](b.at(1))[0]
		if got != c.want && !(math.IsNaN(got) && math.IsNaN(c.want)) {
			t.Errorf("mode %d of %g: %g, want %g", c.mode, c.x, got, c.want)
		}
	}
}

// Products of small integers are exact in every format, so the fragments' layouts are
// what is tested; asymmetric values tell rows from columns.
func TestProbeProducts(t *testing.T) {
	for mode, extents := range [][3]int{{16, 8, 8}, {16, 8, 16}, {8, 8, 4}} {
		b := newBench(t)
		if b.device.Capability < 80 {
			t.Skip("needs compute capability 8.0")
		}
		rows, columns, inner := extents[0], extents[1], extents[2]
		x := func(i, k int) float64 { return float64((3*i+5*k)%13 - 6) }
		y := func(k, j int) float64 { return float64((7*k+2*j)%11 - 5) }
		z := func(i, j int) float64 { return float64(i - 2*j) }
		put := func(operand, at int, v float64) {
			if mode == 2 {
				view[float64](b.at(operand))[at] = v
			} else {
				view[float32](b.at(operand))[at] = float32(v)
			}
		}
		for i := range rows {
			for k := range inner {
				put(0, inner*i+k, x(i, k))
			}
			for j := range columns {
				put(2, columns*i+j, z(i, j))
			}
		}
		for k := range inner {
			for j := range columns {
				put(1, columns*k+j, y(k, j))
			}
		}
		b.run("probe_mma", 0, mode, 1, 32, 0)
		for i := range rows {
			for j := range columns {
				want := z(i, j)
				for k := range inner {
					want += x(i, k) * y(k, j)
				}
				got := view[float64](b.at(2))[(columns*i+j)%(operandBytes/8)]
				if mode < 2 {
					got = float64(view[float32](b.at(2))[columns*i+j])
				}
				if got != want {
					t.Fatalf("mode %d, element %d,%d: %g, want %g", mode, i, j, got, want)
				}
			}
		}
	}
}
