package platform

import (
	"cmp"
	"math"
	"slices"
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
	via         []MemoryID // the memories between the two, the last one first
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

// path is the way between two memories; within one there is nothing on it.
func (p *Platform) path(from, to MemoryID) path {
	if p.paths != nil {
		return p.paths[int(from)*len(p.Memories)+int(to)]
	}
	return p.pathAlong(p.walk(from), from, to, newOrientation(p))
}

// allPaths tabulates path.
func (p *Platform) allPaths() []path {
	n := len(p.Memories)
	table, o := make([]path, n*n), newOrientation(p)
	for from := range n {
		hops := p.walk(MemoryID(from))
		for to := range n {
			table[from*n+to] = p.pathAlong(hops, MemoryID(from), MemoryID(to), o)
		}
	}
	return table
}

// pathAlong follows the hops from a memory.
func (p *Platform) pathAlong(hops []hop, from, to MemoryID, o orientation) path {
	if from == to || hops[to].route < 0 {
		return path{}
	}
	way := path{bytesPerSec: math.Inf(1)}
	for at := hops[to].from; at != from; at = hops[at].from {
		way.via = append(way.via, at)
	}
	times := map[LinkUse]int32{}
	for _, at := range slices.Backward(append([]MemoryID{to}, way.via...)) {
		links, directions := o.along(&p.Routes[hops[at].route], hops[at].from)
		way.links = append(way.links, links...)
		for i, l := range links {
			use := LinkUse{Link: l}
			if p.Links[l].Sharing == Duplex {
				use.Direction = directions[i]
			}
			times[use]++
			way.latency = min(way.latency+p.Links[l].Latency, Unreachable)
		}
	}
	way.engineIn, way.engineOut = p.enginesTaken(from, to, slices.Contains(way.via, p.HostMemory()))
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

// walk goes breadth first from a memory over the given routes, in their order. It returns the
// last hop to each other memory.
func (p *Platform) walk(from MemoryID) []hop {
	hops := make([]hop, len(p.Memories))
	for m := range hops {
		hops[m].route = -1
	}
	queue := []MemoryID{from}
	for ; len(queue) > 0; queue = queue[1:] {
		at := queue[0]
		for i, r := range p.Routes {
			var next MemoryID
			switch {
			case r.From == at:
				next = r.To
			case r.To == at && !r.OneWay:
				next = r.From
			default:
				continue
			}
			if next != from && hops[next].route < 0 {
				hops[next] = hop{at, int32(i)}
				queue = append(queue, next)
			}
		}
	}
	return hops
}

// Passes reports whether the route from one memory to another goes through a third one.
func (p *Platform) Passes(from, to, through MemoryID) bool {
	return slices.Contains(p.path(from, to).via, through)
}
