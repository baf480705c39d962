package platform

// NoNode is in place of the node of a link of the network.
const NoNode NodeID = -1

// NodesOfLinks are the nodes of all links. A link of routes within one node is that node's, and so is a wire between a
// memory and a switch, as an adaptor is. All others are of the network.
func (p *Platform) NodesOfLinks() []NodeID {
	const unknown = NoNode - 1
	of := make([]NodeID, len(p.Links))
	for l := range of {
		of[l] = unknown
	}
	is := func(l LinkID, n NodeID) {
		if of[l] == unknown {
			of[l] = n
		} else if of[l] != n {
			of[l] = NoNode
		}
	}
	for i := range p.Routes {
		n := p.NodeOf(p.Routes[i].From)
		if n != p.NodeOf(p.Routes[i].To) {
			n = NoNode
		}
		for _, l := range p.Routes[i].Links {
			is(l, n)
		}
	}
	for i := range p.Wires {
		n := NoNode
		switch ends := p.Wires[i].Ends; {
		case ends[0] >= 0 && ends[1] < 0:
			n = p.NodeOf(MemoryID(ends[0]))
		case ends[1] >= 0 && ends[0] < 0:
			n = p.NodeOf(MemoryID(ends[1]))
		}
		is(p.Wires[i].Link, n)
	}
	for l := range of {
		of[l] = max(of[l], NoNode)
	}
	return of
}
