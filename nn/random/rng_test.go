package random

import (
	"math"
	"testing"
)

// The known answers that the authors publish with Random123 (kat_vectors,
// philox4x32 with 10 rounds): counter and key of zeros, of ones, and of the
// digits of π.
func TestPhiloxKnownAnswers(t *testing.T) {
	const ones = 0xffffffff
	tests := []struct {
		counter [4]uint32
		key     [2]uint32
		want    [4]uint32
	}{
		{[4]uint32{}, [2]uint32{}, [4]uint32{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
		{[4]uint32{ones, ones, ones, ones}, [2]uint32{ones, ones},
			[4]uint32{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
		{[4]uint32{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, [2]uint32{0xa4093822, 0x299f31d0},
			[4]uint32{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
	}
	for _, test := range tests {
		if got := philox4x32(test.counter, test.key); got != test.want {
			t.Errorf("philox4x32(%x, %x) = %x, want %x", test.counter, test.key, got, test.want)
		}
	}
}

// Numbers 2b and 2b+1 are the two halves of block b, whose counter is b and the
// name's hash: FNV-1a of nothing is its offset basis, 14695981039346656037.
func TestStreamReadsPhiloxBlocks(t *testing.T) {
	const seed, basis = 0x0123456789abcdef, uint64(14695981039346656037)
	s := NewStream(seed, "")
	for _, b := range []uint64{0, 1, 1 << 33} {
		lo, hi := uint32(basis&math.MaxUint32), uint32(basis>>32)
		block := philox4x32([4]uint32{uint32(b), uint32(b >> 32), lo, hi}, [2]uint32{0x89abcdef, 0x01234567})
		for half := range uint64(2) {
			want := uint64(block[2*half]) + uint64(block[2*half+1])<<32
			if got := s.Uint64(2*b + half); got != want {
				t.Errorf("block %d half %d: %x, want %x", b, half, got, want)
			}
		}
	}
}

func TestStreamsDiffer(t *testing.T) {
	seen := map[uint64]string{}
	for _, name := range []string{"", "a", "b", "ab", "conv1.weight", "conv1.bias"} {
		for seed := range uint64(7) {
			for i := range uint64(101) {
				v := NewStream(seed, name).Uint64(i)
				if other, ok := seen[v]; ok {
					t.Fatalf("seed %d, %q, %d gives the value of stream %q", seed, name, i, other)
				}
				seen[v] = name
			}
		}
	}
}

// The largest distance between the empirical and the true distribution function
// exceeds ε with probability at most 2·exp(-2nε²) (Dvoretzky, Kiefer, Wolfowitz;
// Massart 1990). ε = √(ln(2·10^9)/2n) makes that 10^-9; at 1000 grid points the
// distance is at most the largest.
func TestUniformDistribution(t *testing.T) {
	const n, cells = 100_000, 1000
	const lo, hi = -3.0, 5.0
	eps := math.Sqrt(math.Log(2e9) / (2 * n))
	var count [cells]int
	s := NewStream(11, "distribution")
	for i := range uint64(n) {
		v := s.Uniform(i, lo, hi)
		if v < lo || v > hi {
			t.Fatalf("Uniform(%v, %v) = %v", lo, hi, v)
		}
		count[min(int((v-lo)/(hi-lo)*cells), cells-1)]++
	}
	below := 0
	for c := range cells {
		below += count[c]
		if d := math.Abs(float64(below)/n - float64(c+1)/cells); d > eps {
			t.Fatalf("distribution function is off by %v at cell %d, more than %v", d, c, eps)
		}
	}
}

func TestBelow(t *testing.T) {
	s := NewStream(5, "below")
	var count [7]int
	const n = 70_000
	for i := range uint64(n) {
		count[s.Below(i, 7)]++
	}
	// A count is binomial(n, 1/7): mean 10,000, standard deviation √(n·1/7·6/7) = 92.6.
	for v, c := range count {
		if math.Abs(float64(c)-10_000) > 6*92.6 {
			t.Errorf("value %d came %d times, want 10,000 ± 556", v, c)
		}
	}
}

// The stream's bytes are those of its numbers, wherever the reading starts.
func TestStreamFill(t *testing.T) {
	s := NewStream(3, "fill")
	for from := range uint64(11) {
		got := make([]byte, 23)
		s.Fill(got, from)
		for k, b := range got {
			i := from + uint64(k)
			if want := byte(s.Uint64(i/8) >> (i % 8 * 8)); b != want {
				t.Fatalf("byte %d read from %d is %d, want %d", i, from, b, want)
			}
		}
	}
}
