package place

import (
	"math/bits"
	"slices"

	"dahl/platform"
)

// A version that memories of several nodes need goes to each other node once, and from its first memory there to the others of the node. The nodes are a binomial tree from the writer's
// node on, in their order around it: the node at distance p gets the version from the node at distance p less its highest bit. So n nodes have it after ⌈log₂ n⌉ messages one after the
// other. The first memory of a node is the one at the place of the writer's memory in its own node, if it needs the version. So versions from all memories of a node take all of
// their ways.
type relays struct {
	t        *traffic
	from     platform.MemoryID                     // of the writer
	first    map[platform.NodeID]platform.MemoryID // of each other node
	distance map[platform.NodeID]int
	around   []platform.NodeID // by distance
}

// relay sorts the pushes of a writer, so that what is passed on has arrived before. Nil means that the writer's memory serves all readers.
func (t *traffic) relay(to []push, from platform.MemoryID) *relays {
	if len(t.p.Nodes) == 0 || !slices.ContainsFunc(to, func(is push) bool { return t.memoryOf(is.reader) != t.memoryOf(to[0].reader) }) {
		return nil
	}
	own := t.p.NodeOf(from)
	r := &relays{t: t, from: from, first: map[platform.NodeID]platform.MemoryID{}, distance: map[platform.NodeID]int{}, around: []platform.NodeID{own}}
	for _, is := range to {
		m := t.memoryOf(is.reader)
		n := t.p.NodeOf(m)
		if _, known := r.first[n]; !known || t.p.PlaceInNode(m) == t.p.PlaceInNode(from) {
			r.first[n] = m
		}
	}
	for n := range r.first {
		if n != own {
			r.around = append(r.around, n)
		}
	}
	ahead := func(n platform.NodeID) int { return (int(n-own) + len(t.p.Nodes)) % len(t.p.Nodes) }
	slices.SortFunc(r.around, func(a, b platform.NodeID) int { return ahead(a) - ahead(b) })
	for p, n := range r.around {
		r.distance[n] = p
	}
	type keyed struct {
		push
		key int
	}
	keys, start := make([]keyed, len(to)), make([]int, 2*len(r.around)+1) // by key: where its pushes begin
	for i, is := range to {
		m := t.memoryOf(is.reader)
		n := t.p.NodeOf(m)
		key := 2 * r.distance[n]
		if n == own || m != r.first[n] {
			key++
		}
		keys[i] = keyed{is, key}
		start[key+1]++
	}
	for key := range 2 * len(r.around) {
		start[key+1] += start[key]
	}
	for _, is := range keys {
		to[start[is.key]] = is.push
		start[is.key]++
	}
	return r
}

// source is the memory from which an atom goes to another one.
func (r *relays) source(atom int32, to platform.MemoryID) platform.MemoryID {
	n := r.t.p.NodeOf(to)
	p := r.distance[n]
	if p == 0 {
		return r.from
	}
	if first := r.first[n]; first != to && r.t.reached.Has(atom, first) {
		return first
	}
	for p > 0 {
		p &^= 1 << (bits.Len(uint(p)) - 1)
		if first := r.first[r.around[p]]; p > 0 && r.t.reached.Has(atom, first) {
			return first
		}
	}
	return r.from
}
