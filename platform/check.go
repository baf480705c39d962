package platform

import (
	"fmt"
	"math"
	"slices"

	"dahl/platform/quantity"
	"dahl/platform/tomlfile"
)

// Bounds that keep a mistyped file from filling the memory.
const (
	maxUnits = 1 << 16 // of one device
	maxLinks = 1 << 12 // of one route
)

// MaxParts bounds the memories, the links, the devices and the routes of a platform, each for itself, and the units of all its devices.
const MaxParts = 1 << 18

// fault is a mistake and its place. Path is the path in the TOML form, such as "device[1].count";
// Parse turns it into a line.
type fault struct {
	path  string
	owner string // such as `memory "ram"`
	text  string
}

func (f *fault) Error() string {
	if f.owner == "" {
		return f.text
	}
	return f.owner + ": " + f.text
}

// Check reports the first mistake in the platform.
func (p *Platform) Check() error {
	f := p.checkParts()
	if f == nil && !slices.Equal(p.Workers, workersOf(p.Devices)) {
		f = &fault{"", "", "the workers are not the units of the devices in their order; call Complete"}
	}
	if f != nil {
		return fmt.Errorf("platform %q: %w", p.Name, f)
	}
	return nil
}

// parts is how many memories, devices, links or routes there are, of which there are most.
func (p *Platform) parts() int {
	return max(len(p.Memories), len(p.Devices), len(p.Links), len(p.Routes))
}

// checkParts checks everything that a TOML file can say.
func (p *Platform) checkParts() *fault {
	if len(p.Memories) == 0 {
		return &fault{"", "", "no memory; add a [[memory]]"}
	}
	if len(p.Devices) == 0 {
		return &fault{"", "", "no device; add a [[device]]"}
	}
	if n := p.parts(); n > MaxParts {
		return &fault{"", "", fmt.Sprintf("%d memories, devices, links or routes; at most %d are supported", n, MaxParts)}
	}
	if f := checkSource(p.HostPower.Source, p.HostPower.Value, "host_power", ""); f != nil {
		return f
	}
	if f := p.checkCap(); f != nil {
		return f
	}
	for _, check := range []func() *fault{p.checkNames, p.checkNodes, p.checkMemories, p.checkDevices, p.checkLinks, p.checkRoutes, p.checkWires, p.checkReach, p.checkModels} {
		if f := check(); f != nil {
			return f
		}
	}
	return nil
}

// checkNames looks for empty, ill-formed and repeated names. Devices and their
// workers share one set, so that a name in a graph or a plan means one thing.
func (p *Platform) checkNames() *fault {
	memories, units, links := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for i := range p.Memories {
		if f := checkName(memories, "memory", i, p.Memories[i].Name); f != nil {
			return f
		}
	}
	for i := range p.Links {
		if f := checkName(links, "link", i, p.Links[i].Name); f != nil {
			return f
		}
	}
	all := 0
	for i := range p.Devices {
		d := &p.Devices[i]
		if f := checkName(units, "device", i, d.Name); f != nil {
			return f
		}
		if d.Count < 1 || d.Count > maxUnits {
			return &fault{at("device", i, "count"), owner("device", d.Name),
				fmt.Sprintf("count = %d: want 1 to %d", d.Count, maxUnits)}
		}
		if all += d.Count; all > MaxParts { // each becomes a worker
			return &fault{at("device", i, "count"), owner("device", d.Name),
				fmt.Sprintf("count = %d: with it the devices have more than %d units in all", d.Count, MaxParts)}
		}
	}
	for _, w := range workersOf(p.Devices) {
		d := &p.Devices[w.Device]
		if d.Count > 1 && units[w.Name] {
			return &fault{at("device", int(w.Device), "name"), owner("device", d.Name), fmt.Sprintf("its unit %q has the name of another device or unit", w.Name)}
		}
		units[w.Name] = true
	}
	return nil
}

func checkName(seen map[string]bool, what string, i int, name string) *fault {
	path := at(what, i, "name")
	if name == "" {
		return &fault{path, fmt.Sprintf("%s %d", what, i+1), `a name is missing; write name = "…"`}
	}
	if !isName(name) {
		return &fault{path, owner(what, name), "a name has letters, digits, '_', '-' and '.' only, at most 64"}
	}
	if seen[name] {
		return &fault{path, owner(what, name), "this name is taken; give each its own"}
	}
	seen[name] = true
	return nil
}

// isName refuses the separators of a cost key, "device/variant@clock".
func isName(s string) bool {
	for _, c := range []byte(s) {
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if !letter && (c < '0' || c > '9') && c != '_' && c != '-' && c != '.' {
			return false
		}
	}
	return s != "" && len(s) <= 64
}

func at(what string, i int, key string) string { return fmt.Sprintf("%s[%d].%s", what, i, key) }

func owner(what, name string) string { return fmt.Sprintf("%s %q", what, clip(name)) }

// clip shortens text that goes into an error.
func clip(s string) string { return tomlfile.Clip(s) }

// amount reports whether v is finite and not negative.
func amount(v float64) bool { return v >= 0 && v <= quantity.MaxReal }

func checkSource(s Source, watts float64, path, owner string) *fault {
	if !amount(watts) {
		return &fault{path, owner, fmt.Sprintf("a power of %g W; want a finite one that is not negative", watts)}
	}
	if s == "" && watts == 0 || slices.Contains([]Source{Measured, Datasheet, Guess}, s) {
		return nil
	}
	return &fault{path, owner, fmt.Sprintf("source = %q: write %q, %q or %q", clip(string(s)), Measured, Datasheet, Guess)}
}

func (p *Platform) checkMemories() *fault {
	hosts := map[NodeID]string{}
	for i := range p.Memories {
		m := &p.Memories[i]
		if m.CapacityBytes < 0 || m.CapacityBytes > quantity.MaxWhole {
			return &fault{at("memory", i, "capacity"), owner("memory", m.Name), fmt.Sprintf("capacity of %d bytes is out of range", m.CapacityBytes)}
		}
		if !amount(m.BandwidthBytesPerSec) {
			return &fault{at("memory", i, "bandwidth"), owner("memory", m.Name), fmt.Sprintf("bandwidth of %g B/s is out of range", m.BandwidthBytesPerSec)}
		}
		if other, is := hosts[m.Node]; m.Host && is {
			return &fault{at("memory", i, "host"), owner("memory", m.Name),
				fmt.Sprintf("host = true: memory %q is the host's already; write it at one of them", other)}
		}
		if m.Host {
			hosts[m.Node] = m.Name
		}
	}
	return nil
}

func (p *Platform) checkLinks() *fault {
	for i := range p.Links {
		l := &p.Links[i]
		who := owner("link", l.Name)
		if !amount(l.BandwidthBytesPerSec) || l.BandwidthBytesPerSec == 0 {
			return &fault{at("link", i, "bandwidth"), who, fmt.Sprintf("bandwidth of %g B/s; want a positive one, such as \"12 GB/s\"", l.BandwidthBytesPerSec)}
		}
		if l.Latency < 0 || l.Latency > quantity.MaxWhole {
			return &fault{at("link", i, "latency"), who, fmt.Sprintf("latency of %d ns is out of range", l.Latency)}
		}
		if p.BySize && p.ShareBytes == 0 && l.Latency == 0 && !l.Switch {
			return &fault{at("link", i, "latency"), who, "flows share by latency, and this link has none; write share_size with more than 0 B, or a latency"}
		}
		if l.Sharing > Fatpipe {
			return &fault{at("link", i, "sharing"), who, fmt.Sprintf("sharing %d is none of shared, duplex, fatpipe", l.Sharing)}
		}
		for _, w := range []float64{l.IdleWatts, l.BusyWatts} {
			if f := checkSource(l.PowerSource, w, at("link", i, "power"), who); f != nil {
				return f
			}
		}
		if f := checkSleeps("link", i, who, l.PowerSource, l.Sleeps); f != nil {
			return f
		}
	}
	return nil
}

func (p *Platform) checkRoutes() *fault {
	taken := map[[2]MemoryID]bool{}
	for i := range p.Routes {
		r := &p.Routes[i]
		who := fmt.Sprintf("route %d", i+1)
		switch n := MemoryID(len(p.Memories)); {
		case r.From < 0 || r.From >= n || r.To < 0 || r.To >= n:
			return &fault{at("route", i, "from"), who, "its memories are not of this platform"}
		case r.From == r.To:
			return &fault{at("route", i, "to"), who, "it leads from a memory to itself; remove it"}
		case len(r.Links) == 0 || len(r.Links) > maxLinks:
			return &fault{at("route", i, "links"), who, fmt.Sprintf("%d links; name the links from %q to %q in order", len(r.Links), p.Memories[r.From].Name, p.Memories[r.To].Name)}
		}
		for _, l := range r.Links {
			if l < 0 || int(l) >= len(p.Links) {
				return &fault{at("route", i, "links"), who, fmt.Sprintf("link %d does not exist", l)}
			}
		}
		pairs := [][2]MemoryID{{r.From, r.To}, {r.To, r.From}}
		if r.OneWay {
			pairs = pairs[:1]
		}
		for _, pair := range pairs {
			if taken[pair] {
				return &fault{at("route", i, "from"), who, fmt.Sprintf("there is a route from %q to %q already; keep one, or write oneway = true in both",
					p.Memories[pair[0]].Name, p.Memories[pair[1]].Name)}
			}
			taken[pair] = true
		}
	}
	return nil
}

// checkReach looks for devices without a way for data from the host's memory, or back. A plan
// would silently leave them out.
func (p *Platform) checkReach() *fault {
	w := newWays(p)
	reaches := func(from, to MemoryID) bool { return from == to || w.find(from, to).links != nil }
	looked, joined := make([]bool, len(p.Memories)), make([]bool, len(w.hosts))
	joined[p.NodeOf(w.host)] = true
	for i := range p.Devices {
		d := &p.Devices[i]
		if d.Unreachable || looked[d.Memory] {
			continue
		}
		looked[d.Memory] = true
		node := p.NodeOf(d.Memory)
		way, host := "", w.hosts[node]
		switch {
		case !reaches(host, d.Memory):
			way = fmt.Sprintf("from %q, the host's memory, to %q", p.Memories[host].Name, p.Memories[d.Memory].Name)
		case !reaches(d.Memory, host):
			way = fmt.Sprintf("from %q back to %q, the host's memory", p.Memories[d.Memory].Name, p.Memories[host].Name)
		case !joined[node] && !reaches(w.host, host):
			way = fmt.Sprintf("from %q, the host memory of the first node, to %q", p.Memories[w.host].Name, p.Memories[host].Name)
		case !joined[node] && !reaches(host, w.host):
			way = fmt.Sprintf("from %q back to %q, the host memory of the first node", p.Memories[host].Name, p.Memories[w.host].Name)
		}
		between := ""
		if len(p.Nodes) > 0 {
			between = ", or between nodes a [[link]] with from and to"
		}
		if joined[node] = true; way != "" {
			return &fault{at("device", i, "memory"), owner("device", d.Name),
				fmt.Sprintf("no route leads %s; add a [[route]]%s, or write unreachable = true where that is meant", way, between)}
		}
	}
	return nil
}

func (p *Platform) checkModels() *fault {
	type key struct {
		op, variant, elem, device, clock, shape string
		active                                  int
	}
	seen, called := map[key]bool{}, p.calledByModels()
	for i := range p.Models {
		m := &p.Models[i]
		who := fmt.Sprintf("model of %q", clip(m.Op))
		for _, part := range []struct{ key, value string }{{"op", m.Op}, {"type", m.Type}, {"shape", m.Shape}} {
			if part.value == "" {
				return &fault{at("model", i, part.key), who, part.key + " is missing"}
			}
		}
		if !called[m.Device] {
			return &fault{at("model", i, "device"), who, fmt.Sprintf("device = %q: no device has this name or kind", clip(m.Device))}
		}
		if f := m.checkNumbers(i, who); f != nil {
			return f
		}
		k := key{m.Op, m.Variant, m.Type, m.Device, m.Clock, m.Shape, m.Active}
		if seen[k] {
			return &fault{at("model", i, "op"), who, fmt.Sprintf("a second model of variant %q, shape %q, active %d", clip(m.Variant), clip(m.Shape), m.Active)}
		}
		seen[k] = true
	}
	return nil
}

func (m *Model) checkNumbers(i int, who string) *fault {
	if !(m.MedianNs > 0 && m.MedianNs <= quantity.MaxWhole) {
		return &fault{at("model", i, "median"), who, fmt.Sprintf("a median of %g ns; want a positive time, such as \"12.3 us\"", m.MedianNs)}
	}
	for _, q := range []struct {
		key   string
		value float64
		most  float64
	}{
		{"compute", m.Compute, 1}, {"p95", m.P95Ns, quantity.MaxWhole}, {"warm", m.WarmNs, quantity.MaxWhole}, {"far", m.FarNs, quantity.MaxWhole}, {"in_step", m.StepNs, quantity.MaxWhole}, {"first_step", m.FirstNs, quantity.MaxWhole}, {"joules", m.Joules, quantity.MaxReal}, {"flops", m.Flops, quantity.MaxReal},
		{"bytes", float64(m.MovedBytes), quantity.MaxWhole}, {"workspace", float64(m.WorkspaceBytes), quantity.MaxWhole},
		{"count", float64(m.Count), math.MaxInt32}, {"active", float64(m.Active), maxUnits},
	} {
		if !(q.value >= 0 && q.value <= q.most) {
			return &fault{at("model", i, q.key), who, fmt.Sprintf("%s is %g; want 0 to %g", q.key, q.value, q.most)}
		}
	}
	for _, d := range []struct {
		key   string
		value *Distribution
	}{{"distribution", &m.Distribution}, {"in_step_distribution", &m.StepDistribution}} {
		if !d.value.valid() {
			return &fault{at("model", i, d.key), who, d.key + ": want positive times from short to long"}
		}
	}
	return nil
}
