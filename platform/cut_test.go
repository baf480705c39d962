package platform

import (
	"slices"
	"strings"
	"testing"

	"dahl/must"
)

// Rates derived by hand, in GB/s, into one part and out of it, and both ways. A box has two GPUs on duplex links of 8 and an
// adaptor of 6.
func TestCutRates(t *testing.T) {
	slow := strings.Replace(torus43, "6 GB/s", "1 GB/s", 1)
	narrow := strings.Replace(oneSwitch, `latency = "1 us"`, "bandwidth = \"7 GB/s\"\nlatency = \"1 us\"", 1)
	shared := strings.Replace(oneSwitch, `sharing = "duplex"`, "", 1)
	for _, c := range []struct {
		words, text  string
		nodes        int // in a block
		in, out, all float64
	}{
		{"a node behind its adaptor", boxes("4") + oneSwitch, 1, 5, 5, 10},
		{"an adaptor for both directions", boxes("4") + shared, 1, 5, 5, 5},
		{"half of four nodes at one switch: their adaptors", boxes("4") + oneSwitch, 2, 10, 10, 20},
		{"a switch of 7 for both directions", boxes("4") + narrow, 2, 7, 7, 7},
		{"three nodes of 6 at a leaf with uplinks of 6 to two spines", wired(6, 2, tree), 3, 12, 12, 24},
		{"six of twelve nodes on a torus of 4 by 3, each with a router: routers 0 to 5 have two wires along their row and two in each of four columns to the others", wired(12, 12, slow), 6, 10, 10, 20},
		{"a row of that torus: two wires in each of four columns", wired(12, 12, slow), 4, 8, 8, 16},
		{"where these carry 6 each, the adaptors of six nodes are the limit", wired(12, 12, torus43), 6, 36, 36, 72},
	} {
		p := must.Get(clusterOf(t, c.text))(t)
		var part []int32
		for m := range p.Memories {
			part = append(part, int32(p.NodeOf(MemoryID(m)))/int32(c.nodes))
		}
		in, out, both := p.CutRates(part, len(p.Nodes)/c.nodes)
		if want := []float64{c.in * 1e9, c.out * 1e9, c.all * 1e9}; !slices.Equal([]float64{in[0], out[0], both[0]}, want) {
			t.Errorf("%s: %g in, %g out, %g both ways, want %g", c.words, in[0], out[0], both[0], want)
		}
	}
	// Memories by themselves: a GPU has its link. A host has those of two GPUs and its adaptor.
	p := must.Get(clusterOf(t, boxes("3")+oneSwitch))(t)
	var each []int32
	for m := range p.Memories {
		each = append(each, int32(m))
	}
	in, out, both := p.CutRates(each, len(each))
	for name, want := range map[string]float64{"n1.hbm0": 8e9, "n1.ram": 8e9 + 8e9 + 5e9} {
		if m, _ := p.MemoryByName(name); in[m] != want || out[m] != want || both[m] != 2*want {
			t.Errorf("%s: %g in, %g out, %g both ways", name, in[m], out[m], both[m])
		}
	}
}
