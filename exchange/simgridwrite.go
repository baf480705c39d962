package exchange

import (
	"bufio"
	"encoding/xml"
	"fmt"
	"io"
	"strconv"
	"strings"

	"dahl/dag"
	"dahl/platform"
)

// WriteSimGrid writes a machine as a platform of SimGrid's. A device is a host with a core for each unit. A memory has the host of its first device;
// the others are joined to it by a link that takes no time. Pairs of memories without a route of their own have none here. Measured
// models, sleep states, caches and what starting a task takes are left out.
func WriteSimGrid(w io.Writer, p *platform.Platform) error {
	out := bufio.NewWriter(w)
	fmt.Fprintf(out, "<?xml version=\"1.0\"?>\n<!DOCTYPE platform SYSTEM \"https://simgrid.org/simgrid.dtd\">\n<platform version=\"4.1\">\n  <zone id=\"%s\" routing=\"Full\">\n", quoteXML(p.Name))
	hosts := make([]string, len(p.Memories))
	for d := range p.Devices {
		writeHost(out, p, &p.Devices[d])
		if m := p.Devices[d].Memory; hosts[m] == "" {
			hosts[m] = p.Devices[d].Name
		}
	}
	for m := range hosts {
		if hosts[m] == "" {
			hosts[m] = p.Memories[m].Name
			fmt.Fprintf(out, "    <host id=\"%s\" speed=\"1f\"/>\n", quoteXML(hosts[m]))
		}
	}
	for i := range p.Links {
		l := &p.Links[i]
		policy := map[platform.Sharing]string{platform.Shared: "SHARED", platform.Duplex: "SPLITDUPLEX", platform.Fatpipe: "FATPIPE"}[l.Sharing]
		fmt.Fprintf(out, "    <link id=\"%s\" bandwidth=\"%sBps\" latency=\"%sns\" sharing_policy=\"%s\"", quoteXML(l.Name), exact(l.BandwidthBytesPerSec), strconv.FormatInt(int64(l.Latency), 10), policy)
		if l.PowerSource == "" {
			fmt.Fprintln(out, "/>")
		} else {
			fmt.Fprintf(out, "><prop id=\"wattage_range\" value=\"%s:%s\"/></link>\n", exact(l.IdleWatts), exact(l.BusyWatts))
		}
	}
	writeNeighbours(out, p, hosts)
	for i := range p.Routes {
		r := &p.Routes[i]
		writeRoute(out, p, hosts, r.From, r.To)
		if !r.OneWay {
			writeRoute(out, p, hosts, r.To, r.From)
		}
	}
	fmt.Fprint(out, "  </zone>\n</platform>\n")
	return out.Flush()
}

// exact is a number with all its digits.
func exact(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }

func quoteXML(text string) string {
	var out strings.Builder
	xml.EscapeText(&out, []byte(text)) // a Builder never fails
	return out.String()
}

// writeHost writes a device with its clocks and watts.
func writeHost(out io.Writer, p *platform.Platform, d *platform.Device) {
	var speeds, watts []string
	for c := range d.NumClocks() {
		speeds = append(speeds, exact(max(1, d.FlopsPerSec[dag.Float32.String()])*d.ClockAt(c).Scale)+"f")
		idle, first, all := d.Watts(c, 0), d.Watts(c, 1), d.Watts(c, d.Count)
		above := idle // of the device at next to no load
		if d.Count > 1 {
			above = first - (all-first)/float64(d.Count-1)
		}
		watts = append(watts, exact(idle)+":"+exact(above)+":"+exact(all))
	}
	fmt.Fprintf(out, "    <host id=\"%s\" speed=\"%s\" pstate=\"%d\" core=\"%d\">\n", quoteXML(d.Name), strings.Join(speeds, ","), d.AtClock, d.Count)
	if d.PowerSource != "" {
		fmt.Fprintf(out, "      <prop id=\"wattage_per_state\" value=\"%s\"/>\n", strings.Join(watts, ", "))
	}
	if d.MayBeOff {
		fmt.Fprintf(out, "      <prop id=\"wattage_off\" value=\"%s\"/>\n", exact(d.OffWatts))
	}
	if bytes := p.Memories[d.Memory].CapacityBytes; bytes > 0 {
		fmt.Fprintf(out, "      <prop id=\"memsize\" value=\"%d\"/>\n", bytes)
	}
	fmt.Fprintf(out, "      <prop id=\"kind\" value=\"%s\"/>\n    </host>\n", d.Kind)
}

// writeNeighbours joins the devices of one memory.
func writeNeighbours(out io.Writer, p *platform.Platform, hosts []string) {
	const id = "same_memory"
	begun := false
	for d := range p.Devices {
		to, from := p.Devices[d].Name, hosts[p.Devices[d].Memory]
		if from == to {
			continue
		}
		if !begun {
			fmt.Fprintf(out, "    <link id=\"%s\" bandwidth=\"1PBps\" latency=\"0s\" sharing_policy=\"FATPIPE\"/>\n", id)
			begun = true
		}
		fmt.Fprintf(out, "    <route src=\"%s\" dst=\"%s\"><link_ctn id=\"%s\"/></route>\n", quoteXML(from), quoteXML(to), id)
	}
}

// writeRoute writes the way from one memory to another.
func writeRoute(out io.Writer, p *platform.Platform, hosts []string, from, to platform.MemoryID) {
	fmt.Fprintf(out, "    <route src=\"%s\" dst=\"%s\" symmetrical=\"NO\">", quoteXML(hosts[from]), quoteXML(hosts[to]))
	directions := map[platform.LinkID]int32{}
	for _, u := range p.LinkUses(from, to) {
		directions[u.Link] = u.Direction
	}
	links, _ := p.Route(from, to)
	for _, l := range links {
		direction := ""
		if p.Links[l].Sharing == platform.Duplex {
			direction = [...]string{` direction="UP"`, ` direction="DOWN"`}[directions[l]]
		}
		fmt.Fprintf(out, "<link_ctn id=\"%s\"%s/>", quoteXML(p.Links[l].Name), direction)
	}
	fmt.Fprintln(out, "</route>")
}
