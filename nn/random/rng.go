package random

import (
	"hash/fnv"
	"math/bits"
)

// Stream is a sequence of random numbers that can be read at any index. Number i is a pure
// function of the seed, the stream's name and i. The order of draws, the number of workers that
// draw, and other streams change nothing.
//
// It is Philox4x32-10 (Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as
// easy as 1, 2, 3", SC 2011): the seed is the key; the counter holds the block's
// index in its low and a hash of the name in its high 64 bits.
type Stream struct {
	seed uint64
	name uint64
}

// NewStream returns the stream of that name.
func NewStream(seed uint64, name string) Stream {
	h := fnv.New64a()
	h.Write([]byte(name)) // a hash.Hash never returns an error
	return Stream{seed: seed, name: h.Sum64()}
}

// Uint64 returns number i, uniform over all 64-bit values. A block of 128 bits
// holds two numbers.
func (s Stream) Uint64(i uint64) uint64 {
	block := philox4x32([4]uint32{
		uint32(i >> 1), uint32(i >> 33), uint32(s.name), uint32(s.name >> 32),
	}, [2]uint32{uint32(s.seed), uint32(s.seed >> 32)})
	half := 2 * (i & 1)
	return uint64(block[half]) | uint64(block[half+1])<<32
}

// Float64 returns number i as one of the 2^53 multiples of 2^-53 in [0, 1).
func (s Stream) Float64(i uint64) float64 {
	return float64(s.Uint64(i)>>11) * 0x1p-53
}

// Uniform returns number i, uniform between lo and hi.
func (s Stream) Uniform(i uint64, lo, hi float64) float64 {
	return lo + float64((hi-lo)*s.Float64(i))
}

// Below returns number i as an integer in [0, n). The high word of a product
// favours no value by more than n/2^64, far below what could be observed.
func (s Stream) Below(i, n uint64) uint64 {
	hi, _ := bits.Mul64(s.Uint64(i), n)
	return hi
}

// Fill writes the bytes of the stream from byte i on: eight come from a number.
func (s Stream) Fill(dst []byte, i uint64) {
	word := s.Uint64(i >> 3)
	for k := range dst {
		if i&7 == 0 {
			word = s.Uint64(i >> 3)
		}
		dst[k] = byte(word >> (8 * (i & 7)))
		i++
	}
}

// philox4x32 is the bijection of the paper with ten rounds; the multipliers are
// its table 2, the key increments the golden ratio and √3-1 in 32 bits.
func philox4x32(counter [4]uint32, key [2]uint32) [4]uint32 {
	for range 10 {
		hi0, lo0 := bits.Mul32(0xD2511F53, counter[0])
		hi1, lo1 := bits.Mul32(0xCD9E8D57, counter[2])
		counter = [4]uint32{hi1 ^ counter[1] ^ key[0], lo1, hi0 ^ counter[3] ^ key[1], lo0}
		key[0] += 0x9E3779B9
		key[1] += 0xBB67AE85
	}
	return counter
}
