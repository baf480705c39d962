package platform

import (
	"fmt"
	"slices"

	"dahl/platform/quantity"
	"dahl/platform/tomlfile"
)

// maxNodes bounds what a count in a file makes of one table.
const maxNodes = 1 << 14

// nodeTable is a [[node]]: one node, or count equal ones.
type nodeTable struct {
	Node
	Count int
	file  string // of their platform; empty: [[memory]] and [[device]] say what the node has
}

// switchTable is a [[switch]]: one switch, or count equal ones.
type switchTable struct {
	Link
	Count int
}

// linkTable is a [[link]]: a link of routes, or with ends a wire or several.
type linkTable struct {
	Link
	from, to string
	order    int
	pattern  pattern
}

// opener reads the platform of a node by the name that a file gives.
type opener func(name string) (*Platform, error)

// nodeKeys reads or writes the nodes. Nodes of a platform file bring their parts with them.
func (p *Platform) nodeKeys(f *form, open opener) {
	var specs []nodeTable
	for i := range p.Nodes {
		specs = append(specs, nodeTable{Node: p.Nodes[i]})
	}
	written := len(specs)
	for i, t := range tables(f, "node", &specs, (*nodeTable).keys) {
		spec := &specs[written+i]
		var machine *Platform
		if spec.file != "" {
			var err error
			if machine, err = open(spec.file); err == nil && len(machine.Nodes) > 0 {
				err = fmt.Errorf("platform %q is a cluster; name the platform of one machine", machine.Name)
			}
			if err != nil {
				t.File.FailAt(t.Join("platform"), t.Owner, err.Error())
				return
			}
		}
		p.addNodes(spec, machine, t)
	}
	f.ofNodes = map[string]int{"memory": len(p.Memories), "device": len(p.Devices), "link": len(p.Links), "route": len(p.Routes), "model": len(p.Models)}
}

func (n *nodeTable) keys(f *form) {
	f.need(`"n"`).text("name", &n.Name)
	f.key("platform", true, func() { n.file = f.in.Text("platform") }, nil)
	f.count("count", 1, maxNodes, 0, &n.Count)
	f.text("class", &n.Class)
	f.inline("host_power", n.HostPower.Source != "", func(f *form) {
		f.need(`"35 W"`).quantity("watts", &quantity.Watts, &n.HostPower.Value)
		f.source(&n.HostPower.Source)
	})
	f.above0().quantity("power_cap", &quantity.Watts, &n.CapWatts)
	f.key("off_power", !n.MayBeOff, func() {
		_, n.MayBeOff = f.in.Keys["off_power"]
		n.OffWatts = f.read("off_power", &quantity.Watts)
	}, func() string { return quote(quantity.Watts.Format(n.OffWatts)) })
	f.flag("off", &n.Off)
}

// addNodes makes the nodes of a table. Each has the parts of its machine, with names that begin with its own.
func (p *Platform) addNodes(spec *nodeTable, machine *Platform, t *tomlfile.Table) {
	if spec.Count > 1 && machine == nil {
		t.Fail("count", spec.Count, `write platform = "…" too, the machine of which these nodes are`)
		return
	}
	if machine != nil {
		for _, m := range machine.Models {
			m.Device = spec.Name + "." + m.Device
			p.Models = append(p.Models, m)
		}
	}
	for _, name := range numbered(spec.Name, spec.Count) {
		n := spec.Node
		n.Name = name
		if machine != nil {
			n.Class = spec.Name
			if n.HostPower.Source == "" {
				n.HostPower = machine.HostPower
			}
			if n.CapWatts == 0 {
				n.CapWatts = machine.CapWatts
			}
			p.addParts(machine, NodeID(len(p.Nodes)), name+".")
		}
		p.Nodes = append(p.Nodes, n)
		if p.parts() > MaxParts {
			t.Fail("count", spec.Count, fmt.Sprintf("more than %d memories, devices, links or routes in all", MaxParts))
			return
		}
	}
}

// addParts adds the memories, devices, links and routes of a machine to the platform, as parts of a node.
func (p *Platform) addParts(machine *Platform, node NodeID, prefix string) {
	memories, links, host := MemoryID(len(p.Memories)), LinkID(len(p.Links)), machine.HostMemory()
	for i, m := range machine.Memories {
		m.Name, m.Node, m.Host = prefix+m.Name, node, MemoryID(i) == host
		p.Memories = append(p.Memories, m)
	}
	for _, d := range machine.Devices {
		d.Name, d.Memory = prefix+d.Name, d.Memory+memories
		p.Devices = append(p.Devices, d)
	}
	for _, l := range machine.Links {
		l.Name = prefix + l.Name
		p.Links = append(p.Links, l)
	}
	for _, r := range machine.Routes {
		r.From, r.To, r.Links = r.From+memories, r.To+memories, slices.Clone(r.Links)
		for i := range r.Links {
			r.Links[i] += links
		}
		p.Routes = append(p.Routes, r)
	}
}

// networkKeys reads or writes the links and switches. Switches come last among the links.
func (p *Platform) networkKeys(f *form) {
	var switches []switchTable
	var links []linkTable
	for i := range p.Links {
		if l := p.Links[i]; l.Switch {
			switches = append(switches, switchTable{Link: l})
		} else {
			links = append(links, p.tableOf(LinkID(i)))
		}
	}
	if f.in == nil {
		tables(f, "link", &links, (*linkTable).keys)
		tables(f, "switch", &switches, (*switchTable).keys)
		return
	}
	links = nil // links of nodes stay as they are
	linkTables := tables(f, "link", &links, (*linkTable).keys)
	tables(f, "switch", &switches, (*switchTable).keys)
	f.linkTables = p.addNetwork(links, switches, linkTables)
}

// tableOf is a link as a file has it.
func (p *Platform) tableOf(l LinkID) linkTable {
	t := linkTable{Link: p.Links[l]}
	if i := slices.IndexFunc(p.Wires, func(w Wire) bool { return w.Link == l }); i >= 0 {
		w := &p.Wires[i]
		t.from, t.to, t.order = p.portName(w.Ends[0]), p.portName(w.Ends[1]), w.Order
	}
	return t
}

func (p *Platform) portName(at Port) string {
	if l, ok := at.switchLink(); ok {
		return p.Links[l].Name
	}
	return p.Memories[at].Name
}

func (s *switchTable) keys(f *form) {
	f.need(`"leaf"`).text("name", &s.Name)
	f.count("count", 1, maxNodes, 0, &s.Count)
	f.above0().quantity("bandwidth", &quantity.BytesPerSec, &s.BandwidthBytesPerSec)
	f.duration("latency", &s.Latency)
	s.sharingKey(f)
	s.powerKeys(f, "switch.sleep")
}
