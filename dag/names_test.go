package dag

import (
	"fmt"
	"hash/maphash"
	"testing"
)

// TestNameTable finds every name it was given, and no other, while it grows from
// nothing; every 7th name gets the hash of the one before, so that only the names
// themselves tell them apart.
func TestNameTable(t *testing.T) {
	const names = 5000
	n := nameTable{seed: maphash.MakeSeed()}
	list := make([]string, names)
	hash := func(i int) uint32 {
		if i%7 == 0 && i > 0 {
			i--
		}
		return n.hash(fmt.Sprint("task", i))
	}
	for i := range list {
		list[i] = fmt.Sprint("task", i)
		is := func(id int32) bool { return list[id] == list[i] }
		if id, ok := n.find(hash(i), is); ok {
			t.Fatalf("%s is found as %d before it is added", list[i], id)
		}
		n.add(hash(i), int32(i))
		for _, k := range []int{0, i / 2, i} {
			is := func(id int32) bool { return list[id] == list[k] }
			if id, ok := n.find(hash(k), is); !ok || id != int32(k) {
				t.Fatalf("after %d names, %s is found as %d, %v", i+1, list[k], id, ok)
			}
		}
	}
}
