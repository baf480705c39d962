package platform

import (
	"slices"
	"time"
)

// Unreachable is what RouteTime answers where there is no route: longer than any
// run, and small enough that sums of a few do not overflow.
const Unreachable time.Duration = 1 << 59

// Route returns the links from one memory to another, in order. Where no route is
// given for the pair it goes through other memories, by as few routes as
// possible (as a copy between two GPUs without a direct link is staged). It is
// empty within one memory, and ok is false where there is no way at all.
// The caller must not change the result.
func (p *Platform) Route(from, to MemoryID) (links []LinkID, ok bool) {
	if from == to {
		return nil, true
	}
	if p.routes != nil {
		links = p.routes[int(from)*len(p.Memories)+int(to)]
	} else {
		links = p.routesFrom(from)[to]
	}
	return links, links != nil
}

// RouteTime is how long bytes take on the route with nothing else on it: the
// latencies of the links add and the slowest link sets the pace. It is zero
// within one memory and Unreachable where there is no route.
func (p *Platform) RouteTime(from, to MemoryID, bytes int64) time.Duration {
	links, ok := p.Route(from, to)
	if !ok {
		return Unreachable
	}
	var latency time.Duration
	secs := 0.0
	for _, l := range links {
		latency += p.Links[l].Latency
		secs = max(secs, float64(bytes)/p.Links[l].BandwidthBytesPerSec)
	}
	return min(latency+roundUpNs(float64(secs*1e9)), Unreachable)
}

// LinkTime is how long bytes take through one link with nothing else on it, its latency
// not counted.
func (p *Platform) LinkTime(l LinkID, bytes int64) time.Duration {
	return min(roundUpNs(float64(bytes)/p.Links[l].BandwidthBytesPerSec*1e9), Unreachable)
}

// allRoutes tabulates Route.
func (p *Platform) allRoutes() [][]LinkID {
	var table [][]LinkID
	for from := range p.Memories {
		table = append(table, p.routesFrom(MemoryID(from))...)
	}
	return table
}

// routesFrom walks breadth first over the given routes, in their order; the
// entries of from itself and of memories out of reach stay nil.
func (p *Platform) routesFrom(from MemoryID) [][]LinkID {
	found := make([][]LinkID, len(p.Memories))
	queue := []MemoryID{from}
	for len(queue) > 0 {
		at := queue[0]
		queue = queue[1:]
		for i := range p.Routes {
			next, hop := p.Routes[i].step(at)
			if hop == nil || next == from || found[next] != nil {
				continue
			}
			found[next] = slices.Concat(found[at], hop)
			queue = append(queue, next)
		}
	}
	return found
}

// step returns where the route leads from a memory and its links in that
// direction; nil when it does not start there.
func (r *Route) step(at MemoryID) (next MemoryID, links []LinkID) {
	switch {
	case r.From == at:
		return r.To, r.Links
	case r.To == at && !r.OneWay:
		links = slices.Clone(r.Links)
		slices.Reverse(links)
		return r.From, links
	}
	return 0, nil
}

// Passes reports whether the route from one memory to another goes through a third one.
func (p *Platform) Passes(from, to, through MemoryID) bool {
	const unseen MemoryID = -1
	before := make([]MemoryID, len(p.Memories)) // on the way from there
	for m := range before {
		before[m] = unseen
	}
	before[from] = from
	for queue := []MemoryID{from}; len(queue) > 0; queue = queue[1:] {
		for i := range p.Routes {
			if next, hop := p.Routes[i].step(queue[0]); hop != nil && before[next] == unseen {
				before[next] = queue[0]
				queue = append(queue, next)
			}
		}
	}
	if before[to] == unseen {
		return false
	}
	for at := before[to]; at != from; at = before[at] {
		if at == through {
			return true
		}
	}
	return false
}
