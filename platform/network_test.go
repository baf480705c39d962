package platform

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"dahl/must"
)

// wired is count boxes, each by a wire at one of routers switches, and the wires of a [[link]] between these.
func wired(count, routers int, between string) string {
	return boxes(fmt.Sprint(count)) + fmt.Sprintf(`[[switch]]
name = "r"
count = %d
[[link]]
name = "nic"
from = "n"
to = "r"
bandwidth = "6 GB/s"
sharing = "duplex"
`, routers) + between
}

const tree = `[[switch]]
name = "s"
count = 2
[[link]]
name = "up"
from = "r"
to = "s"
joins = "each"
bandwidth = "6 GB/s"
sharing = "duplex"
`

const torus43 = `[[link]]
name = "to"
from = "r"
to = "r"
joins = "torus"
shape = [4, 3]
bandwidth = "6 GB/s"
sharing = "duplex"
`

const dragonfly = `[[link]]
name = "local"
from = "r"
to = "r"
joins = "each"
group = 2
bandwidth = "6 GB/s"
[[link]]
name = "global"
from = "r"
to = "r"
joins = "groups"
group = 2
order = 1
bandwidth = "6 GB/s"
`

// Routes between the hosts of two nodes, by the definitions of the networks. Only switches are listed.
func TestNetworkRoutes(t *testing.T) {
	for name, c := range map[string]struct {
		text  string
		links int // of the network, without those of the boxes
		ways  map[string]string
	}{
		// Three nodes at each of two leaves, two spines. Uplinks are shared out by the number of the destination: even
		// ones go by s0.
		"fat tree": {wired(6, 2, tree), 6 + 4 + 4, map[string]string{"n0 n1": "r0", "n0 n3": "r0 s1 r1", "n0 n4": "r0 s0 r1", "n1 n4": "r0 s0 r1", "n4 n1": "r1 s1 r0"}},
		// Router 4y + x is at (x, y). First along x, the shorter way round, then along y. From x = 0 to x = 2 both ways are as long:
		// even destinations take the first of the two wires at r0, to r1. r1's wires are to r0 and r2: odd ones take the second.
		"torus": {wired(12, 12, torus43), 12 + 12 + 24, map[string]string{"n0 n3": "r0 r3", "n0 n7": "r0 r3 r7", "n0 n10": "r0 r1 r2 r10", "n1 n7": "r1 r2 r3 r7", "n7 n0": "r7 r4 r0", "n5 n11": "r5 r6 r7 r11"}},
		// Three groups of two routers. A way along a link of the group goes before one as long along two between groups. Links between groups: 0-1 from r0 to r2, 0-2 from r1 to r4, 1-2 from r3 to r5.
		"dragonfly": {wired(6, 6, dragonfly), 6 + 6 + 3 + 3, map[string]string{"n0 n1": "r0 r1", "n0 n2": "r0 r2", "n0 n3": "r0 r2 r3", "n0 n5": "r0 r1 r4 r5", "n2 n4": "r2 r3 r5 r4"}},
	} {
		p := must.Get(clusterOf(t, c.text))(t)
		if got := len(p.Links) - 2*len(p.Nodes); got != c.links {
			t.Errorf("%s: %d links, want %d", name, got, c.links)
		}
		for pair, want := range c.ways {
			from, to, _ := strings.Cut(pair, " ")
			a, _ := p.MemoryByName(from + ".ram")
			b, _ := p.MemoryByName(to + ".ram")
			var through []string
			links, _ := p.Route(a, b)
			for _, l := range links {
				if p.Links[l].Switch {
					through = append(through, p.Links[l].Name)
				}
			}
			if got := strings.Join(through, " "); got != want {
				t.Errorf("%s: %s by way of %s, want %s", name, pair, got, want)
			}
		}
		checkRoundTrip(t, p)
	}
}

// Shares of links by latency need latencies, and are written again.
func TestShareSize(t *testing.T) {
	for size, want := range map[string]int64{"0 B": 0, "20537 B": 20537} {
		p := must.Get(clusterOf(t, "share_size = \""+size+"\"\n"+boxes("2")+oneSwitch))(t)
		if !p.BySize || p.ShareBytes != want {
			t.Errorf("%s: %v, %d", size, p.BySize, p.ShareBytes)
		}
		checkRoundTrip(t, p)
	}
	_, err := clusterOf(t, "share_size = \"0 B\"\n"+boxes("2")+strings.Replace(oneSwitch, "latency = \"2 us\"\n", "", 1))
	if err == nil || !strings.HasSuffix(err.Error(), `link "n0.nic": flows share by latency, and this link has none; write share_size with more than 0 B, or a latency`) {
		t.Errorf("got %v", err)
	}
	// 3 + 2 + 1 + 2 + 3 us, and 8 kB: 1 us over each link of 8 GB/s, 1.6 us over each of 5 GB/s, and 0.8 us over a switch with two ports of 5 GB/s.
	p := must.Get(clusterOf(t, boxes("2")+oneSwitch))(t)
	from, _ := p.MemoryByName("n0.hbm1")
	to, _ := p.MemoryByName("n1.hbm0")
	if got := p.FlowTime(from, to, 8000); math.Abs(got-17e-6) > 1e-15 {
		t.Errorf("the time of 8 kB is %g s", got)
	}
}

// A switch without a bandwidth has that of its ports together, so that its watts are full when all of them are. With two ports of
// 5 GB/s and 20 to 50 W a byte takes 30 W / 10 GB/s = 3 nJ there. An adaptor of 5 to 15 W carries 5 GB/s each way at once: 1 nJ.
func TestSwitchJoules(t *testing.T) {
	p := must.Get(clusterOf(t, boxes("2")+strings.Replace(oneSwitch, "sharing", "power = { idle = \"5 W\", busy = \"15 W\" }\nsharing", 1)))(t)
	a, _ := p.MemoryByName("n0.ram")
	b, _ := p.MemoryByName("n1.ram")
	if got := p.RouteJoulesPerByte(a, b); !near(got, 5e-9, 1e-12) {
		t.Errorf("a byte takes %g J, want 1 + 3 + 1 nJ", got)
	}
}
