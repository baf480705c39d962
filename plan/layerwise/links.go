package layerwise

import "dahl/dag"

// linkKey is an edge between two operations under cuts.
type linkKey struct {
	edge     int32
	from, to *tiled
}

// link is an edge between tiles. The tiles of from are grouped in cells, by their places along the sides that both operations cut. A tile of to
// waits for all tiles of some cells.
type link struct {
	cells   int
	cellOf  []int32 // by tile of from, or by part of its result; nil means that there is one cell
	size    []int32 // by cell: its tiles
	members csr     // by cell: its tiles; of one cell all
	waiting csr     // by cell: the tiles of to that wait for it; of one cell all
	needs   csr     // by tile of to: the cells that it waits for
}

// csr is lists of numbers, one behind the other.
type csr struct{ start, list []int32 }

func (c *csr) of(i int32) []int32 { return c.list[c.start[i]:c.start[i+1]] }

// results reports whether an edge waits for complete sums.
func (e *edge) results(from *tiled) bool { return e.fromUse.writes && from.sums > 1 }

// mostLinked bounds the numbers in the lists of all links in store, and mostCosts the operations with costs on a set.
const (
	mostLinked = 1 << 24
	mostCosts  = 1 << 14
)

// linkOf is the link of an edge.
func (w *worker) linkOf(number int32, from, to *tiled) *link {
	key, last := linkKey{number, from, to}, &w.links[number]
	if last.link == nil || last.key != key {
		*last = linked{key, w.Model.linkOf(key)}
	}
	return last.link
}

func (m *Model) linkOf(key linkKey) *link {
	m.mutex.Lock()
	l := m.links[key]
	m.mutex.Unlock()
	if l != nil {
		return l
	}
	l = m.newLink(&m.edges[key.edge], key.from, key.to)
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if m.linked += len(l.needs.list) + len(l.waiting.list); m.linked > mostLinked {
		clear(m.links)
		m.linked = 0
	}
	m.links[key] = l
	return l
}

// paired is a pair with the parts of from that each part of to waits for.
type paired struct {
	pair
	parts  int
	lo, hi []int // by part of to
}

func (m *Model) newLink(e *edge, from, to *tiled) *link {
	fromSides, toSides := m.nodes[e.from].Sides, m.nodes[e.to].Sides
	tiles, results := from.tiles, e.results(from)
	if results {
		tiles = from.regions()
	}
	l := &link{cells: 1}
	var pairs []paired
	for _, p := range e.pairs {
		of := paired{pair: p, parts: from.parts[p.from]}
		if of.parts == 1 || results && fromSides[p.from].Summed {
			continue
		}
		for t := range to.parts[p.to] {
			lo, hi := rangeOf(&toSides[p.to], &to.cut, t)
			lo, hi = lo*p.scale+p.offset-p.widen, hi*p.scale+p.offset+p.widen
			first, last := -1, -1
			for f := range of.parts {
				if a, b := rangeOf(&fromSides[p.from], &from.cut, f); a < hi-1e-9 && b > lo+1e-9 {
					if first < 0 {
						first = f
					}
					last = f
				}
			}
			of.lo, of.hi = append(of.lo, max(first, 0)), append(of.hi, max(last, first))
		}
		pairs, l.cells = append(pairs, of), l.cells*of.parts
	}
	l.size = make([]int32, l.cells)
	if l.cells == 1 {
		l.size[0] = int32(tiles)
		return l
	}
	l.cellOf = make([]int32, tiles)
	for tile := range tiles {
		rest, place := tile, [16]int{}
		for i := len(fromSides) - 1; i >= 0; i-- {
			n := from.parts[i]
			if results && fromSides[i].Summed {
				n = 1
			}
			place[i] = rest % n
			rest /= n
		}
		cell := 0
		for _, p := range pairs {
			cell = cell*p.parts + place[p.from]
		}
		l.cellOf[tile] = int32(cell)
		l.size[cell]++
	}
	l.members = inverse(l.cellOf, l.size)
	l.wait(pairs, toSides, to)
	return l
}

// inverse lists the tiles of each cell.
func inverse(cellOf, size []int32) csr {
	of := csr{start: make([]int32, len(size)+1), list: make([]int32, len(cellOf))}
	for c, n := range size {
		of.start[c+1] = of.start[c] + n
	}
	next := append([]int32(nil), of.start...)
	for tile, c := range cellOf {
		of.list[next[c]] = int32(tile)
		next[c]++
	}
	return of
}

// wait fills the lists of cells and of tiles.
func (l *link) wait(pairs []paired, sides []dag.Side, to *tiled) {
	l.needs.start = make([]int32, to.tiles+1)
	counts := make([]int32, l.cells+1)
	for tile := range to.tiles {
		rest, place := tile, [16]int{}
		for i := len(sides) - 1; i >= 0; i-- {
			place[i] = rest % to.parts[i]
			rest /= to.parts[i]
		}
		var visit func(p, cell int)
		visit = func(p, cell int) {
			if p == len(pairs) {
				l.needs.list = append(l.needs.list, int32(cell))
				counts[cell+1]++
				return
			}
			at := place[pairs[p].to]
			for f := pairs[p].lo[at]; f <= pairs[p].hi[at]; f++ {
				visit(p+1, cell*pairs[p].parts+f)
			}
		}
		visit(0, 0)
		l.needs.start[tile+1] = int32(len(l.needs.list))
	}
	for c := range l.cells {
		counts[c+1] += counts[c]
	}
	l.waiting = csr{start: counts, list: make([]int32, len(l.needs.list))}
	filled := make([]int32, l.cells)
	for tile := range to.tiles {
		for _, cell := range l.needs.of(int32(tile)) {
			l.waiting.list[counts[cell]+filled[cell]] = int32(tile)
			filled[cell]++
		}
	}
}
