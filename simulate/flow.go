package simulate

import (
	"cmp"
	"math"
	"time"

	"dahl/platform"
	"dahl/schedule/ready"
)

// Max-min fair sharing of links.
//
// Theory. Flows f cross resources r of capacity C(r). A shared link is one resource, a duplex
// link one per direction, and a fatpipe none: every flow may use its whole bandwidth, so the link
// only caps each flow. Rates x(f) are max-min fair if no rate can grow without lowering another
// that is not larger. They are unique. Progressive filling finds them: raise all rates together
// until a resource is full or a flow reaches its cap; flows stopped by this keep their rate; go
// on with the others.
//
// Bertsekas and Gallager, Data Networks, second edition 1992, section 6.5.2.
//
// A worked system. Links a, b, c of 1, 2 and 2 B/s. Flow 1 crosses a, b and c,
// flow 2 crosses a, flow 3 crosses b, flow 4 crosses c, and flow 5 crosses c.
// All rates rise together until a is full at 1/2; flows 1 and 2 stop there. The remaining
// capacities are 3/2 on b for flow 3 and 3/2 on c for flows 4 and 5. So those rise to 3/4, and c
// is full. Flow 3 goes on alone to 3/2.
//
// All flows between the same two memories cross the same links and have equal rates, so they are
// one class. A change therefore costs the number of classes times the number of links, not the
// number of flows. A class counts the bytes served to each of its flows since the class was last
// empty. A flow ends when that count has grown by its own bytes since it joined.
type network struct {
	p        *platform.Platform
	at       time.Duration // to which the classes have been served
	classes  []*class
	byRoute  []*class // by pair of memories; nil means none yet
	capacity []float64

	room  []float64 // by resource, while filling: capacity that no stopped flow uses
	users []float64 // by resource, while filling: crossings by flows that still rise
	share []float64 // by resource, while filling: the rate at which it is full
	stale bool      // the set of flows changed since the rates were found

	busy []*class // those that had flows when the rates were found
	open []*class // scratch of solve
}

// class is the flows from one memory to another.
type class struct {
	crosses []crossing
	cap     float64 // bytes per second that a flow can have on fatpipes
	rate    float64 // of each flow
	served  float64 // bytes per flow since the class was last empty
	flows   ready.Heap[flowEnd]
}

// crossing is how many times the route of a class crosses a resource.
type crossing struct {
	resource int32
	times    float64
}

// flowEnd is a flow and the count of served bytes at which it ends.
type flowEnd struct {
	at    float64
	order int64 // ties: first come, first out
	id    int32
}

func newNetwork(p *platform.Platform) *network {
	m := len(p.Memories)
	n := &network{p: p, byRoute: make([]*class, m*m),
		capacity: make([]float64, 2*len(p.Links)), room: make([]float64, 2*len(p.Links)), users: make([]float64, 2*len(p.Links)), share: make([]float64, 2*len(p.Links))}
	for l := range p.Links {
		n.capacity[2*l], n.capacity[2*l+1] = p.Links[l].BandwidthBytesPerSec, p.Links[l].BandwidthBytesPerSec
	}
	return n
}

// join adds a flow at a time that is not before the previous one.
func (n *network) join(at time.Duration, from, to platform.MemoryID, bytes int64, id int32, order int64) {
	n.serve(at)
	route := &n.byRoute[int(from)*len(n.p.Memories)+int(to)]
	if *route == nil {
		*route = n.newClass(from, to)
		n.classes = append(n.classes, *route)
	}
	c := *route
	if len(c.flows) == 0 {
		c.served = 0
	}
	c.flows.Push(flowEnd{c.served + float64(bytes), order, id})
	n.stale = true
}

func (n *network) newClass(from, to platform.MemoryID) *class {
	c := &class{cap: math.Inf(1)}
	for _, use := range n.p.LinkUses(from, to) {
		if l := &n.p.Links[use.Link]; l.Sharing == platform.Fatpipe {
			c.cap = min(c.cap, l.BandwidthBytesPerSec)
			continue
		}
		c.crosses = append(c.crosses, crossing{2*int32(use.Link) + use.Direction, float64(use.Times)})
	}
	return c
}

// endTolerance, relative to the served bytes, absorbs the rounding of sums of rates times
// intervals. It is far below a byte for any transfer.
const endTolerance = 1e-12

// ended removes the flows that are completely served at a time and passes their identities to
// done.
func (n *network) ended(at time.Duration, done func(id int32)) {
	n.serve(at)
	for _, c := range n.busy {
		for len(c.flows) > 0 && c.flows[0].at <= c.served+float64(c.served*endTolerance) {
			done(c.flows.Pop().id)
			n.stale = true
		}
	}
}

// next is when the next flow ends; ok is false if there is none.
func (n *network) next() (at time.Duration, ok bool) {
	if n.stale {
		n.solve()
	}
	first := math.Inf(1) // seconds from now
	for _, c := range n.busy {
		if len(c.flows) > 0 {
			first = min(first, (c.flows[0].at-c.served)/c.rate)
		}
	}
	if math.IsInf(first, 1) {
		return 0, false
	}
	return n.at + max(1, roundUp(first)), true
}

// serve advances the classes to a time.
func (n *network) serve(at time.Duration) {
	if at == n.at {
		return
	}
	if n.stale {
		n.solve()
	}
	seconds := float64(at-n.at) / 1e9
	for _, c := range n.busy {
		if len(c.flows) > 0 {
			c.served += float64(c.rate * seconds)
		}
	}
	n.at = at
}

// solve finds the max-min fair rates by progressive filling.
func (n *network) solve() {
	n.stale = false
	copy(n.room, n.capacity)
	clear(n.users)
	n.busy = n.busy[:0]
	for _, c := range n.classes {
		if len(c.flows) == 0 {
			continue
		}
		n.busy = append(n.busy, c)
		for _, x := range c.crosses {
			n.users[x.resource] += float64(x.times * float64(len(c.flows)))
		}
	}
	n.open = append(n.open[:0], n.busy...)
	level := 0.0
	for len(n.open) > 0 {
		for r, users := range n.users {
			if users > 0 {
				n.share[r] = n.room[r] / users
			}
		}
		lowest := math.Inf(1)
		for _, c := range n.open {
			c.rate = c.cap
			for _, x := range c.crosses {
				c.rate = min(c.rate, n.share[x.resource])
			}
			lowest = min(lowest, c.rate)
		}
		level = max(level, lowest) // rounding must not let the level sink
		rise := n.open[:0]
		for _, c := range n.open {
			if c.rate > level {
				rise = append(rise, c)
				continue
			}
			c.rate = level // it stops here and keeps this rate
			for _, x := range c.crosses {
				users := float64(x.times * float64(len(c.flows)))
				n.room[x.resource] -= float64(level * users)
				n.users[x.resource] -= users
			}
		}
		n.open = rise
	}
}

// roundUp turns seconds into a Duration, rounded up to the next nanosecond. The rounding error of
// float64 above a whole number does not count.
func roundUp(seconds float64) time.Duration {
	ns := float64(seconds * 1e9)
	if whole := math.Round(ns); math.Abs(ns-whole) <= 1e-9*max(1, whole) {
		ns = whole
	}
	return time.Duration(math.Ceil(min(ns, float64(platform.Unreachable))))
}

// Before orders flows by their ends, then by when they came.
func (a flowEnd) Before(b flowEnd) bool {
	return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.order, b.order)) < 0
}
