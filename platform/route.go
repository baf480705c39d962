package platform

import (
	"cmp"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Unreachable is the RouteTime without a route: longer than any run, and small enough that sums
// of a few do not overflow.
const Unreachable time.Duration = 1 << 59

// LinkUse is a flow's share of a link that its route crosses: Times the flow's own rate.
type LinkUse struct {
	Link      LinkID
	Direction int32 // of a duplex link, 0 or 1; of any other 0
	Times     int32
}

// path is the way from one memory to another.
type path struct {
	links       []LinkID // in order; nil means that there is no way
	uses        []LinkUse
	between     []MemoryID // the memories between the two, in order
	stops       []MemoryID // the host memories of these, and the last one: see Stops
	latency     time.Duration
	bytesPerSec float64 // of one flow with nothing else on the way

	engineIn, engineOut bool // a copy takes a limited engine of its destination, of its source
}

// Route returns the links from one memory to another, in order. A pair without a route of its own
// goes through other memories, by as few routes as possible (as a copy between two GPUs without a
// direct link is staged). The result is empty within one memory; ok is false where no way exists.
// The caller must not change the result.
func (p *Platform) Route(from, to MemoryID) (links []LinkID, ok bool) {
	if from == to {
		return nil, true
	}
	links = p.path(from, to).links
	return links, links != nil
}

// LinkUses returns the links of a route, each once, sorted by link and direction. A duplex link
// appears once for each direction that is crossed. The result is empty where Route's is. The
// caller must not change it.
func (p *Platform) LinkUses(from, to MemoryID) []LinkUse { return p.path(from, to).uses }

// RouteTime is how long bytes take on an otherwise idle route. The latencies of the links add,
// and the slowest link sets the pace. A link crossed several times in one direction is as many
// times slower, unless it is a fatpipe. RouteTime is zero within one memory and Unreachable
// without a route.
func (p *Platform) RouteTime(from, to MemoryID, bytes int64) time.Duration {
	if from == to {
		return 0
	}
	way := p.path(from, to)
	if way.links == nil {
		return Unreachable
	}
	secs := float64(bytes) / way.bytesPerSec
	return min(way.latency+roundUpNs(float64(secs*1e9)), Unreachable)
}

// ways finds the way between two memories when it is first asked for, and keeps it.
type ways struct {
	p      *Platform
	o      orientation
	net    *network
	hosts  []MemoryID            // by node: its host memory
	host   MemoryID              // of all
	first  []MemoryID            // by node: its first memory; the last entry is the number of memories
	routes [][]int32             // by memory: the given routes within its node
	given  map[[2]MemoryID]int32 // the given routes between nodes
	exits  [][]MemoryID          // by node: memories with wires or given routes to other nodes
	from   []waysFrom            // by memory
}

// waysFrom are the ways from a memory: those within its node by number there, others in a map.
type waysFrom struct {
	hops func() []hop // to the memories of the node
	near []atomic.Pointer[path]
	far  sync.Map
}

func newWays(p *Platform) *ways {
	n, nodes := len(p.Memories), max(1, len(p.Nodes))
	w := &ways{p: p, o: newOrientation(p), net: newNetwork(p), hosts: make([]MemoryID, nodes), host: p.hostOfNode(p.firstNode()),
		first: make([]MemoryID, nodes+1), routes: make([][]int32, n), given: map[[2]MemoryID]int32{}, exits: make([][]MemoryID, nodes), from: make([]waysFrom, n)}
	exit := make([]bool, n)
	for i := range p.Routes {
		r := &p.Routes[i]
		if p.NodeOf(r.From) == p.NodeOf(r.To) {
			w.routes[r.From], w.routes[r.To] = append(w.routes[r.From], int32(i)), append(w.routes[r.To], int32(i))
			continue
		}
		exit[r.From], exit[r.To] = true, true
		w.given[[2]MemoryID{r.From, r.To}] = int32(i)
		if !r.OneWay {
			w.given[[2]MemoryID{r.To, r.From}] = int32(i)
		}
	}
	for node := range w.hosts {
		w.hosts[node] = p.hostOfNode(NodeID(node))
	}
	for m := range p.Memories {
		node := p.NodeOf(MemoryID(m))
		w.first[node+1] = MemoryID(m) + 1
		if exit[m] || w.net.has(MemoryID(m)) {
			w.exits[node] = append(w.exits[node], MemoryID(m))
		}
	}
	for m := range w.from {
		node := p.NodeOf(MemoryID(m))
		w.from[m].near = make([]atomic.Pointer[path], w.first[node+1]-w.first[node])
		w.from[m].hops = sync.OnceValue(func() []hop { return w.walk(MemoryID(m)) })
	}
	return w
}

// path is the way between two memories; within one there is nothing on it.
func (p *Platform) path(from, to MemoryID) *path {
	w := p.ways
	if w == nil {
		return newWays(p).find(from, to)
	}
	f := &w.from[from]
	if i := int(to - w.first[p.Memories[from].Node]); uint(i) < uint(len(f.near)) {
		way := f.near[i].Load()
		if way == nil {
			way = w.find(from, to)
			f.near[i].Store(way)
		}
		return way
	}
	way, ok := f.far.Load(to)
	if !ok {
		way, _ = f.far.LoadOrStore(to, w.find(from, to))
	}
	return way.(*path)
}

// leg is a part of a way between two memories: a given route, or wires and switches.
type leg struct {
	to         MemoryID
	links      []LinkID
	directions []int32 // in which each is crossed, if it is a duplex link
}

// find makes the way between two memories.
func (w *ways) find(from, to MemoryID) *path {
	var legs []leg
	switch {
	case from == to:
	case w.p.NodeOf(from) == w.p.NodeOf(to):
		legs, _ = w.within(nil, from, to)
	default:
		legs = w.between(from, to)
	}
	if len(legs) == 0 {
		return &path{}
	}
	return w.follow(legs, from, to)
}

// within adds the legs between two memories of a node.
func (w *ways) within(legs []leg, from, to MemoryID) (all []leg, ok bool) {
	hops, first := w.from[from].hops(), w.first[w.p.NodeOf(from)]
	if from != to && hops[to-first].route < 0 {
		return nil, false
	}
	added := len(legs)
	for at := to; at != from; at = hops[at-first].from {
		h := hops[at-first]
		links, directions := w.o.along(&w.p.Routes[h.route], h.from)
		legs = append(legs, leg{at, links, directions})
	}
	slices.Reverse(legs[added:])
	return legs, true
}

// hopsBetween counts the legs between two memories of a node.
func (w *ways) hopsBetween(from, to MemoryID) (n int, ok bool) {
	hops, first := w.from[from].hops(), w.first[w.p.NodeOf(from)]
	for at := to; at != from; at = hops[at-first].from {
		if hops[at-first].route < 0 {
			return 0, false
		}
		n++
	}
	return n, true
}

// between returns the legs between memories of two nodes: within the first, one between the nodes, and within the second. As few as
// possible; nil without a way.
func (w *ways) between(from, to MemoryID) (legs []leg) {
	type pair struct {
		out, in MemoryID
		legs    int // within the two nodes
	}
	var pairs []pair
	for _, out := range w.exits[w.p.NodeOf(from)] {
		before, ok := w.hopsBetween(from, out)
		for _, in := range w.exits[w.p.NodeOf(to)] {
			if after, reached := w.hopsBetween(in, to); ok && reached {
				pairs = append(pairs, pair{out, in, before + after})
			}
		}
	}
	slices.SortStableFunc(pairs, func(a, b pair) int { return cmp.Compare(a.legs, b.legs) })
	for _, p := range pairs {
		if cross, ok := w.cross(p.out, p.in); ok {
			legs, _ = w.within(nil, from, p.out)
			legs, _ = w.within(append(legs, cross), p.in, to)
			return legs
		}
	}
	return nil
}

// cross is the leg between memories of two nodes: the given route, else through the network.
func (w *ways) cross(from, to MemoryID) (l leg, ok bool) {
	if route, ok := w.given[[2]MemoryID{from, to}]; ok {
		links, directions := w.o.along(&w.p.Routes[route], from)
		return leg{to, links, directions}, true
	}
	if !w.net.has(from) || !w.net.has(to) {
		return leg{}, false
	}
	links, directions := w.net.along(from, to)
	return leg{to, links, directions}, links != nil
}

// follow sums legs up.
func (w *ways) follow(legs []leg, from, to MemoryID) *path {
	p, way := w.p, &path{bytesPerSec: math.Inf(1)}
	times := map[LinkUse]int32{}
	for _, leg := range legs {
		way.links = append(way.links, leg.links...)
		for i, l := range leg.links {
			use := LinkUse{Link: l}
			if p.Links[l].Sharing == Duplex {
				use.Direction = leg.directions[i]
			}
			times[use]++
			way.latency = min(way.latency+p.Links[l].Latency, Unreachable)
		}
		if leg.to != to {
			way.between = append(way.between, leg.to)
		}
	}
	passesHost := false
	for _, m := range way.between {
		if w.hosts[p.NodeOf(m)] == m {
			way.stops, passesHost = append(way.stops, m), true
		}
	}
	way.stops = append(way.stops, to)
	way.engineIn, way.engineOut = p.enginesTaken(from, to, passesHost)
	for use, n := range times {
		use.Times = n
		way.uses = append(way.uses, use)
	}
	slices.SortFunc(way.uses, func(a, b LinkUse) int {
		return cmp.Or(cmp.Compare(a.Link, b.Link), cmp.Compare(a.Direction, b.Direction))
	})
	for _, use := range way.uses {
		l := &p.Links[use.Link]
		share := l.BandwidthBytesPerSec
		if l.Sharing != Fatpipe {
			share /= float64(use.Times)
		}
		way.bytesPerSec = min(way.bytesPerSec, share)
	}
	return way
}

// hop is the last step to a memory: the memory before, and the route. Route -1 means that it is not reached.
type hop struct {
	from  MemoryID
	route int32
}

// walk goes breadth first from a memory over the given routes of its node, in their order. It
// returns the last hop to each other memory of the node.
func (w *ways) walk(from MemoryID) []hop {
	node := w.p.NodeOf(from)
	first := w.first[node]
	hops := make([]hop, w.first[node+1]-first)
	for m := range hops {
		hops[m].route = -1
	}
	queue := []MemoryID{from}
	for ; len(queue) > 0; queue = queue[1:] {
		at := queue[0]
		for _, i := range w.routes[at] {
			r := &w.p.Routes[i]
			next := r.To
			if r.To == at && !r.OneWay {
				next = r.From
			} else if r.From != at {
				continue
			}
			if next != from && hops[next-first].route < 0 {
				hops[next-first] = hop{at, i}
				queue = append(queue, next)
			}
		}
	}
	return hops
}

// Stops are the memories at which copies from one memory to another end, in order: the host memories between the two,
// since no engine reaches further, and the last one. There are none without a way and within one memory. The caller must not
// change the result.
func (p *Platform) Stops(from, to MemoryID) []MemoryID { return p.path(from, to).stops }

// Passes reports whether the route from one memory to another goes through a third one.
func (p *Platform) Passes(from, to, through MemoryID) bool {
	return slices.Contains(p.path(from, to).between, through)
}
