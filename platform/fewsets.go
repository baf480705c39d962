package platform

import (
	mathbits "math/bits"
	"slices"
)

// FewSets are sets of memories, one for each of a number of things, most of which are in few memories. On a platform of up to 63 memories a set is a word
// with a bit for each. On others a word has up to three numbers, each plus 1, in ascending order, or the place of a larger set.
type FewSets struct {
	words int // of a larger set; 1: all sets are words with bits
	sets  []uint64
	large []uint64
	spare []uint64 // places in large that no set has any more
}

const (
	fewBits = 20 // of a number
	isLarge = 1 << 62
	isAll   = 1 << 63 // Everywhere has filled the set
)

// NewFewSets makes n empty sets.
func (p *Platform) NewFewSets(n int) FewSets {
	return FewSets{words: len(p.Memories)/64 + 1, sets: make([]uint64, n)}
}

// bits are the bits of a set that has them, and few the numbers of any other one.
func (s *FewSets) bits(i int32) (bits MemorySet, few [3]MemoryID, n int) {
	set := s.sets[i]
	switch {
	case s.words == 1:
		return s.sets[i : i+1], few, 0
	case set&isAll != 0:
		return nil, few, 0
	case set&isLarge != 0:
		at := int(set &^ isLarge)
		return s.large[at : at+s.words], few, 0
	}
	for ; set != 0; set >>= fewBits {
		few[n] = MemoryID(set&(1<<fewBits-1)) - 1
		n++
	}
	return nil, few, n
}

// Has reports whether a memory is in a set.
func (s *FewSets) Has(i int32, m MemoryID) bool {
	if s.words == 1 {
		return s.sets[i]>>m&1 != 0
	}
	return s.hasAmong(i, m)
}

func (s *FewSets) hasAmong(i int32, m MemoryID) bool {
	set := s.sets[i]
	switch {
	case set&isAll != 0:
		return true
	case set&isLarge != 0:
		return MemorySet(s.large[set&^isLarge:]).Has(m)
	}
	const mask = 1<<fewBits - 1
	number := uint64(m + 1)
	return set&mask == number || set>>fewBits&mask == number || set>>(2*fewBits) == number
}

// Add adds a memory to a set.
func (s *FewSets) Add(i int32, m MemoryID) {
	if s.words == 1 {
		s.sets[i] |= 1 << m
		return
	}
	if s.hasAmong(i, m) {
		return
	}
	bits, few, n := s.bits(i)
	switch {
	case bits != nil:
		bits.Add(m)
	case n < len(few):
		few[n] = m
		slices.Sort(few[:n+1])
		s.setFew(i, few[:n+1])
	default:
		at := uint64(len(s.large))
		if last := len(s.spare) - 1; last >= 0 {
			at, s.spare = s.spare[last], s.spare[:last]
		} else {
			s.large = append(s.large, make([]uint64, s.words)...)
		}
		s.sets[i] = isLarge | at
		for bits, _, _ = s.bits(i); n > 0; n-- {
			bits.Add(few[n-1])
		}
		bits.Add(m)
	}
}

func (s *FewSets) setFew(i int32, few []MemoryID) {
	s.sets[i] = 0
	for _, m := range slices.Backward(few) {
		s.sets[i] = s.sets[i]<<fewBits | uint64(m+1)
	}
}

// Remove takes a memory out of a set that is not everywhere.
func (s *FewSets) Remove(i int32, m MemoryID) {
	bits, few, n := s.bits(i)
	if bits != nil {
		bits.Remove(m)
		return
	}
	s.setFew(i, slices.DeleteFunc(few[:n], func(of MemoryID) bool { return of == m }))
}

// Clear empties a set.
func (s *FewSets) Clear(i int32) {
	if set := s.sets[i]; s.words > 1 && set&isLarge != 0 && set&isAll == 0 {
		bits, _, _ := s.bits(i)
		clear(bits)
		s.spare = append(s.spare, set&^isLarge)
	}
	s.sets[i] = 0
}

// Only lets a set have one memory.
func (s *FewSets) Only(i int32, m MemoryID) {
	s.Clear(i)
	if s.words == 1 {
		s.sets[i] = 1 << m
	} else {
		s.sets[i] = uint64(m + 1)
	}
}

// Everywhere lets a set have all memories, whichever these are.
func (s *FewSets) Everywhere(i int32) {
	s.Clear(i)
	s.sets[i] = ^uint64(0)
}

// IsEverywhere reports whether Everywhere has filled a set.
func (s *FewSets) IsEverywhere(i int32) bool { return s.sets[i]&isAll != 0 }

// Count is the number of memories in a set that is not everywhere.
func (s *FewSets) Count(i int32) int {
	bits, _, n := s.bits(i)
	return bits.Count() + n
}

// CountBefore is the number of memories in such a set with a smaller number than one.
func (s *FewSets) CountBefore(i int32, m MemoryID) int {
	bits, few, n := s.bits(i)
	if bits != nil {
		return bits.CountBefore(m)
	}
	for n > 0 && few[n-1] >= m {
		n--
	}
	return n
}

// AppendTo appends the memories of such a set, ascending.
func (s *FewSets) AppendTo(list []MemoryID, i int32) []MemoryID {
	bits, few, n := s.bits(i)
	for w, word := range bits {
		for ; word != 0; word &= word - 1 {
			list = append(list, MemoryID(64*w+mathbits.TrailingZeros64(word)))
		}
	}
	return append(list, few[:n]...)
}
