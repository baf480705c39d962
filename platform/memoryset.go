package platform

import (
	"iter"
	"math/bits"
)

// MemorySets are sets of memories, one for each of a number of things. A set of a platform of up
// to 63 memories is a word.
type MemorySets struct {
	words int // of a set
	bits  []uint64
}

// NewMemorySet makes an empty set.
func (p *Platform) NewMemorySet() MemorySet { return make(MemorySet, len(p.Memories)/64+1) }

// Reset makes n empty sets for a number of memories, in the room of the old ones where they fit.
func (s *MemorySets) Reset(n, memories int) {
	s.words = memories/64 + 1
	if n *= s.words; n > cap(s.bits) {
		s.bits = make([]uint64, n)
		return
	}
	s.bits = s.bits[:n]
	clear(s.bits)
}

// Of is a set. The caller may change it.
func (s *MemorySets) Of(i int32) MemorySet {
	if s.words == 1 {
		return s.bits[i : i+1 : i+1]
	}
	at := int(i) * s.words
	return s.bits[at : at+s.words : at+s.words]
}

// Has reports whether a memory is in a set.
func (s *MemorySets) Has(i int32, m MemoryID) bool {
	if s.words == 1 {
		return s.bits[i]>>m&1 != 0
	}
	return s.Of(i).Has(m)
}

// Add adds a memory to a set.
func (s *MemorySets) Add(i int32, m MemoryID) {
	if s.words == 1 {
		s.bits[i] |= 1 << m
		return
	}
	s.Of(i).Add(m)
}

// Only lets a set have one memory.
func (s *MemorySets) Only(i int32, m MemoryID) {
	if s.words == 1 {
		s.bits[i] = 1 << m
		return
	}
	clear(s.Of(i))
	s.Of(i).Add(m)
}

// MemorySet is one set of memories, a bit for each.
type MemorySet []uint64

// Has reports whether a memory is in the set.
func (s MemorySet) Has(m MemoryID) bool { return s[m/64]>>(m%64)&1 != 0 }

// Add adds a memory.
func (s MemorySet) Add(m MemoryID) { s[m/64] |= 1 << (m % 64) }

// Remove takes a memory out.
func (s MemorySet) Remove(m MemoryID) { s[m/64] &^= 1 << (m % 64) }

// AddAll adds the memories of another set.
func (s MemorySet) AddAll(other MemorySet) {
	for w := range s {
		s[w] |= other[w]
	}
}

// Within reports whether no other memory than one is in the set.
func (s MemorySet) Within(m MemoryID) bool {
	for w, word := range s {
		if w == int(m/64) {
			word &^= 1 << (m % 64)
		}
		if word != 0 {
			return false
		}
	}
	return true
}

// Count is the number of memories in the set.
func (s MemorySet) Count() (n int) {
	for _, word := range s {
		n += bits.OnesCount64(word)
	}
	return n
}

// CountBefore is the number of memories in the set with a smaller number than one.
func (s MemorySet) CountBefore(m MemoryID) (n int) {
	for _, word := range s[:m/64] {
		n += bits.OnesCount64(word)
	}
	return n + bits.OnesCount64(s[m/64]&(1<<(m%64)-1))
}

// All visits the memories in the set, ascending.
func (s MemorySet) All() iter.Seq[MemoryID] {
	return func(yield func(MemoryID) bool) {
		for w, word := range s {
			for ; word != 0; word &= word - 1 {
				if !yield(MemoryID(64*w + bits.TrailingZeros64(word))) {
					return
				}
			}
		}
	}
}
