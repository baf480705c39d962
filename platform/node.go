package platform

import (
	"fmt"
	"slices"
)

// NodeID is an index into Platform.Nodes.
type NodeID int32

// Node is one machine of a cluster. Its memories follow one another in Platform.Memories. Their
// devices are its own.
type Node struct {
	Name string
	// Class is the same for nodes that a file describes once. Models of performance name the
	// devices and kinds of a class, as "n.gpu0" and "n.cuda" where nodes n0 … n7 have the class n.
	// Empty: models name the devices of the node and their kinds as they are.
	Class     string
	HostPower Quantity // watts drawn all the time, without the devices; see Platform.HostWatts
	CapWatts  float64  // of the node's host and devices at every instant; zero means none
	// MayBeOff: the node draws OffWatts in all if no device of it is selected.
	MayBeOff bool
	OffWatts float64
	Off      bool // Select left it out, and it is off
}

// NodeOf is the node of a memory: 0 where the platform is one machine.
func (p *Platform) NodeOf(m MemoryID) NodeID { return p.Memories[m].Node }

// HostOf is the host memory of the node of a memory: the one marked as the host's, else the memory of
// the node's first processor, else the node's first one.
func (p *Platform) HostOf(m MemoryID) MemoryID {
	if p.ways != nil {
		return p.ways.hosts[p.Memories[m].Node]
	}
	return p.hostOfNode(p.Memories[m].Node)
}

// PlaceInNode is the place of a memory in its node, from 0 on.
func (p *Platform) PlaceInNode(m MemoryID) (place int) {
	if p.ways != nil {
		return int(m - p.ways.first[p.NodeOf(m)])
	}
	for ; m > 0 && p.NodeOf(m-1) == p.NodeOf(m); m-- {
		place++
	}
	return place
}

// HostMemory is the host memory of the machine. In a cluster it is the host memory of the first node with a
// device, where the results of a program are.
func (p *Platform) HostMemory() MemoryID {
	if p.ways != nil {
		return p.ways.host
	}
	return p.hostOfNode(p.firstNode())
}

// Hosts are the host memories of all nodes.
func (p *Platform) Hosts() (hosts []MemoryID) {
	if p.ways != nil {
		return slices.Clone(p.ways.hosts)
	}
	for n := range max(1, len(p.Nodes)) {
		hosts = append(hosts, p.hostOfNode(NodeID(n)))
	}
	return hosts
}

// IsHost reports whether a memory is the host memory of its node.
func (p *Platform) IsHost(m MemoryID) bool { return p.HostOf(m) == m }

// firstNode is the first node with a device.
func (p *Platform) firstNode() (first NodeID) {
	if len(p.Nodes) > 0 && len(p.Devices) > 0 {
		first = p.NodeOf(p.Devices[0].Memory)
		for i := range p.Devices {
			first = min(first, p.NodeOf(p.Devices[i].Memory))
		}
	}
	return first
}

func (p *Platform) hostOfNode(n NodeID) MemoryID {
	if m := slices.IndexFunc(p.Memories, func(m Memory) bool { return m.Node == n && m.Host }); m >= 0 {
		return MemoryID(m)
	}
	if d := slices.IndexFunc(p.Devices, func(d Device) bool { return d.IsProcessor() && p.NodeOf(d.Memory) == n }); d >= 0 {
		return p.Devices[d].Memory
	}
	return MemoryID(max(0, slices.IndexFunc(p.Memories, func(m Memory) bool { return m.Node == n })))
}

// HostWatts are the watts that the platform and its nodes draw all the time, without devices and links.
func (p *Platform) HostWatts() Quantity {
	sum := p.HostPower
	for i := range p.Nodes {
		if n := &p.Nodes[i]; n.HostPower.Source != "" {
			sum = Quantity{sum.Value + n.HostPower.Value, leastTrusted(sum, n.HostPower.Source)}
		}
	}
	return sum
}

// ModelNames are the names by which models of performance call a device and its kind.
func (p *Platform) ModelNames(d *Device) (name, kind string) {
	if len(p.Nodes) == 0 {
		return d.Name, d.Kind
	}
	n := &p.Nodes[p.NodeOf(d.Memory)]
	if n.Class == "" {
		return d.Name, d.Kind
	}
	return n.Class + "." + d.Name[len(n.Name)+1:], n.Class + "." + d.Kind
}

// nodeCap is the cap of the node of a memory in a cluster.
func (p *Platform) nodeCap(m MemoryID) float64 {
	if n := p.NodeOf(m); uint(n) < uint(len(p.Nodes)) {
		return p.Nodes[n].CapWatts
	}
	return 0
}

// calledByModels are the names that models have for all devices and their kinds.
func (p *Platform) calledByModels() map[string]bool {
	called := map[string]bool{}
	for i := range p.Devices {
		name, kind := p.ModelNames(&p.Devices[i])
		called[name], called[kind] = true, true
	}
	return called
}

// checkNodes wants names of nodes, and memories that follow one another in each.
func (p *Platform) checkNodes() *fault {
	seen := map[string]bool{}
	for i := range p.Nodes {
		n := &p.Nodes[i]
		if f := checkName(seen, "node", i, n.Name); f != nil {
			return f
		}
		who := owner("node", n.Name)
		if f := checkSource(n.HostPower.Source, n.HostPower.Value, at("node", i, "host_power"), who); f != nil {
			return f
		}
		if !amount(n.OffWatts) || !amount(n.CapWatts) {
			return &fault{at("node", i, "name"), who, "its watts are out of range"}
		}
		if !slices.ContainsFunc(p.Memories, func(m Memory) bool { return m.Node == NodeID(i) }) {
			return &fault{at("node", i, "name"), who, fmt.Sprintf("it has no memory; write platform = \"…\", or node = %q in a [[memory]]", clip(n.Name))}
		}
	}
	last := NodeID(0)
	for i := range p.Memories {
		m := &p.Memories[i]
		if m.Node < 0 || int(m.Node) >= max(1, len(p.Nodes)) {
			return &fault{at("memory", i, "node"), owner("memory", m.Name), fmt.Sprintf("node %d does not exist", m.Node)}
		}
		if m.Node < last {
			return &fault{at("memory", i, "node"), owner("memory", m.Name), "the memories of a node follow one another, in the order of the nodes"}
		}
		last = m.Node
	}
	return p.checkClasses()
}

// checkClasses wants the name of the node at the front of the names of the devices of a class.
func (p *Platform) checkClasses() *fault {
	for i := range p.Devices {
		d := &p.Devices[i]
		if len(p.Nodes) == 0 || d.Memory < 0 || int(d.Memory) >= len(p.Memories) {
			continue
		}
		n := &p.Nodes[p.NodeOf(d.Memory)]
		if prefix := n.Name + "."; n.Class != "" && (len(d.Name) <= len(prefix) || d.Name[:len(prefix)] != prefix) {
			return &fault{at("device", i, "name"), owner("device", d.Name), fmt.Sprintf("it is of node %q of class %q; its name has to begin with %q", n.Name, n.Class, prefix)}
		}
	}
	return nil
}
