package platform

import (
	"fmt"
	"slices"
	"sync"
)

// Port is an end of a wire: a memory, or a switch.
type Port int32

// SwitchPort is the port of a switch, which is one of Platform.Links.
func SwitchPort(l LinkID) Port { return ^Port(l) }

// switchLink is the switch of a port; ok is false for a memory.
func (at Port) switchLink() (l LinkID, ok bool) { return LinkID(^at), at < 0 }

// Wire is a link of a network with its two ends. A link that is no wire has none: it is part of
// the routes that name it.
type Wire struct {
	Link LinkID
	Ends [2]Port
	// Order decides among equally short ways: they go on through the wires of lowest order.
	Order int
}

// network finds ways between memories with wires.
//
// A way has as few wires as possible. Where several wires lead on, only wires of the lowest order
// count. The k-th of n such wires is taken by messages to a node whose number is k modulo n, so that the
// uplinks of a tree are shared out by destination (E. Zahavi, Fat-trees routing and node ordering
// providing contention free traffic for MPI global collectives, 2011). On a torus whose
// dimensions have ascending orders this is routing by dimension order.
type network struct {
	p     *Platform
	wires [][]int32      // by vertex: the wires there
	port  []Port         // by vertex
	ends  [][2]int32     // by wire: its vertices
	ports map[Port]int32 // the vertices
	far   []func() []int32
}

func newNetwork(p *Platform) *network {
	n := &network{p: p, ends: make([][2]int32, len(p.Wires)), ports: map[Port]int32{}}
	for i := range p.Wires {
		for side, end := range p.Wires[i].Ends {
			v, known := n.ports[end]
			if !known {
				v = int32(len(n.wires))
				n.ports[end], n.wires, n.port = v, append(n.wires, nil), append(n.port, end)
			}
			n.wires[v], n.ends[i][side] = append(n.wires[v], int32(i)), v
		}
	}
	for v := range n.wires {
		n.far = append(n.far, sync.OnceValue(func() []int32 { return n.distances(int32(v)) }))
	}
	return n
}

// has reports whether a memory has a wire.
func (n *network) has(m MemoryID) bool {
	_, ok := n.ports[Port(m)]
	return ok
}

// other is the vertex at the other end of a wire.
func (n *network) other(wire, at int32) int32 {
	if a := n.ends[wire][0]; a != at {
		return a
	}
	return n.ends[wire][1]
}

// distances are the numbers of wires from every vertex to one of a memory: -1 where no way leads. Ways
// lead through switches, and through no other memory.
func (n *network) distances(to int32) []int32 {
	far := slices.Repeat([]int32{-1}, len(n.wires))
	far[to] = 0
	for queue := []int32{to}; len(queue) > 0; queue = queue[1:] {
		at := queue[0]
		for _, wire := range n.wires[at] {
			next := n.other(wire, at)
			if far[next] >= 0 {
				continue
			}
			far[next] = far[at] + 1
			if n.port[next] < 0 { // a switch
				queue = append(queue, next)
			}
		}
	}
	return far
}

// along returns the links between two memories, each wire with its direction and the switch behind it; nil without a way.
func (n *network) along(from, to MemoryID) (links []LinkID, directions []int32) {
	at, last := n.ports[Port(from)], n.ports[Port(to)]
	far := n.far[last]()
	if far[at] < 0 {
		return nil, nil
	}
	for at != last {
		wire := n.next(at, far, n.p.NodeOf(to))
		w := &n.p.Wires[wire]
		direction := int32(0)
		if n.ends[wire][0] != at {
			direction = 1
		}
		links, directions = append(links, w.Link), append(directions, direction)
		if l, ok := w.Ends[1-direction].switchLink(); ok {
			links, directions = append(links, l), append(directions, 0)
		}
		at = n.other(wire, at)
	}
	return links, directions
}

// next is the wire from a vertex by which messages to a node go on.
func (n *network) next(at int32, far []int32, to NodeID) int32 {
	var open []int32
	for _, wire := range n.wires[at] {
		if next := n.other(wire, at); far[next] != far[at]-1 {
			continue
		}
		if len(open) > 0 {
			switch was, is := n.p.Wires[open[0]].Order, n.p.Wires[wire].Order; {
			case is > was:
				continue
			case is < was:
				open = open[:0]
			}
		}
		open = append(open, wire)
	}
	return open[int(to)%len(open)]
}

// checkWires wants ends that exist and differ.
func (p *Platform) checkWires() *fault {
	wired := map[LinkID]bool{}
	for i := range p.Wires {
		w := &p.Wires[i]
		if w.Link < 0 || int(w.Link) >= len(p.Links) || wired[w.Link] || p.Links[w.Link].Switch {
			return &fault{"link", "", fmt.Sprintf("wire %d is of link %d, which does not exist, is a switch or has ends already", i, w.Link)}
		}
		wired[w.Link] = true
		who := owner("link", p.Links[w.Link].Name)
		for _, end := range w.Ends {
			l, isSwitch := end.switchLink()
			if isSwitch && (int(l) >= len(p.Links) || !p.Links[l].Switch) || !isSwitch && int(end) >= len(p.Memories) {
				return &fault{"link", who, fmt.Sprintf("its end %d does not exist", end)}
			}
		}
		if w.Ends[0] == w.Ends[1] {
			return &fault{"link", who, "both of its ends are the same"}
		}
	}
	return nil
}
