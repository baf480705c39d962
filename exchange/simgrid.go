package exchange

import (
	"encoding/xml"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"dahl/platform"
)

// simgridReader reads a platform of SimGrid's. Each host is a device with a memory of its own.
type simgridReader struct {
	xmlReader
	hosts  []simgridHost
	links  map[string]platform.Link // by id; a link with two directions is two, id and ".up" or ".down"
	names  []string                 // of links, in the order of the file
	routes []simgridRoute
	zones  int // around what is read

	routers map[string]bool
}

// maxHosts bounds the hosts of a cluster and the stages of a pipeline.
const maxHosts = 1024

// maxZones bounds zones within zones, and parts of a workflow within others.
const maxZones = 64

type simgridHost struct {
	id     string
	device platform.Device
	bytes  int64 // of memory; 0 is not said
}

type simgridRoute struct {
	from, to string
	links    []string
	oneWay   bool
	line     int
}

func (f *file) readSimGrid(src []byte) error {
	r := simgridReader{xmlReader: newXMLReader(f, src), links: map[string]platform.Link{}, routers: map[string]bool{}}
	if err := r.root("platform", r.element); err != nil {
		return err
	}
	return r.finish()
}

// simgridNotes are elements without an effect on a machine here. Elements beyond them are read or refused.
var simgridNotes = []string{"config", "prop", "disk", "trace", "trace_connect"}

// element reads a part of a platform or of a zone.
func (r *simgridReader) element(e xml.StartElement) error {
	switch name := e.Name.Local; {
	case name == "zone" || name == "AS":
		if routing := attribute(e, "routing"); !slices.Contains([]string{"Full", "None", "Cluster", ""}, routing) {
			return r.errorf(r.line, "zone %q has the routing %q; write its routes one by one with routing Full", attribute(e, "id"), routing)
		}
		if r.zones++; r.zones > maxZones {
			return r.errorf(r.line, "more than %d zones within each other", maxZones)
		}
		err := r.inside(r.element)
		r.zones--
		return err
	case name == "host":
		return r.host(e)
	case name == "link":
		return r.link(e)
	case name == "router":
		r.routers[attribute(e, "id")] = true
		return r.skip()
	case name == "route":
		return r.route(e)
	case name == "cluster":
		return r.cluster(e)
	case slices.Contains(simgridNotes, name):
		r.leave(name+" elements", 1)
		return r.skip()
	default:
		return r.errorf(r.line, "element %s has no meaning here; take it out, or write hosts, links and routes in its place", name)
	}
}

// simgridUnits are prefixes of powers of 1000, and with an i behind them of 1024.
const simgridUnits = "kMGTPEZY"

// quantity reads a number with a unit, such as 125MBps, whose suffixes have factors.
func (r *simgridReader) quantity(what, text string, suffixes map[string]float64) (float64, error) {
	number := strings.TrimRight(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ ")
	if strings.HasSuffix(text, number) { // scientific notation ends in a digit
		number = text
	}
	unit := strings.TrimSpace(text[len(number):])
	v, err := strconv.ParseFloat(number, 64)
	for suffix, factor := range suffixes {
		prefix, ok := strings.CutSuffix(unit, suffix)
		base := 1000.0
		if short, binary := strings.CutSuffix(prefix, "i"); binary {
			prefix, base = strings.Replace(short, "K", "k", 1), 1024
		}
		if ok && prefix == "" && base == 1000 {
			return r.known(what, text, v*factor, err)
		}
		if at := strings.Index(simgridUnits, prefix); ok && len(prefix) == 1 && at >= 0 && suffix != "" {
			return r.known(what, text, v*factor*math.Pow(base, float64(at+1)), err)
		}
	}
	return 0, r.errorf(r.line, "%s is %q; write a number with a unit", what, text)
}

func (r *simgridReader) known(what, text string, v float64, err error) (float64, error) {
	if err != nil || !(v >= 0) || v > 1e30 {
		return 0, r.errorf(r.line, "%s is %q; write a finite number, at least 0", what, text)
	}
	return v, nil
}

var (
	simgridSpeeds     = map[string]float64{"f": 1, "": 1}
	simgridBandwidths = map[string]float64{"Bps": 1, "bps": 1.0 / 8, "": 1}
	simgridTimes      = map[string]float64{"s": 1, "ms": 1e-3, "us": 1e-6, "ns": 1e-9, "ps": 1e-12, "m": 60, "h": 3600, "d": 86400, "w": 604800, "": 1}
)

// link reads a link.
func (r *simgridReader) link(e xml.StartElement) error {
	var l platform.Link
	r.profiles(e)
	err := r.inside(func(e xml.StartElement) (err error) {
		if attribute(e, "id") != "wattage_range" {
			r.leave("properties of links", 1)
			return r.skip()
		}
		idle, busy, _ := strings.Cut(attribute(e, "value"), ":")
		l.PowerSource = platform.Guess
		if l.IdleWatts, err = r.float(r.line, "watts", idle); err == nil {
			l.BusyWatts, err = r.float(r.line, "watts", busy)
		}
		if err != nil {
			return err
		}
		return r.skip()
	})
	if err != nil {
		return err
	}
	return r.newLink(attribute(e, "id"), attribute(e, "bandwidth"), attribute(e, "latency"), attribute(e, "sharing_policy"), l)
}

// newLink adds a link that may have watts. One of two directions is two links.
func (r *simgridReader) newLink(id, bandwidth, latency, policy string, l platform.Link) (err error) {
	if l.BandwidthBytesPerSec, err = r.quantity("a bandwidth", bandwidth, simgridBandwidths); err != nil {
		return err
	}
	seconds := 0.0
	if latency != "" {
		if seconds, err = r.quantity("a latency", latency, simgridTimes); err != nil {
			return err
		}
	}
	l.Latency = time.Duration(min(math.Round(seconds*nsPerS), maxAmount))
	ids := []string{id}
	switch policy {
	case "SHARED", "":
	case "FATPIPE":
		l.Sharing = platform.Fatpipe
	case "SPLITDUPLEX", "FULLDUPLEX":
		ids = []string{id + ".up", id + ".down"}
		l.IdleWatts, l.BusyWatts = l.IdleWatts/2, l.BusyWatts/2
	default:
		return r.errorf(r.line, "link %q has the sharing policy %q; write SHARED, SPLITDUPLEX or FATPIPE", id, policy)
	}
	for _, id := range ids {
		if _, ok := r.links[id]; ok {
			return r.errorf(r.line, "link %q is given twice; write another id", id)
		}
		l.Name = clean(id)
		r.links[id], r.names = l, append(r.names, id)
	}
	return nil
}

// route reads a route between two hosts.
func (r *simgridReader) route(e xml.StartElement) error {
	way := simgridRoute{from: attribute(e, "src"), to: attribute(e, "dst"), line: r.line}
	symmetrical := strings.ToLower(attribute(e, "symmetrical"))
	way.oneWay = symmetrical == "no"
	err := r.inside(func(e xml.StartElement) error {
		if e.Name.Local != "link_ctn" {
			return r.errorf(r.line, "element %s in a route has no meaning here", e.Name.Local)
		}
		id := attribute(e, "id")
		switch direction := strings.ToLower(attribute(e, "direction")); direction {
		case "up", "down":
			id += "." + direction
		}
		if _, ok := r.links[id]; !ok {
			return r.errorf(r.line, "there is no link %q; write the id of one above, with a direction if it has two", id)
		}
		way.links = append(way.links, id)
		return r.skip()
	})
	if err == nil {
		r.routes = append(r.routes, way)
	}
	return err
}

// back is the way back of a route: the links from behind, in their other direction.
func back(links []string) []string {
	links = slices.Clone(links)
	slices.Reverse(links)
	for i, id := range links {
		if up, ok := strings.CutSuffix(id, ".up"); ok {
			links[i] = up + ".down"
		} else if down, ok := strings.CutSuffix(id, ".down"); ok {
			links[i] = down + ".up"
		}
	}
	return links
}

// cluster writes hosts, links and routes in the place of a flat cluster.
func (r *simgridReader) cluster(e xml.StartElement) error {
	if topology := attribute(e, "topology"); topology != "" && topology != "FLAT" {
		return r.errorf(r.line, "cluster %q has the topology %q; write its routes one by one", attribute(e, "id"), topology)
	}
	numbers, err := r.radical(attribute(e, "radical"))
	if err != nil {
		return err
	}
	id, policy := attribute(e, "id"), attribute(e, "sharing_policy")
	if policy == "" {
		policy = "SPLITDUPLEX"
	}
	var middle, up, down, names []string
	if attribute(e, "bb_bw") != "" {
		middle = []string{id + "_backbone"}
		if err := r.newLink(middle[0], attribute(e, "bb_bw"), attribute(e, "bb_lat"), attribute(e, "bb_sharing_policy"), platform.Link{}); err != nil {
			return err
		}
	}
	for _, n := range numbers {
		h, err := r.newHost(attribute(e, "prefix")+n+attribute(e, "suffix"), attribute(e, "speed"), attribute(e, "core"))
		if err != nil {
			return err
		}
		if err := r.newLink(id+"_link_"+n, attribute(e, "bw"), attribute(e, "lat"), policy, platform.Link{}); err != nil {
			return err
		}
		last := r.names[len(r.names)-1:]
		r.hosts, names = append(r.hosts, h), append(names, h.id)
		up, down = append(up, back(last)...), append(down, last...)
	}
	// A machine has two routes for each pair.
	if pairs := len(r.routes) + len(names)*(len(names)-1)/2; pairs > platform.MaxParts/2 {
		return r.errorf(r.line, "cluster %q makes %d routes between two hosts, and a machine has at most %d; write fewer hosts", id, pairs, platform.MaxParts/2)
	}
	for i := range names {
		for j := range i {
			r.routes = append(r.routes, simgridRoute{names[j], names[i], slices.Concat(up[j:j+1], middle, down[i:i+1]), false, r.line})
		}
	}
	return r.inside(func(e xml.StartElement) error {
		r.leave(e.Name.Local+" elements of clusters", 1)
		return r.skip()
	})
}

// radical lists the numbers of "0-3,7".
func (r *simgridReader) radical(text string) (all []string, err error) {
	for _, part := range strings.Split(text, ",") {
		low, high, ok := strings.Cut(strings.TrimSpace(part), "-")
		if !ok {
			high = low
		}
		from, errLow := strconv.Atoi(low)
		to, errHigh := strconv.Atoi(high)
		if errLow != nil || errHigh != nil || from < 0 || from > to || to-from >= 1<<12 {
			return nil, r.errorf(r.line, "radical is %q; write numbers such as 0-3,7", text)
		}
		if n := len(all) + to - from + 1; n > maxHosts {
			return nil, r.errorf(r.line, "a cluster of %d hosts, with a route for each pair; write at most %d", n, maxHosts)
		}
		for n := from; n <= to; n++ {
			all = append(all, strconv.Itoa(n))
		}
	}
	return all, nil
}

// finish makes a machine of hosts, links and routes.
func (r *simgridReader) finish() error {
	p := &platform.Platform{Name: clean(strings.TrimSuffix(r.stem(), ".platform"))}
	memory := r.place(p)
	index := map[string]platform.LinkID{}
	for _, id := range r.names {
		index[id] = platform.LinkID(len(p.Links))
		p.Links = append(p.Links, r.links[id])
	}
	for _, way := range r.routes {
		from, okFrom := memory[way.from]
		to, okTo := memory[way.to]
		switch {
		case r.routers[way.from] || r.routers[way.to]: // with all routes in the file, hosts have their own
			r.leave("routes of routers", 1)
			continue
		case !okFrom || !okTo:
			return r.errorf(way.line, "a route from %q to %q, and one of them is no host", way.from, way.to)
		case from == none || to == none:
			r.leave("routes to hosts that are left out", 1)
			continue
		case from == to:
			r.leave("loopbacks", 1)
			continue
		}
		ends := [][2]int{{from, to}, {to, from}}
		for i, links := range [][]string{way.links, back(way.links)} {
			if i == 1 && way.oneWay {
				break
			}
			route := platform.Route{From: platform.MemoryID(ends[i][0]), To: platform.MemoryID(ends[i][1]), OneWay: true}
			for _, id := range links {
				route.Links = append(route.Links, index[id])
			}
			p.Routes = append(p.Routes, route)
		}
	}
	if err := r.complete(p); err != nil {
		return fmt.Errorf("%s: %w", r.name, err)
	}
	r.machine = p
	return nil
}

// complete checks the machine. It marks and counts hosts that no route joins with the memory where data begin.
func (r *simgridReader) complete(p *platform.Platform) error {
	for d := range p.Devices {
		p.Devices[d].Unreachable = true
	}
	if err := p.Complete(); err != nil {
		return err
	}
	begin := p.HostMemory()
	for i := range p.Devices {
		d := &p.Devices[i]
		d.Unreachable = max(p.RouteTime(begin, d.Memory, 0), p.RouteTime(d.Memory, begin, 0)) == platform.Unreachable
		if d.Unreachable {
			r.leave("hosts without a route to and from "+p.Memories[begin].Name+", which no data reach", 1)
		}
	}
	return p.Complete()
}

// place gives each host a device and a memory, and finds the memory by the host. None is the memory of a host that is left out.
func (r *simgridReader) place(p *platform.Platform) map[string]int {
	memory := map[string]int{}
	starpu := slices.ContainsFunc(r.hosts, func(h simgridHost) bool { return h.id == "RAM" }) && slices.ContainsFunc(r.hosts, func(h simgridHost) bool { return h.id == "MAIN" })
	if starpu {
		p.Memories, memory["RAM"] = append(p.Memories, platform.Memory{Name: "RAM", Host: true}), 0
	}
	cores := none
	for _, h := range r.hosts {
		d := h.device
		if len(d.Clocks) == 1 {
			d.Clocks = nil
		}
		if starpu {
			d.FlopsPerSec = nil // is the same for all of StarPU's hosts, and means nothing
		}
		switch kind := strings.TrimRight(h.id, "0123456789"); {
		case starpu && h.id == "RAM":
			continue
		case starpu && kind == "CPU" && cores >= 0:
			p.Devices[cores].Count++
			continue
		case starpu && kind == "CPU":
			d.Name, cores = kind, len(p.Devices)
			p.Devices = append(p.Devices, d)
			continue
		case starpu && kind == "CUDA":
			d.Kind = platform.CUDA
		case starpu:
			r.leave("hosts that are neither cores nor CUDA devices", 1)
			memory[h.id] = none
			continue
		}
		d.Memory = platform.MemoryID(len(p.Memories))
		memory[h.id] = len(p.Memories)
		p.Memories = append(p.Memories, platform.Memory{Name: clean(h.id + ".mem"), CapacityBytes: h.bytes})
		p.Devices = append(p.Devices, d)
	}
	return memory
}
