package layout

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"dahl/dag"
	"dahl/platform"
)

// demandPlatform has a core, and a GPU with a memory of some bytes.
func demandPlatform(t *testing.T, bytes int64) *platform.Platform {
	t.Helper()
	p := &platform.Platform{Name: "demand",
		Memories: []platform.Memory{{Name: "ram", BandwidthBytesPerSec: 1e9}, {Name: "hbm", BandwidthBytesPerSec: 1e9, CapacityBytes: bytes}},
		Devices: []platform.Device{{Name: "cpu", Kind: "cpu", Count: 1, Memory: 0, PowerSource: platform.Guess},
			{Name: "gpu", Kind: "emulated", Count: 1, Memory: 1, PowerSource: platform.Guess}},
		Links:  []platform.Link{{Name: "bus", BandwidthBytesPerSec: 1e9, PowerSource: platform.Guess}},
		Routes: []platform.Route{{From: 0, To: 1, Links: []platform.LinkID{0}}},
	}
	if err := p.Complete(); err != nil {
		t.Fatal(err)
	}
	return p
}

func layOnDemand(t *testing.T, g *dag.Graph, p *platform.Platform, scratch int64) (*Layout, error) {
	t.Helper()
	canRun := func(_ int, task dag.TaskID, d platform.DeviceID) bool {
		return g.Tasks[task].Costs[0].Key == p.Devices[d].Name
	}
	all, err := OnDemand(&dag.Program{Graphs: []*dag.Graph{g}}, p, canRun, [][]int64{{0, scratch}})
	if err != nil {
		return nil, err
	}
	return all[0][1], nil
}

// TestLayoutOnDemandKeepsItsRules: over random graphs and capacities, a layout lies within
// the capacity; storages that one task names, and inputs that nobody writes, share bytes
// with none of those that they must be apart from; with room for all, nothing shares; what
// only the core names has no place.
func TestLayoutOnDemandKeepsItsRules(t *testing.T) {
	sharing, without := 0, 0
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 29))
		b := dag.NewBuilder("random")
		n := 3 + r.IntN(9)
		total := int64(0)
		onGPU := make([]bool, n)
		for i := range n {
			buf := dag.Buffer{Name: fmt.Sprint("b", i), Shape: []int{1 + r.IntN(300)}, Type: dag.Uint8}
			if i == 0 {
				buf.Role = dag.Input
			}
			b.Buffer(buf)
		}
		for k := range 2 + r.IntN(9) {
			key := []string{"cpu", "gpu"}[r.IntN(2)]
			task := dag.Task{Name: fmt.Sprint("t", k), Costs: []dag.Cost{{Key: key, Ns: 7}}}
			for range 1 + r.IntN(3) {
				i := r.IntN(n)
				mode := dag.Write
				if i == 0 {
					mode = dag.Read
				}
				task.Accesses = append(task.Accesses, dag.Access{Region: dag.Region{Buffer: dag.BufferID(i)}, Mode: mode})
				onGPU[i] = onGPU[i] || key == "gpu"
			}
			b.Task(task)
		}
		g, err := b.Build()
		if err != nil {
			continue // an operand twice
		}
		for i, on := range onGPU {
			if on {
				total += Align(g.Buffers[i].Bytes())
			}
		}
		scratch := int64(r.IntN(3) * 100)
		capacity := Align(scratch) + max(1, total*int64(3+r.IntN(9))/10)
		l, err := layOnDemand(t, g, demandPlatform(t, capacity), scratch)
		if err != nil {
			t.Fatal(err)
		}
		if bytes := l.TotalBytes(); bytes > capacity {
			t.Fatalf("seed %d: %d bytes of %d", seed, bytes, capacity)
		}
		meet := func(x, y int) bool {
			return l.Arena[x] == l.Arena[y] && l.Offset[x] < l.Offset[y]+g.Buffers[y].Bytes() && l.Offset[y] < l.Offset[x]+g.Buffers[x].Bytes()
		}
		shared := false
		for x := range n {
			if placed := l.Offset[x] != Elsewhere; placed && !onGPU[x] {
				t.Fatalf("seed %d: buffer %d has a place and nobody there names it", seed, x)
			} else if !placed && onGPU[x] {
				without++
			}
			for y := range x {
				if l.Offset[x] != Elsewhere && l.Offset[y] != Elsewhere && meet(x, y) {
					shared = true
					if together(g, x, y) || g.Buffers[y].Role == dag.Input {
						t.Fatalf("seed %d: buffers %d and %d share bytes", seed, x, y)
					}
				}
			}
		}
		if shared {
			sharing++
		}
		if shared && total+Align(scratch) <= capacity {
			t.Fatalf("seed %d: storages share bytes, and %d of %d are used", seed, total, capacity)
		}
	}
	if sharing < 30 || without < 30 {
		t.Errorf("storages share bytes in %d layouts; %d have no place", sharing, without)
	}
}

// together reports whether some task names both.
func together(g *dag.Graph, x, y int) bool {
	for t := range g.Tasks {
		names := map[dag.BufferID]bool{}
		for _, a := range g.Tasks[t].Accesses {
			names[a.Buffer] = true
		}
		if names[dag.BufferID(x)] && names[dag.BufferID(y)] {
			return true
		}
	}
	return false
}

// TestLayoutOnDemandPrefers: 192 bytes, and x, y and z of 128, 64 and 64, all written and
// read one after the other. x is placed first and y beside it, where it shares with nobody.
// z shares with y or x; x has had its last use before z is written, and y has not, so that
// sharing with x costs less, and z lies at 0.
func TestLayoutOnDemandPrefers(t *testing.T) {
	b := dag.NewBuilder("prefers")
	whole := func(b dag.BufferID, m dag.Mode) dag.Access { return dag.Access{Region: dag.Region{Buffer: b}, Mode: m} }
	x := b.Buffer(dag.Buffer{Name: "x", Shape: []int{128}, Type: dag.Uint8})
	y := b.Buffer(dag.Buffer{Name: "y", Shape: []int{64}, Type: dag.Uint8})
	z := b.Buffer(dag.Buffer{Name: "z", Shape: []int{64}, Type: dag.Uint8})
	gpu := []dag.Cost{{Key: "gpu", Ns: 7}}
	first := b.Task(dag.Task{Name: "a", Costs: gpu, Accesses: []dag.Access{whole(x, dag.Write)}})
	second := b.Task(dag.Task{Name: "b", Costs: gpu, After: []dag.TaskID{first}, Accesses: []dag.Access{whole(y, dag.Write)}})
	third := b.Task(dag.Task{Name: "c", Costs: gpu, After: []dag.TaskID{second}, Accesses: []dag.Access{whole(z, dag.Write)}})
	b.Task(dag.Task{Name: "d", Costs: gpu, After: []dag.TaskID{third}, Accesses: []dag.Access{whole(y, dag.Read)}})
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	l, err := layOnDemand(t, g, demandPlatform(t, 192), 0)
	if err != nil {
		t.Fatal(err)
	}
	if l.Offset[x] != 0 || l.Offset[y] != 128 || l.Offset[z] != 0 {
		t.Errorf("x at %d, y at %d, z at %d; want 0, 128, 0", l.Offset[x], l.Offset[y], l.Offset[z])
	}
}

// TestLayoutOnDemandRefuses: a workspace that does not fit, and a home that is too small.
func TestLayoutOnDemandRefuses(t *testing.T) {
	b := dag.NewBuilder("refused")
	x := b.Buffer(dag.Buffer{Name: "x", Shape: []int{129}, Type: dag.Uint8, Role: dag.Parameter, Home: "hbm"})
	b.Task(dag.Task{Name: "a", Costs: []dag.Cost{{Key: "gpu", Ns: 7}}, Accesses: []dag.Access{{Region: dag.Region{Buffer: x}, Mode: dag.Read}}})
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		bytes, scratch int64
		want           string
	}{{128, 200, "workspace"}, {191, 0, `buffer "x" of 129 B, which is at home there`}} {
		if _, err := layOnDemand(t, g, demandPlatform(t, c.bytes), c.scratch); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v, want one with %s", err, c.want)
		}
	}
	if _, err := layOnDemand(t, g, demandPlatform(t, 192), 0); err != nil {
		t.Error(err)
	}
}
