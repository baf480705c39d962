package platform

import (
	"fmt"
	"slices"
	"strings"

	"dahl/platform/tomlfile"
)

// pattern says which ends of two groups the links of one [[link]] join.
type pattern struct {
	joins string
	shape []int // of a torus
	group int   // members in a row that belong together; zero means all
}

// The patterns.
const (
	inBlocks = ""       // the first members with the first one at the other end, the next ones with the next
	each     = "each"   // each with each, inside groups
	torus    = "torus"  // neighbours in each dimension, the last with the first
	groups   = "groups" // each group with each other one, by one link
)

func (w *pattern) keys(f *form) {
	if f.in == nil {
		return // each wire is written by itself
	}
	f.text("joins", &w.joins)
	if !slices.Contains([]string{inBlocks, each, torus, groups}, w.joins) {
		f.in.Fail("joins", w.joins, `write "each", "torus" or "groups", or leave it out for blocks of equal size`)
	}
	f.key("shape", true, func() { w.shape = f.in.Counts("shape", 1, maxNodes) }, nil)
	f.count("group", 1, maxNodes, 0, &w.group)
}

// member is one of the nodes or switches for which a name in a [[link]] stands.
type member struct {
	port Port
	name string // of the node or the switch
}

// pair is the numbers of two members that a link joins, and an addition to its order.
type pair struct{ from, to, order int }

// addNetwork makes the wires and switches of tables. switches come last.
// It returns the table of each link.
func (p *Platform) addNetwork(links []linkTable, switches []switchTable, tables []*tomlfile.Table) (of []string) {
	if len(tables) > 0 && tables[0].File.Err != nil {
		return nil
	}
	names := p.namesOfEnds(switches)
	var wires []Wire
	for i := range links {
		l, t := &links[i], tables[i]
		if l.from == "" && l.to == "" {
			p.Links, of = append(p.Links, l.Link), append(of, t.Path)
			continue
		}
		from, to := endsCalled(names, t, "from", l.from), endsCalled(names, t, "to", l.to)
		pairs, wrong := l.pattern.pairs(len(from), len(to), l.from == l.to)
		if len(p.Links)+len(pairs) > MaxParts {
			wrong = fmt.Sprintf("more than %d links in all", MaxParts)
		}
		if wrong != "" {
			t.Fail("to", l.to, wrong)
			return nil
		}
		for _, pair := range pairs {
			a, b := from[pair.from], to[pair.to]
			link := l.Link
			switch {
			case len(from) == 1 && len(to) == 1:
			case l.pattern.joins == inBlocks: // one link from each
				link.Name = a.name + "." + l.Name
			default:
				link.Name = a.name + "." + l.Name + "." + b.name
			}
			wires = append(wires, Wire{LinkID(len(p.Links)), [2]Port{a.port, b.port}, l.order + pair.order})
			p.Links, of = append(p.Links, link), append(of, t.Path)
		}
	}
	first := LinkID(len(p.Links))
	for i := range wires { // the ports of switches were counted from 0
		for e, end := range wires[i].Ends {
			if at, ok := end.switchLink(); ok {
				wires[i].Ends[e] = SwitchPort(first + at)
			}
		}
	}
	p.Wires = append(p.Wires, wires...)
	return append(of, p.addSwitches(switches)...)
}

// addSwitches adds the switches of tables. A switch without a bandwidth has the bandwidth of all its wires together.
// It returns the table of each.
func (p *Platform) addSwitches(switches []switchTable) (of []string) {
	ports := map[LinkID]float64{}
	for i := range p.Wires {
		for _, end := range p.Wires[i].Ends {
			if l, ok := end.switchLink(); ok {
				ports[l] += p.Links[p.Wires[i].Link].BandwidthBytesPerSec
			}
		}
	}
	for i, s := range switches {
		for _, name := range numbered(s.Name, s.Count) {
			l := s.Link
			l.Name, l.Switch = name, true
			if l.BandwidthBytesPerSec == 0 {
				l.Sharing, l.BandwidthBytesPerSec = Fatpipe, ports[LinkID(len(p.Links))]
			}
			p.Links, of = append(p.Links, l), append(of, fmt.Sprintf("switch[%d]", i))
		}
	}
	return of
}

// namesOfEnds are the members of each name that an end of a link may have: a memory, a node (its host memory), a
// class of nodes, a memory of each node of a class, a switch, or all of a [[switch]]. Switches are numbered from 0.
func (p *Platform) namesOfEnds(switches []switchTable) map[string][]member {
	names := map[string][]member{}
	for i := range p.Nodes {
		n := &p.Nodes[i]
		host := member{Port(p.hostOfNode(NodeID(i))), n.Name}
		if names[n.Name] = []member{host}; n.Class != "" && n.Class != n.Name {
			names[n.Class] = append(names[n.Class], host)
		}
	}
	for i := range p.Memories {
		m := &p.Memories[i]
		at := member{Port(i), m.Name}
		names[m.Name] = []member{at}
		if len(p.Nodes) == 0 {
			continue
		}
		if n := &p.Nodes[m.Node]; n.Class != "" && n.Class != n.Name {
			ofClass := n.Class + strings.TrimPrefix(m.Name, n.Name)
			names[ofClass] = append(names[ofClass], at)
		}
	}
	next := LinkID(0)
	for _, s := range switches {
		for _, name := range numbered(s.Name, s.Count) {
			at := member{SwitchPort(next), name}
			names[name] = []member{at}
			if s.Count > 0 {
				names[s.Name] = append(names[s.Name], at)
			}
			next++
		}
	}
	return names
}

// endsCalled are the members of a name that a key gives.
func endsCalled(names map[string][]member, t *tomlfile.Table, key, name string) []member {
	ends := names[name]
	if len(ends) == 0 {
		t.Fail(key, name, "no node, memory or switch has this name; a link of a network has both ends, from and to")
	}
	return ends
}

// pairs are the members that links of the pattern join. wrong says why there are none.
func (w *pattern) pairs(from, to int, same bool) (pairs []pair, wrong string) {
	switch {
	case from == 0 || to == 0:
		return nil, ""
	case w.joins == inBlocks:
		if same || from < to || from%to != 0 {
			return nil, fmt.Sprintf(`%d ends are not shared out evenly among %d others; write joins = "each", "torus" or "groups", or other counts`, from, to)
		}
		for i := range from {
			pairs = append(pairs, pair{i, i / (from / to), 0})
		}
		return pairs, ""
	case w.joins == each && !same:
		for i := range from {
			for j := range to {
				pairs = append(pairs, pair{i, j, 0})
			}
		}
		return pairs, ""
	case !same:
		return nil, fmt.Sprintf("joins = %q is for links from a group to itself; write the same name at from and to", w.joins)
	case w.joins == torus:
		return w.torusPairs(from)
	}
	size := w.group
	if size == 0 {
		size = from
	}
	if from%size != 0 {
		return nil, fmt.Sprintf("%d ends are no groups of %d", from, size)
	}
	if w.joins == groups {
		return groupPairs(from/size, size), ""
	}
	for i := range from {
		for j := i + 1; j < (i/size+1)*size; j++ {
			pairs = append(pairs, pair{i, j, 0})
		}
	}
	return pairs, ""
}

// torusPairs joins each member with the next one in each dimension. The first dimension changes fastest and has the
// lowest order, so that messages go along it first.
func (w *pattern) torusPairs(n int) (pairs []pair, wrong string) {
	all := 1
	for _, extent := range w.shape {
		all *= extent
		if all > MaxParts {
			break
		}
	}
	if all != n || len(w.shape) == 0 {
		return nil, fmt.Sprintf("a torus of %d ends; write their shape, such as shape = [4, 4], whose product is their number", n)
	}
	stride := 1
	for d, extent := range w.shape {
		for i := range n {
			at := i / stride % extent
			if extent == 1 || extent == 2 && at == 1 {
				continue // itself, or joined already
			}
			pairs = append(pairs, pair{i, i + ((at+1)%extent-at)*stride, d})
		}
		stride *= extent
	}
	return pairs, ""
}

// groupPairs joins each group with each other one by a link. The links of a group end at its members in turn.
func groupPairs(groups, size int) (pairs []pair) {
	for a := range groups {
		for b := a + 1; b < groups; b++ {
			pairs = append(pairs, pair{a*size + (b-1)%size, b*size + a%size, 0})
		}
	}
	return pairs
}

// numbered are count names made of one, or the name itself without a count.
func numbered(name string, count int) (names []string) {
	if count == 0 {
		return []string{name}
	}
	for i := range count {
		names = append(names, fmt.Sprint(name, i))
	}
	return names
}
