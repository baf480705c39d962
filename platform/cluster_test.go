package platform

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"dahl/must"
	"dahl/platform/tomlfile"
)

// machine is a node of the clusters here: a processor and two GPUs, with a model of one and of their kind.
const machine = `name = "box"
host_power = { watts = "30 W", source = "measured" }
[[memory]]
name = "ram"
[[memory]]
name = "hbm0"
[[memory]]
name = "hbm1"
[[device]]
name = "cpu"
kind = "cpu"
count = 2
memory = "ram"
speed = { float32 = "10 GF/s" }
[[device]]
name = "gpu0"
kind = "cuda"
memory = "hbm0"
copy_engines = { in = 1, out = 1 }
[[device]]
name = "gpu1"
kind = "cuda"
memory = "hbm1"
copy_engines = { in = 1, out = 1 }
[[link]]
name = "pcie0"
bandwidth = "8 GB/s"
latency = "3 us"
sharing = "duplex"
[[link]]
name = "pcie1"
bandwidth = "8 GB/s"
latency = "3 us"
sharing = "duplex"
[[route]]
from = "ram"
to = "hbm0"
links = ["pcie0"]
[[route]]
from = "ram"
to = "hbm1"
links = ["pcie1"]
[[model]]
op = "relu"
type = "float32"
device = "gpu1"
shape = "7"
median = "3 us"
[[model]]
op = "relu"
type = "float32"
device = "cuda"
shape = "7"
median = "5 us"
`

// clusterOf loads a cluster of some boxes with the text of its network.
func clusterOf(t testing.TB, text string) (*Platform, error) {
	dir := t.TempDir()
	must.Do(t, os.WriteFile(filepath.Join(dir, "box.toml"), []byte(machine), 0o644))
	must.Do(t, os.WriteFile(filepath.Join(dir, "c.toml"), []byte("name = \"c\"\n"+text), 0o644))
	return Load(filepath.Join(dir, "c.toml"))
}

// boxes is count boxes, n0 and so on.
func boxes(count string) string {
	return "[[node]]\nname = \"n\"\nplatform = \"box.toml\"\ncount = " + count + "\n"
}

const oneSwitch = `[[link]]
name = "nic"
from = "n"
to = "sw"
bandwidth = "5 GB/s"
latency = "2 us"
sharing = "duplex"
[[switch]]
name = "sw"
latency = "1 us"
power = { idle = "20 W", busy = "50 W" }
`

func TestClusterOfBoxes(t *testing.T) {
	p := must.Get(clusterOf(t, boxes("3")+oneSwitch))(t)
	checkRoundTrip(t, p)
	if len(p.Nodes) != 3 || len(p.Memories) != 9 || len(p.Devices) != 9 || len(p.Links) != 3*2+3+1 {
		t.Fatalf("%d nodes, %d memories, %d devices, %d links", len(p.Nodes), len(p.Memories), len(p.Devices), len(p.Links))
	}
	memory := func(name string) MemoryID {
		m, ok := p.MemoryByName(name)
		if !ok {
			t.Fatalf("no memory %q", name)
		}
		return m
	}
	if n := p.NodeOf(memory("n2.hbm1")); n != 2 || p.Nodes[n].Name != "n2" || p.HostOf(memory("n2.hbm1")) != memory("n2.ram") || p.HostMemory() != memory("n0.ram") {
		t.Errorf("n2.hbm1 is of node %d", n)
	}
	if w := p.HostWatts(); w != (Quantity{90, Measured}) {
		t.Errorf("the hosts draw %v", w)
	}
	// A GPU of n0 to one of n2: PCIe up, wire, switch, wire, PCIe down, by way of both hosts.
	from, to := memory("n0.hbm1"), memory("n2.hbm0")
	if got, want := strings.Join(linkNames(p, from, to), " "), "n0.pcie1 n0.nic sw n2.nic n2.pcie0"; got != want {
		t.Errorf("the route is %s, want %s", got, want)
	}
	if got, want := p.Stops(from, to), []MemoryID{memory("n0.ram"), memory("n2.ram"), to}; !slices.Equal(got, want) {
		t.Errorf("copies end in %v, want %v", got, want)
	}
	// 3 + 2 + 1 + 2 + 3 us, and 5 MB at 5 GB/s.
	if got := p.RouteTime(from, to, 5e6); got != 1_011_000 {
		t.Errorf("5 MB take %v", got)
	}
	// Both wires are crossed in opposite directions: out of n0 from its first end, into n2 to its first end.
	for _, use := range p.LinkUses(from, to) {
		if want := map[string]int32{"n0.nic": 0, "n2.nic": 1}[p.Links[use.Link].Name]; strings.HasSuffix(p.Links[use.Link].Name, "nic") && use.Direction != want {
			t.Errorf("%s is crossed in direction %d", p.Links[use.Link].Name, use.Direction)
		}
	}
	// The ordinals are those of each machine's driver, and the models those of the class.
	for name, want := range map[string]float64{"n1.gpu0": 5000, "n1.gpu1": 3000} {
		d, _ := p.DeviceByName(name)
		e, ok := p.Estimate(Query{Op: "relu", Type: "float32", Device: d, Shape: "7"})
		if !ok || float64(e.Duration) != want || p.Devices[d].Ordinal != int(name[len(name)-1]-'0') {
			t.Errorf("%s: %v, %v, number %d", name, e, ok, p.Devices[d].Ordinal)
		}
	}
}

func linkNames(p *Platform, from, to MemoryID) (names []string) {
	links, _ := p.Route(from, to)
	for _, l := range links {
		names = append(names, p.Links[l].Name)
	}
	return names
}

// Nodes and classes name their devices. A node without one is off, if it may be.
func TestSelectOfNodes(t *testing.T) {
	off := strings.Replace(boxes("6"), "count", "off_power = \"4 W\"\ncount", 1)
	p := must.Get(clusterOf(t, off+oneSwitch))(t)
	for list, want := range map[string]struct {
		names string
		watts float64 // of the hosts: 30 each, 4 for one that is off
	}{
		"n1":                      {"n1.cpu n1.gpu0 n1.gpu1", 30 + 5*4},
		"n0…n1.gpu0":              {"n0.cpu n0.gpu0 n1.gpu0", 2*30 + 4*4},
		"n4..n5.gpu0..gpu1":       {"n4.cpu n4.gpu0 n4.gpu1 n5.gpu0 n5.gpu1", 2*30 + 4*4},
		"n.cpu:1":                 {"n0.cpu n1.cpu n2.cpu n3.cpu n4.cpu n5.cpu", 6 * 30},
		"n2.cuda,n3.gpu,n2.cpu:1": {"n2.cpu n2.gpu0 n2.gpu1 n3.gpu0 n3.gpu1", 2*30 + 4*4},
	} {
		q, err := p.Select(list)
		if err != nil {
			t.Errorf("%s: %v", list, err)
			continue
		}
		if got := strings.Join(q.deviceNames(), " "); got != want.names || q.HostWatts().Value != want.watts {
			t.Errorf("%s: %s with %g W, want %s with %g W", list, got, q.HostWatts().Value, want.names, want.watts)
		}
		if first := q.Memories[q.HostMemory()].Name; first != q.Nodes[q.NodeOf(q.Devices[0].Memory)].Name+".ram" {
			t.Errorf("%s: results are in %s", list, first)
		}
		if again, err := q.Select(List(q.Usable())); err != nil || !alike(again, q) {
			t.Errorf("%s: selecting %s again gives another platform, %v", list, List(q.Usable()), err)
		}
		if len(q.Models) > 0 {
			checkRoundTrip(t, q)
		}
	}
	if got := List(must.Get(p.Select("gpu"))(t).Usable()); got != "n0…n5.gpu0…gpu1" {
		t.Errorf("all GPUs are %s", got)
	}
	want := `platform "c" has no device or kind "n9"; it has n0…n5.cpu, n0…n5.gpu0…gpu1; did you mean `
	if _, err := p.Select("n9"); err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("n9: %v", err)
	}
}

func TestClusterErrors(t *testing.T) {
	for text, want := range map[string]string{
		boxes("0"): `c.toml:5: node "n": count = 0: want a whole number from 1 to 16384`,
		boxes("2"): `c.toml:2: device "n1.cpu": no route leads from "n0.ram", the host memory of the first node, to "n1.ram"; add a [[route]], or between nodes a [[link]] with from and to, or write unreachable = true where that is meant`,
		boxes("2") + oneSwitch + "[[switch]]\nname = \"sw\"\n":                                                `c.toml:18: link "sw": this name is taken; give each its own`,
		boxes("2") + strings.Replace(oneSwitch, `"sw"`, `"s"`, 1):                                             `c.toml:9: link "nic": to = "s": no node, memory or switch has this name; a link of a network has both ends, from and to`,
		boxes("3") + strings.Replace(oneSwitch, `"sw"`, `"n"`, 1):                                             `c.toml:9: link "nic": to = "n": 3 ends are not shared out evenly among 3 others; write joins = "each", "torus" or "groups", or other counts`,
		boxes("3") + strings.Replace(oneSwitch, `to = "sw"`, "to = \"n\"\njoins = \"torus\"\nshape = [2]", 1): `c.toml:9: link "nic": to = "n": a torus of 3 ends; write their shape, such as shape = [4, 4], whose product is their number`,
		"[[node]]\nname = \"n\"\nplatform = \"c.toml\"\n":                                                     `c.toml:4: node "n": DIR/c.toml:4: node "n": a node is one machine, and its platform has no nodes`,
		"[[node]]\nname = \"n\"\nplatform = \"none.toml\"\n":                                                  `c.toml:4: node "n": read the platform: open DIR/none.toml: no such file or directory`,
		"[[node]]\nname = \"n\"\ncount = 2\n":                                                                 `c.toml:4: node "n": count = 2: write platform = "…" too, the machine of which these nodes are`,
		"[[node]]\nname = \"n\"\n":                                                                            `c.toml:1: no memory; add a [[memory]]`,
	} {
		_, err := clusterOf(t, text)
		if err == nil {
			t.Errorf("%s: no error, want %s", text, want)
			continue
		}
		dir := filepath.Dir(strings.SplitN(err.Error(), ":", 2)[0])
		if got := strings.ReplaceAll(strings.TrimPrefix(err.Error(), dir+"/"), dir, "DIR"); got != want {
			t.Errorf("%s:\n got %s\nwant %s", text, got, want)
		}
	}
}

// TestClusterOfTooMany: nodes are counted while they are made. Three of 2^17 routes are more than 2^18, so that the fourth is not made.
func TestClusterOfTooMany(t *testing.T) {
	f, top := must.Get2(tomlfile.Parse([]byte("[[node]]\n\ncount = 4\n"), "c.toml"))(t)
	machine := &Platform{Memories: make([]Memory, 1), Routes: make([]Route, 1<<17)}
	p := &Platform{}
	p.addNodes(&nodeTable{Node: Node{Name: "n"}, Count: 4}, machine, top.Tables("node")[0])
	want := "c.toml:3: node 1: count = 4: more than 262144 memories, devices, links or routes in all"
	if f.Err == nil || f.Err.Error() != want || len(p.Nodes) != 3 {
		t.Errorf("%d nodes, error %v, want 3 and %s", len(p.Nodes), f.Err, want)
	}
}
