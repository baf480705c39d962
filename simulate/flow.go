package simulate

import (
	"cmp"
	"encoding/binary"
	"math"
	"slices"
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
// Where the platform says so (BySize), flows have weights: the rates over the weights rise together. A weight is one over the
// time of some bytes on the route, as in SimGrid's models CM02 and LV08.
//
// Bertsekas and Gallager, Data Networks, second edition 1992, section 6.5.2. Velho, Schnorr, Casanova, Legrand, On the validity of flow-level TCP network
// models for grid and cloud simulations, ACM TOMACS 23(4), 2013, for the weights.
//
// A worked system. Links a, b, c of 1, 2 and 2 B/s. Flow 1 crosses a, b and c,
// flow 2 crosses a, flow 3 crosses b, flow 4 crosses c, and flow 5 crosses c.
// All rates rise together until a is full at 1/2; flows 1 and 2 stop there. The remaining
// capacities are 3/2 on b for flow 3 and 3/2 on c for flows 4 and 5. So those rise to 3/4, and c
// is full. Flow 3 goes on alone to 3/2.
//
// Flows that cross the same links have equal rates, so they are one class. A class counts the bytes served to each of
// its flows since the class was last empty. A flow ends when that count has grown by its own bytes since it joined.
//
// A flow that joins or ends changes only rates of its component: the classes that it can reach from link to link. So
// only these are solved again, and only a class whose rate has changed gets another count and another end. Within a
// component the link with the lowest share, of its free capacity among the flows that still rise, fills first. A share
// never sinks when other flows stop, so a heap with shares of earlier moments finds this link.
type network struct {
	p        *platform.Platform
	at       time.Duration // of the last event
	classes  []*class
	routes   []route
	byRoute  map[[2]platform.MemoryID]int32 // index into routes
	byUses   map[string]*class
	links    []resource
	changed  []*class // whose flows have changed since the rates were found
	ends     []*class // those with flows and rates, a heap by the end of the first flow
	reached  []*class // scratch of solve
	crossed  []int32  // likewise: resources
	filling  ready.Heap[fill]
	solution int32 // counts calls of solve
}

// route is the way from one memory to another.
type route struct {
	from, to platform.MemoryID
	latency  time.Duration
	class    *class // nil before the first flow
}

// resource is a link, or one direction of a duplex link.
type resource struct {
	capacity float64
	classes  []*class // that cross it and have flows
	solution int32    // the last one that reached it
	room     float64  // while filling: capacity that no stopped flow uses
	users    float64  // while filling: weights of crossings by flows that still rise
}

// class is the flows over the same links.
type class struct {
	crosses  []crossing
	cap      float64       // bytes per second that a flow can have on fatpipes
	weight   float64       // of each flow
	since    time.Duration // when the rate was found
	rate     float64       // of each flow
	served   float64       // bytes per flow since the class was last empty, until since
	flows    ready.Heap[flowEnd]
	end      time.Duration // of the first flow
	place    int           // in the heap of ends; -1: not there
	number   int32         // among all classes
	solution int32         // the last one that reached it
	rises    bool          // while filling
	changed  bool
}

// crossing is how many times the route of a class crosses a resource.
type crossing struct {
	resource int32
	at       int32 // place of the class in the list of the resource
	times    float64
}

// flowEnd is a flow and the count of served bytes at which it ends.
type flowEnd struct {
	at    float64
	order int64 // ties: first come, first out
	id    int32
}

// fill is the rate of a flow of weight 1 where a resource is full, or a class at its cap.
type fill struct {
	rate     float64
	resource int32 // -1: a class
	class    int32
}

func newNetwork(p *platform.Platform) *network {
	n := &network{p: p, byRoute: map[[2]platform.MemoryID]int32{}, byUses: map[string]*class{}, links: make([]resource, 2*len(p.Links))}
	for l := range p.Links {
		n.links[2*l].capacity, n.links[2*l+1].capacity = p.Links[l].BandwidthBytesPerSec, p.Links[l].BandwidthBytesPerSec
	}
	return n
}

// route is the number of a route, and the time until its bytes begin to move.
func (n *network) route(from, to platform.MemoryID) (number int32, latency time.Duration) {
	number, known := n.byRoute[[2]platform.MemoryID{from, to}]
	if !known {
		number = int32(len(n.routes))
		n.byRoute[[2]platform.MemoryID{from, to}] = number
		n.routes = append(n.routes, route{from: from, to: to, latency: n.p.RouteTime(from, to, 0)})
	}
	return number, n.routes[number].latency
}

// join adds a flow over a route at a time that is not before the previous one.
func (n *network) join(at time.Duration, number int32, bytes int64, id int32, order int64) {
	n.serve(at)
	of := &n.routes[number]
	if of.class == nil {
		of.class = n.classOf(of.from, of.to)
	}
	c := of.class
	if len(c.flows) == 0 {
		c.served, c.since, c.rate = 0, at, 0
		for i := range c.crosses {
			r := &n.links[c.crosses[i].resource]
			c.crosses[i].at = int32(len(r.classes))
			r.classes = append(r.classes, c)
		}
	}
	c.flows.Push(flowEnd{c.servedAt(at) + float64(bytes), order, id})
	n.change(c)
}

// classOf is the class of the flows over the links of a route.
func (n *network) classOf(from, to platform.MemoryID) *class {
	c := &class{cap: math.Inf(1), weight: 1, place: -1, number: int32(len(n.classes))}
	if n.p.BySize {
		c.weight = 1 / n.p.FlowTime(from, to, n.p.ShareBytes)
	}
	for _, use := range n.p.LinkUses(from, to) {
		if l := &n.p.Links[use.Link]; l.Sharing == platform.Fatpipe {
			c.cap = min(c.cap, l.BandwidthBytesPerSec)
			continue
		}
		c.crosses = append(c.crosses, crossing{resource: 2*int32(use.Link) + use.Direction, times: float64(use.Times)})
	}
	key := binary.AppendUvarint(binary.AppendUvarint(nil, math.Float64bits(c.cap)), math.Float64bits(c.weight))
	for _, x := range c.crosses {
		key = binary.AppendUvarint(binary.AppendUvarint(key, uint64(x.resource)), uint64(x.times))
	}
	if known := n.byUses[string(key)]; known != nil {
		return known
	}
	n.byUses[string(key)] = c
	n.classes = append(n.classes, c)
	return c
}

// change notes that the flows of a class are others.
func (n *network) change(c *class) {
	if !c.changed {
		c.changed = true
		n.changed = append(n.changed, c)
	}
}

// endTolerance, relative to the served bytes, absorbs the rounding of sums of rates times
// intervals. It is far below a byte for any transfer.
const endTolerance = 1e-12

// ended removes the flows that are completely served at a time and passes their identities to
// done.
func (n *network) ended(at time.Duration, done func(id int32)) {
	n.serve(at)
	for len(n.ends) > 0 && n.ends[0].end <= at {
		c := n.ends[0]
		c.serve(at)
		for len(c.flows) > 0 && c.flows[0].at <= c.served+float64(c.served*endTolerance) {
			done(c.flows.Pop().id)
			n.change(c)
		}
		if !c.changed { // rounding left a trifle
			c.findEnd()
			n.sift(c)
			continue
		}
		n.remove(c)
		if len(c.flows) == 0 {
			n.leave(c)
		}
	}
}

// leave takes a class without flows from its resources.
func (n *network) leave(c *class) {
	for _, x := range c.crosses {
		r := &n.links[x.resource]
		last := len(r.classes) - 1
		moved := r.classes[last]
		r.classes[x.at], r.classes = moved, r.classes[:last]
		i := slices.IndexFunc(moved.crosses, func(of crossing) bool { return of.resource == x.resource })
		moved.crosses[i].at = x.at
	}
}

// next is when the next flow ends; ok is false if there is none.
func (n *network) next() (at time.Duration, ok bool) {
	if len(n.changed) > 0 {
		n.solve()
	}
	if len(n.ends) == 0 {
		return 0, false
	}
	return n.ends[0].end, true
}

// serve moves to a time. Rates are found for the time before it.
func (n *network) serve(at time.Duration) {
	if at != n.at && len(n.changed) > 0 {
		n.solve()
	}
	n.at = at
}

// servedAt is the count of bytes at a time since which the rate holds.
func (c *class) servedAt(at time.Duration) float64 {
	return c.served + float64(c.rate*(float64(at-c.since)/1e9))
}

func (c *class) serve(at time.Duration) { c.served, c.since = c.servedAt(at), at }

// findEnd finds the end of the first flow.
func (c *class) findEnd() {
	c.end = c.since + max(1, roundUp((c.flows[0].at-c.served)/c.rate))
}

// solve finds the max-min fair rates of the components in which flows have changed, by progressive filling.
func (n *network) solve() {
	n.solution++
	for _, from := range n.changed {
		n.reach(from)
		n.fill()
	}
	for _, c := range n.changed {
		c.changed = false
	}
	n.changed = n.changed[:0]
}

// reach finds the component of a class, if it was not reached in this solution.
func (n *network) reach(from *class) {
	n.reached, n.crossed = n.reached[:0], n.crossed[:0]
	add := func(c *class) {
		if c.solution != n.solution {
			c.solution = n.solution
			n.reached = append(n.reached, c)
		}
	}
	add(from)
	for i := 0; i < len(n.reached); i++ {
		c := n.reached[i]
		c.rises = len(c.flows) > 0
		for _, x := range c.crosses {
			r := &n.links[x.resource]
			if r.solution != n.solution {
				r.solution, r.room, r.users = n.solution, r.capacity, 0
				n.crossed = append(n.crossed, x.resource)
				for _, other := range r.classes {
					add(other)
				}
			}
			r.users += c.users(x)
		}
	}
}

// fill gives the classes of a component their rates.
func (n *network) fill() {
	n.filling = n.filling[:0]
	for _, id := range n.crossed {
		if r := &n.links[id]; r.users > 0 {
			n.filling.Push(fill{r.room / r.users, id, -1})
		}
	}
	for _, c := range n.reached {
		if c.rises && (len(c.crosses) == 0 || !math.IsInf(c.cap, 1)) {
			n.filling.Push(fill{c.cap / c.weight, -1, c.number})
		}
	}
	level := 0.0
	for len(n.filling) > 0 {
		first := n.filling.Pop()
		if first.resource < 0 {
			if c := n.classes[first.class]; c.rises {
				level = max(level, first.rate)
				n.stop(c, level)
			}
			continue
		}
		r := &n.links[first.resource]
		if r.users <= 0 {
			continue
		}
		if now := r.room / r.users; now > first.rate {
			n.filling.Push(fill{now, first.resource, -1})
			continue
		}
		level = max(level, first.rate) // rounding must not let the level sink
		for _, c := range r.classes {
			if c.rises {
				n.stop(c, level)
			}
		}
	}
}

// users are the weights of a crossing by all flows of the class.
func (c *class) users(x crossing) float64 {
	return float64(x.times*float64(len(c.flows))) * c.weight
}

// stop gives a class its rate, for a rate of flows of weight 1.
func (n *network) stop(c *class, level float64) {
	c.rises = false
	for _, x := range c.crosses {
		r := &n.links[x.resource]
		users := c.users(x)
		r.room -= float64(level * users)
		r.users -= users
	}
	rate := float64(level * c.weight)
	if rate == c.rate && !c.changed {
		return
	}
	c.serve(n.at)
	c.rate = rate
	c.findEnd()
	n.sift(c)
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

// Before orders fills by their rates.
func (a fill) Before(b fill) bool {
	return cmp.Or(cmp.Compare(a.rate, b.rate), cmp.Compare(a.resource, b.resource), cmp.Compare(a.class, b.class)) < 0
}
