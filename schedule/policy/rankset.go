package policy

import "math/bits"

// rankSet is a set of numbers below a bound, from which the least is taken: a bit for
// each number, above them a bit for each word of these that is not empty, and so on
// up to one word. Adding and taking cost a step per level, of which a million numbers
// need four, whatever the set holds.
type rankSet struct{ levels [][]uint64 }

func newRankSet(bound int) rankSet {
	var s rankSet
	for {
		words := max(1, (bound+63)/64)
		s.levels = append(s.levels, make([]uint64, words))
		if words == 1 {
			return s
		}
		bound = words
	}
}

func (s *rankSet) empty() bool { return s.levels[len(s.levels)-1][0] == 0 }

func (s *rankSet) add(n int) {
	for _, level := range s.levels {
		word := &level[n/64]
		known := *word != 0
		*word |= 1 << (n % 64)
		if known {
			return
		}
		n /= 64
	}
}

// least is the least number of a set that is not empty.
func (s *rankSet) least() int {
	n := 0
	for l := len(s.levels) - 1; l >= 0; l-- {
		n = 64*n + bits.TrailingZeros64(s.levels[l][n])
	}
	return n
}

func (s *rankSet) remove(n int) {
	for _, level := range s.levels {
		word := &level[n/64]
		*word &^= 1 << (n % 64)
		if *word != 0 {
			return
		}
		n /= 64
	}
}
