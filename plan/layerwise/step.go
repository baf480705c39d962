package layerwise

import (
	"cmp"
	"slices"

	"dahl/dag"
	"dahl/platform"
)

// step is a network under a lowering on a set: the operations and what they wait for.
type step struct {
	set    *set
	active []active
	links  []activeLink
	at     []int32 // by node: its place among the active ones, or -1

	tiles, cells int // in all
	storages     int
	parts        int // of parcels, in all
	owner        []int32
	applies      []bool              // by fused operation
	devices      []int16             // by tile
	byRank       []int32             // active operations
	readers      platform.MemorySets // by cell: the memories of the tiles that wait for it, as the set of devices numbers them
	need, past   []int32             // by tile: what it waits for in the same step and in the step before
}

// active is an operation of a step.
type active struct {
	*node
	*costs
	tiled   *tiled
	first   int32 // its first tile
	merges  int32 // its first sum of accumulators; -1 means none
	rank    float64
	order   uint64  // by rank
	out     []int32 // links
	in      []int32
	parcels []parcel
	where   uint64 // the memories of its tiles
}

// activeLink is a link between two operations of a step.
type activeLink struct {
	*link
	edge     *edge
	from, to int32 // active
	first    int32 // its first cell
	results  bool
	bytes    float64 // of a tile of from; zero means that nothing moves
	parcel   int32   // among the parcels of from
	dropped  bool    // nothing waits for it
}

// parcel is a storage that an operation writes and other ones read. A tile's part of it is sent once to each memory.
type parcel struct {
	storage int
	links   []int32
	bytes   float64 // of a tile
	results bool    // of complete sums
	first   int32   // its first part among the parts of all parcels
}

// cell is the cell of a tile of from.
func (l *link) cell(tile int32) int32 {
	if l.cellOf == nil {
		return 0
	}
	return l.cellOf[tile]
}

// needed is the number of cells that a tile of to waits for.
func (l *link) needed(tile int) int32 {
	if l.cellOf == nil {
		return 1
	}
	return l.needs.start[tile+1] - l.needs.start[tile]
}

// newStep collects the operations of a lowering, their prices on a set and their links. The worker has one step at a time.
func (w *worker) newStep(s *set, layers []dag.LayerLowering) (*step, error) {
	p := &w.step
	*p = step{set: s, storages: len(w.storages), active: p.active[:0], links: p.links[:0], at: sized(p.at, len(w.nodes)), owner: p.owner, need: p.need, past: p.past,
		applies: sized(p.applies, len(w.fused)), devices: p.devices, byRank: p.byRank, readers: p.readers}
	for f := range p.applies {
		p.applies[f] = w.network.Fused[f].Applies(layers[w.fused[f]])
	}
	for _, n := range w.order {
		node := &w.nodes[n]
		if p.at[n] = -1; node.fused >= 0 && p.applies[node.fused] != node.isFused {
			continue
		}
		if err := p.add(w, n, layers[node.layerAt]); err != nil {
			return nil, err
		}
	}
	p.owner, p.need, p.past = sized(p.owner, p.tiles), sized(p.need, p.tiles), sized(p.past, p.tiles)
	for i := range p.active {
		p.own(i)
	}
	for e := range w.edges {
		p.link(w, int32(e))
	}
	p.rank()
	return p, nil
}

// sized is a list of zeros, in the room of another one.
func sized[T any](list []T, n int) []T {
	if cap(list) < n {
		return make([]T, n)
	}
	list = list[:n]
	clear(list)
	return list
}

// add adds an operation whose layer is lowered so.
func (p *step) add(w *worker, n int32, of dag.LayerLowering) error {
	node := &w.nodes[n]
	t := w.tiledUnder(n, of)
	costs, err := w.costsOf(p.set, node, t)
	if err != nil {
		return err
	}
	i := len(p.active)
	p.at[n] = int32(i)
	if i < cap(p.active) {
		p.active = p.active[:i+1]
	} else {
		p.active = append(p.active, active{})
	}
	a := &p.active[i]
	*a = active{node: node, costs: costs, tiled: t, first: int32(p.tiles), merges: -1, out: a.out[:0], in: a.in[:0], parcels: a.parcels[:0]}
	p.tiles += t.tiles
	if t.sums > 1 {
		a.merges = int32(p.tiles)
		p.tiles += t.regions()
	}
	return nil
}

// own notes the tiles of an operation and what they wait for in it.
func (p *step) own(i int) {
	a := &p.active[i]
	t := a.tiled
	for k := range t.tiles {
		p.owner[int(a.first)+k] = int32(i)
	}
	for k, next := range t.next {
		if next >= 0 {
			p.need[int(a.first)+int(next)]++
		}
		if a.merges >= 0 {
			p.need[a.merges+t.region[k]]++
		}
	}
	if a.merges >= 0 {
		for k := range t.regions() {
			p.owner[int(a.merges)+k] = int32(i)
		}
	}
}

// link adds the link of an edge, if both operations take part.
func (p *step) link(w *worker, e int32) {
	of := &w.edges[e]
	from, to := p.at[of.from], p.at[of.to]
	if from < 0 || to < 0 {
		return
	}
	f, t := &p.active[from], &p.active[to]
	l := activeLink{link: w.linkOf(e, f.tiled, t.tiled), edge: of, from: from, to: to, first: int32(p.cells), results: of.results(f.tiled)}
	if of.data && p.set.memories > 1 {
		p.parcel(&l, int32(len(p.links)), f)
	}
	p.cells += l.cells
	need := p.need
	if of.carried {
		need = p.past
	}
	for k := range t.tiled.tiles {
		need[int(t.first)+k] += l.needed(k)
	}
	f.out, t.in = append(f.out, int32(len(p.links))), append(t.in, int32(len(p.links)))
	p.links = append(p.links, l)
}

// parcel puts a link among the others that read the same.
func (p *step) parcel(l *activeLink, at int32, from *active) {
	storage, tiles := l.edge.fromUse.storage, from.tiled.tiles
	if l.results {
		tiles = from.tiled.regions()
	}
	i := slices.IndexFunc(from.parcels, func(q parcel) bool { return q.storage == storage })
	if i < 0 {
		if i = len(from.parcels); i < cap(from.parcels) {
			from.parcels = from.parcels[:i+1]
		} else {
			from.parcels = append(from.parcels, parcel{})
		}
		from.parcels[i] = parcel{storage: storage, links: from.parcels[i].links[:0], bytes: float64(l.edge.fromUse.bytes) / float64(tiles), results: l.results,
			first: int32(p.parts)}
		p.parts += tiles
	}
	q := &from.parcels[i]
	q.links = append(q.links, at)
	l.bytes, l.parcel = q.bytes, int32(i)
}

// rank orders the operations by the longest way from the beginning of one of their tiles to the end of the step, as HEFT does.
func (p *step) rank() {
	p.byRank = sized(p.byRank, len(p.active))
	order := p.byRank
	for i := len(p.active) - 1; i >= 0; i-- {
		a := &p.active[i]
		order[i] = int32(i)
		behind := 0.0
		for _, l := range a.out {
			if link := &p.links[l]; !link.edge.carried {
				behind = max(behind, p.active[link.to].rank)
			}
		}
		chain := float64(dag.CeilDiv(a.tiled.terms, a.tiled.sums))
		a.rank = behind + p.mean(a.ns)*chain
		if a.merges >= 0 {
			a.rank += p.mean(a.merge)
		}
	}
	slices.SortStableFunc(order, func(a, b int32) int { return cmp.Compare(p.active[b].rank, p.active[a].rank) })
	for at, i := range order {
		p.active[i].order = uint64(at)
	}
}

// mean is the mean of a time over the units that can run a tile.
func (p *step) mean(ns []float64) float64 {
	sum, units := 0.0, 0
	for d := range ns {
		if ns[d] >= 0 {
			sum, units = sum+ns[d]*float64(p.set.Devices[d].Count), units+p.set.Devices[d].Count
		}
	}
	return sum / float64(max(units, 1))
}
