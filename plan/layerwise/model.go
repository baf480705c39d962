package layerwise

import (
	"cmp"
	"slices"
	"strings"
	"sync"

	"dahl/dag"
)

// Model estimates steps of a network on sets of devices of a machine. Goroutines may share it: each takes a worker, and the mutex guards what all of them
// keep.
type Model struct {
	network Network
	nodes   []node
	edges   []edge
	order   []int32 // nodes in the order of the step

	storages  map[string]int // numbers by name
	alike     map[string]int32
	layers    []string
	knobs     []knob
	joints    []joint
	fused     []int        // by fused operation: its layer
	weightsOf []layerBytes // by layer

	mutex  sync.Mutex
	tiled  map[tileKey]*tiled
	tasks  []dag.Task // of all tiles so far, by class of cost
	class  map[costKey]int32
	links  map[linkKey]*link
	linked int // numbers in their lists
	sets   map[string]*set
	unlike []*set            // those that differ in more than names
	like   map[string]string // by device: the first one like it
	tables map[tableKey]*table
	idle   []*worker
}

// worker is room for one estimate after the other.
type worker struct {
	*Model
	lowered []lowered // by node
	links   []linked  // by edge
	step    step      // the last one, whose room the next one takes
	run     run
	placing placing
}

// lowered is an operation whose layer is lowered so.
type lowered struct {
	by dag.LayerLowering
	*tiled
}

// linked is a link, the last one of an edge.
type linked struct {
	key linkKey
	*link
}

// take takes a worker, which give gives back.
func (m *Model) take() *worker {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if n := len(m.idle); n > 0 {
		w := m.idle[n-1]
		m.idle = m.idle[:n-1]
		return w
	}
	return &worker{Model: m, lowered: make([]lowered, len(m.nodes)), links: make([]linked, len(m.edges))}
}

func (m *Model) give(w *worker) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.idle = append(m.idle, w)
}

// New prepares the model of a network.
func New(n Network) *Model {
	m := &Model{network: n, storages: map[string]int{}, alike: map[string]int32{}, tiled: map[tileKey]*tiled{}, class: map[costKey]int32{}, links: map[linkKey]*link{}, sets: map[string]*set{}, tables: map[tableKey]*table{}}
	for t := range n.All {
		o := &n.All[t]
		m.nodes = append(m.nodes, node{Operation: o, layer: o.Task.Labels.Layer, at: int32(t), fused: -1, uses: m.usesOf(o), priced: m.pricedLike(o)})
	}
	for f := range n.Fused {
		of := &n.Fused[f]
		at := of.Of[len(of.Of)-1]
		if of.Task.Labels.Phase == "forward" {
			at = of.Of[0]
		}
		for _, t := range of.Of {
			m.nodes[t].fused = f
		}
		m.nodes = append(m.nodes, node{Operation: &of.Operation, layer: of.Task.Labels.Layer, at: int32(at), fused: f, isFused: true,
			uses: m.usesOf(&of.Operation), priced: m.pricedLike(&of.Operation)})
	}
	m.findFixed()
	m.edges = substituted(m.nodes, follow(m.nodes, len(m.storages)))
	setAside(m.nodes, m.edges)
	for e := range m.edges {
		from, to := &m.nodes[m.edges[e].from], &m.nodes[m.edges[e].to]
		from.out, to.in = append(from.out, int32(e)), append(to.in, int32(e))
	}
	m.findKnobs()
	m.findJoints()
	m.findWeights()
	for i := range m.nodes {
		m.order = append(m.order, int32(i))
	}
	slices.SortStableFunc(m.order, func(a, b int32) int { return cmp.Compare(m.nodes[a].at, m.nodes[b].at) })
	return m
}

// layerBytes are the bytes of a layer's weights, and of what its forward pass reads.
type layerBytes struct{ bytes, reads float64 }

// findWeights finds the bytes of layers.
func (m *Model) findWeights() {
	m.weightsOf = make([]layerBytes, len(m.layers))
	for n := range m.nodes {
		node := &m.nodes[n]
		if node.isFused {
			continue
		}
		of := &m.weightsOf[node.layerAt]
		for _, a := range node.Task.Accesses {
			b := &node.Graph.Buffers[a.Buffer]
			switch bytes := float64(b.Bytes()); {
			case b.Role == dag.Parameter && a.Mode.Writes():
				of.bytes += bytes
			case b.Role == dag.Activation && a.Mode == dag.Read && node.Task.Labels.Phase == "forward":
				of.reads = max(of.reads, bytes)
			}
		}
	}
}

// findFixed finds the storages that no operation writes.
func (m *Model) findFixed() {
	written := make([]bool, len(m.storages))
	for n := range m.nodes {
		for _, u := range m.nodes[n].uses {
			written[u.storage] = written[u.storage] || u.writes
		}
	}
	for n := range m.nodes {
		for _, u := range m.nodes[n].uses {
			if !written[u.storage] {
				m.nodes[n].fixed = append(m.nodes[n].fixed, fixed{u.storage, float64(u.bytes)})
			}
		}
	}
}

// storage is the number of a storage by its name.
func (m *Model) storage(name string) int {
	id, ok := m.storages[name]
	if !ok {
		id = len(m.storages)
		m.storages[name] = id
	}
	return id
}

// pricedLike numbers operations. The tiles of those with one number have equal prices.
func (m *Model) pricedLike(o *dag.Operation) int32 {
	var key strings.Builder
	key.WriteString(o.Task.Op + " " + o.Task.Shape)
	for _, s := range o.Sides {
		key.WriteString(" " + s.Along.String())
		if s.Summed {
			key.WriteByte('+')
		}
	}
	id, ok := m.alike[key.String()]
	if !ok {
		id = int32(len(m.alike))
		m.alike[key.String()] = id
	}
	return id
}

// tileKey is an operation, up to its place in the network, and a cut.
type tileKey struct {
	operation int32
	cut       dag.Cut
}

// costKey tells tasks of different costs apart.
type costKey struct {
	op, shape string
	placed    bool
}

// tiled is an operation under a cut.
type tiled struct {
	kinds  []kind
	tiles  int // without sums of accumulators
	merges int
	parts  []int // by side
	terms  int   // of each sum
	sums   int   // accumulators of each
	cut    dag.Cut
	region []int32 // by tile: the part of the result, among all
	next   []int32 // by tile: the next one that adds to the same accumulator, or -1; nil where each is alone
	last   []int32 // by tile: the one before, likewise
}

// kind is some tasks of an operation that are alike.
type kind struct {
	class int32
	count int
	merge bool
}

// tiledBy is an operation under a cut. The cut may name dimensions along which the operation cannot be cut.
func (m *Model) tiledBy(n *node, cut dag.Cut) *tiled {
	own := dag.Cut{}
	summed := 1
	for i := range n.Sides {
		s := &n.Sides[i]
		if parts := s.Parts(&cut); parts > 1 {
			*own.Of(s.Along) = *cut.Of(s.Along)
			if s.Summed {
				summed *= parts
			}
		}
	}
	if summed > 1 {
		own.Accumulators = min(max(cut.Accumulators, 1), summed)
	}
	key := tileKey{n.priced, own}
	m.mutex.Lock()
	known := m.tiled[key]
	m.mutex.Unlock()
	if known != nil {
		return known
	}
	t := &tiled{tiles: 1, terms: summed, sums: max(1, own.Accumulators), cut: own}
	for i := range n.Sides {
		parts := n.Sides[i].Parts(&own)
		t.parts, t.tiles = append(t.parts, parts), t.tiles*parts
	}
	all, err := n.Tiles(own)
	if err != nil {
		all = []dag.Tile{{Task: n.Task, Count: t.tiles}}
	}
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if known := m.tiled[key]; known != nil {
		return known // of another goroutine
	}
	for _, tile := range all {
		k := kind{class: m.classOf(&tile.Task), count: tile.Count, merge: tile.Task.Labels.Phase == "reduce"}
		if k.merge {
			t.merges += k.count
		}
		t.kinds = append(t.kinds, k)
	}
	t.chain(n.Sides)
	m.tiled[key] = t
	return t
}

// tiledUnder is an operation whose layer is lowered so.
func (w *worker) tiledUnder(n int32, of dag.LayerLowering) *tiled {
	l := &w.lowered[n]
	if l.tiled == nil || l.by != of {
		node := &w.nodes[n]
		*l = lowered{of, w.tiledBy(node, node.Cut(of))}
	}
	return l.tiled
}

// chain finds the tiles that add to one accumulator one after the other, see [dag.Expand].
func (t *tiled) chain(sides []dag.Side) {
	if t.terms == 1 {
		return
	}
	t.region, t.next, t.last = make([]int32, t.tiles), make([]int32, t.tiles), make([]int32, t.tiles)
	last := map[[2]int32]int32{}
	for tile := range t.tiles {
		rest, region, regions, term, terms := tile, 0, 1, 0, 1
		for i := len(sides) - 1; i >= 0; i-- {
			at := rest % t.parts[i]
			rest /= t.parts[i]
			if sides[i].Summed {
				term, terms = term+at*terms, terms*t.parts[i]
			} else {
				region, regions = region+at*regions, regions*t.parts[i]
			}
		}
		t.region[tile], t.next[tile], t.last[tile] = int32(region), -1, -1
		sum := [2]int32{int32(region), int32(term * t.sums / t.terms)}
		if before, ok := last[sum]; ok {
			t.next[before], t.last[tile] = int32(tile), before
		}
		last[sum] = int32(tile)
	}
}

// regions is the number of parts of the result.
func (t *tiled) regions() int { return t.tiles / t.terms }

func (m *Model) classOf(t *dag.Task) int32 {
	key := costKey{t.Op, t.Shape, t.Placement != nil}
	class, ok := m.class[key]
	if !ok {
		class = int32(len(m.tasks))
		m.class[key] = class
		m.tasks = append(m.tasks, *t)
	}
	return class
}
