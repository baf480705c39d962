package layerwise

import (
	"slices"

	"dahl/dag"
)

// node is an operation, or a fused one.
type node struct {
	*dag.Operation
	layer   string
	layerAt int     // among all layers
	at      int32   // position in the order of the step
	fused   int     // of the fused operation in its place; -1 means none
	isFused bool    // it takes the place of others
	uses    []use   // by access
	in, out []int32 // edges
	fixed   []fixed
	aside   bool  // no step waits for what it did in the step before:
	after   bool  // it only reads what updates came by
	priced  int32 // one number for operations whose tiles have equal prices
}

// fixed is a storage that an operation reads and none writes, as a data set. It is in the host's memory before the first step.
type fixed struct {
	storage int
	bytes   float64
}

// use is an access of an operation: what of the storage its tiles touch.
type use struct {
	storage       int
	bytes         int64
	reads, writes bool
	box           [maxDims][2]float64 // of the whole operation, as fractions of the dimensions of the storage
	along         []axis
}

const maxDims = 6

// axis says that a part of a side touches a part of a dimension: from offset on, width for all parts, and halo more at each end.
type axis struct {
	side, dim           int
	offset, width, halo float64
}

// edge says that the tiles of an operation wait for tiles of another one, in the same step or in the step before.
type edge struct {
	from, to int32
	carried  bool
	data     bool  // of what from writes; else from only has to be done with it
	bytes    int64 // of all data
	pairs    []pair

	fromUse, toUse *use
}

// pair says which parts of a side of from a part of a side of to waits for: parts that meet the range scaled, moved and widened.
type pair struct {
	from, to             int
	scale, offset, widen float64
}

// usesOf finds what the tiles of an operation touch, by trying a part of each side.
func (m *Model) usesOf(o *dag.Operation) (uses []use) {
	g := o.Graph
	for i := range o.Task.Accesses {
		a := &o.Task.Accesses[i]
		b := &g.Buffers[a.Buffer]
		u := use{storage: m.storage(g.Buffers[g.Storage(a.Buffer)].Name), reads: a.Mode == dag.Read || a.Mode == dag.ReadWrite, writes: a.Mode.Writes(), bytes: b.Bytes()}
		for d := range u.box {
			u.box[d] = [2]float64{0, 1}
		}
		if a.Box != nil {
			u.bytes = a.Box.Elems() * b.Type.SizeBytes()
			for d, r := range a.Box {
				if to := ownerDim(g, a.Buffer, d); to >= 0 {
					u.box[to] = [2]float64{float64(r.Lo) / float64(b.Shape[d]), float64(r.Hi) / float64(b.Shape[d])}
				}
			}
		}
		uses = append(uses, u)
	}
	for s := range o.Sides {
		if side := &o.Sides[s]; side.Cuttable && side.Extent > 1 {
			addAxes(g, o, s, uses)
		}
	}
	return uses
}

// addAxes notes which dimensions of accesses a side cuts.
func addAxes(g *dag.Graph, o *dag.Operation, s int, uses []use) {
	ranges := make([]dag.Range, len(o.Sides))
	for i := range o.Sides {
		ranges[i] = dag.Range{Hi: o.Sides[i].Extent}
	}
	whole := o.Part(ranges)
	ranges[s].Hi = 1
	part := o.Part(ranges)
	if len(whole.Accesses) != len(uses) || len(part.Accesses) != len(uses) {
		return // operands come and go; all are taken as whole
	}
	for i := range uses {
		a, b := &whole.Accesses[i], &part.Accesses[i]
		shape := g.Buffers[a.Buffer].Shape
		for d := range shape {
			all, some := rangeIn(a.Box, d, shape), rangeIn(b.Box, d, shape)
			if all.Len() == some.Len() {
				continue
			}
			to := ownerDim(g, a.Buffer, d)
			if to < 0 {
				continue
			}
			extent := float64(shape[d])
			x := axis{side: s, dim: to, offset: float64(all.Lo) / extent, width: float64(all.Len()) / extent}
			x.halo = max(0, float64(some.Len())/extent-x.width/float64(o.Sides[s].Extent))
			uses[i].along = append(uses[i].along, x)
		}
	}
}

func rangeIn(box dag.Box, d int, shape []int) dag.Range {
	if box == nil {
		return dag.Range{Hi: shape[d]}
	}
	return box[d]
}

// ownerDim is the dimension of a buffer's storage behind one of the buffer. Below zero there is none by itself.
func ownerDim(g *dag.Graph, b dag.BufferID, d int) int {
	own, shape := g.Buffers[g.Storage(b)].Shape, g.Buffers[b].Shape
	if d >= maxDims || len(own) > maxDims {
		return -1
	}
	if slices.Equal(own, shape) {
		return d
	}
	before := 0
	for before < min(len(own), len(shape)) && own[before] == shape[before] {
		before++
	}
	switch {
	case d < before:
		return d
	case d == 0 && shape[0]%own[0] == 0: // positions of samples
		return 0
	}
	back := 1
	for back < min(len(own), len(shape))-before && own[len(own)-back] == shape[len(shape)-back] {
		if len(shape)-back == d {
			return len(own) - back
		}
		back++
	}
	if len(shape)-back == d && own[len(own)-back] == shape[d] {
		return len(own) - back
	}
	return -1
}

// toucher is a use of a storage so far.
type toucher struct {
	node, use int
	step      int
}

// follow finds the edges between the operations of a step and of the next one. A use follows the last writers of what it touches, and a
// writer also the readers since.
func follow(nodes []node, storages int) (all []edge) {
	writers, readers := make([][]toucher, storages), make([][]toucher, storages)
	for step := range 2 {
		for n := range nodes {
			if nodes[n].isFused {
				continue
			}
			for u := range nodes[n].uses {
				here := &nodes[n].uses[u]
				touch := func(list []toucher, data bool) {
					for _, of := range list {
						before := &nodes[of.node].uses[of.use]
						if of.node == n && of.step == step || !meet(before, here) || step == 0 {
							continue
						}
						all = append(all, edge{from: int32(of.node), to: int32(n), carried: of.step < step, data: data && here.reads,
							bytes: min(before.bytes, here.bytes), pairs: pairsOf(before, here), fromUse: before, toUse: here})
					}
				}
				touch(writers[here.storage], true)
				if here.writes {
					touch(readers[here.storage], false)
				}
			}
			for u := range nodes[n].uses {
				here := &nodes[n].uses[u]
				by := toucher{n, u, step}
				if !here.writes {
					readers[here.storage] = append(readers[here.storage], by)
					continue
				}
				covered := func(of toucher) bool { return covers(here, &nodes[of.node].uses[of.use]) }
				writers[here.storage] = append(slices.DeleteFunc(writers[here.storage], covered), by)
				readers[here.storage] = slices.DeleteFunc(readers[here.storage], covered)
			}
		}
	}
	return all
}

// meet reports whether two uses of a storage touch common elements.
func meet(a, b *use) bool {
	for d := range a.box {
		if a.box[d][0] >= b.box[d][1] || b.box[d][0] >= a.box[d][1] {
			return false
		}
	}
	return true
}

// covers reports whether one use touches all that the other one does.
func covers(a, b *use) bool {
	for d := range a.box {
		if a.box[d][0] > b.box[d][0] || a.box[d][1] < b.box[d][1] {
			return false
		}
	}
	return true
}

// pairsOf matches the sides that cut one dimension of a storage in two operations.
func pairsOf(from, to *use) (all []pair) {
	for _, t := range to.along {
		for _, f := range from.along {
			if f.dim != t.dim || slices.ContainsFunc(all, func(p pair) bool { return p.from == f.side || p.to == t.side }) {
				continue
			}
			all = append(all, pair{from: f.side, to: t.side, scale: t.width / f.width, offset: (t.offset - f.offset) / f.width, widen: (t.halo + f.halo) / f.width})
		}
	}
	return all
}

// setAside finds the operations that are on no way from an update to the next one: they load, or make what a program reads. In a step without
// updates no operation is aside.
func setAside(nodes []node, edges []edge) {
	behind, before := make([]bool, len(nodes)), make([]bool, len(nodes))
	for e := range edges {
		if edges[e].carried && edges[e].data {
			behind[edges[e].to], before[edges[e].from] = true, true
		}
	}
	for more := true; more; {
		more = false
		for e := range edges {
			of := &edges[e]
			if of.carried || !of.data {
				continue
			}
			if behind[of.from] && !behind[of.to] || before[of.to] && !before[of.from] {
				behind[of.to], before[of.from] = behind[of.to] || behind[of.from], before[of.from] || before[of.to]
				more = true
			}
		}
	}
	if !slices.Contains(behind, true) {
		return
	}
	for n := range nodes {
		nodes[n].aside, nodes[n].after = !behind[n] || !before[n], behind[n] && !before[n]
	}
}

// substituted adds the edges of fused operations. Each has the edges of the operations in whose place it is.
func substituted(nodes []node, edges []edge) (all []edge) {
	of := map[int]int32{} // the node of each fused operation
	for n := range nodes {
		if nodes[n].isFused {
			of[nodes[n].fused] = int32(n)
		}
	}
	variants := func(n int32) []int32 {
		if fused, ok := of[nodes[n].fused]; ok {
			return []int32{n, fused}
		}
		return []int32{n}
	}
	like := func(n int32, as *use) *use {
		for i := range nodes[n].uses {
			if u := &nodes[n].uses[i]; u.storage == as.storage && u.writes == as.writes {
				return u
			}
		}
		return nil
	}
	type key struct {
		from, to      int32
		carried, data bool
		storage       int
	}
	seen := map[key]bool{}
	for _, e := range edges {
		for _, from := range variants(e.from) {
			for _, to := range variants(e.to) {
				if from == e.from && to == e.to {
					all = append(all, e)
					continue
				}
				f, t := like(from, e.fromUse), like(to, e.toUse)
				k := key{from, to, e.carried, e.data, e.toUse.storage}
				if f == nil || t == nil || seen[k] || from == to && !e.carried {
					continue
				}
				seen[k] = true
				s := e
				s.from, s.to, s.fromUse, s.toUse, s.pairs = from, to, f, t, pairsOf(f, t)
				all = append(all, s)
			}
		}
	}
	return all
}
