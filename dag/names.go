package dag

import "hash/maphash"

// nameTable finds the ID of a name. It is a hash table with linear probing. It holds no names, only 32 bits of each
// name's hash and the ID. So the garbage collector has nothing to follow
// in it, and a task costs it less than a map would. The caller compares the name itself.
type nameTable struct {
	seed  maphash.Seed
	slots []uint64 // hash<<32 | 1+id; 0 means free; a power of two of them
	used  int
}

// hash is the part of the name's hash that the table keeps.
func (n *nameTable) hash(name string) uint32 { return uint32(maphash.String(n.seed, name)) }

// find returns the ID among those with this hash for which is holds.
func (n *nameTable) find(hash uint32, is func(id int32) bool) (id int32, ok bool) {
	if len(n.slots) == 0 {
		return 0, false
	}
	mask := uint32(len(n.slots) - 1)
	for at := hash & mask; n.slots[at] != 0; at = (at + 1) & mask {
		if s := n.slots[at]; uint32(s>>32) == hash && is(int32(uint32(s))-1) {
			return int32(uint32(s)) - 1, true
		}
	}
	return 0, false
}

// add records an ID that find does not know.
func (n *nameTable) add(hash uint32, id int32) {
	if 2*n.used >= len(n.slots) {
		n.grow(max(64, 4*len(n.slots)))
	}
	n.put(uint64(hash)<<32 | uint64(id+1))
	n.used++
}

// grow makes room for a number of slots, a power of two.
func (n *nameTable) grow(slots int) {
	old := n.slots
	n.slots = make([]uint64, slots)
	for _, s := range old {
		if s != 0 {
			n.put(s)
		}
	}
}

func (n *nameTable) put(slot uint64) {
	mask := uint32(len(n.slots) - 1)
	at := uint32(slot>>32) & mask
	for n.slots[at] != 0 {
		at = (at + 1) & mask
	}
	n.slots[at] = slot
}
