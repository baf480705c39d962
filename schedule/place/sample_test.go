package place

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"dahl/dag"
	"dahl/must"
	"dahl/platform"
)

// randomMemories is a platform of two to four memories, one or two workers at each. The
// host memory is any of them; the others hang on it by links of their own, and some
// neighbours have a route besides.
func randomMemories(t *testing.T, r *rand.Rand) *platform.Platform {
	t.Helper()
	p := &platform.Platform{Name: "random"}
	n := 2 + r.IntN(3)
	host := r.IntN(n)
	for i := range n {
		d := platform.Device{Name: fmt.Sprintf("d%d", i), Kind: "emulated", Count: 1 + r.IntN(2), Memory: platform.MemoryID(i),
			CopyEnginesIn: r.IntN(3), CopyEnginesOut: r.IntN(3), PowerSource: platform.Guess}
		if i == host {
			d.Kind = "cpu"
		}
		p.Devices = append(p.Devices, d)
		p.Memories = append(p.Memories, platform.Memory{Name: fmt.Sprintf("m%d", i), BandwidthBytesPerSec: 1e9})
	}
	join := func(a, b int) {
		p.Routes = append(p.Routes, platform.Route{From: platform.MemoryID(a), To: platform.MemoryID(b), Links: []platform.LinkID{platform.LinkID(len(p.Links))}})
		p.Links = append(p.Links, platform.Link{Name: fmt.Sprintf("l%d", len(p.Links)), BandwidthBytesPerSec: 1e9, Latency: []time.Duration{2, 200}[len(p.Links)%2], PowerSource: platform.Guess})
	}
	for i := range n {
		if i != host {
			join(host, i)
		}
		if i > 0 && i != host && i-1 != host && r.IntN(2) == 0 {
			join(i-1, i)
		}
	}
	must.Do(t, p.Complete())
	return p
}

// randomBody is a graph over parameters, inputs with and without a home, activations
// that are rewritten, and some that are read before they are written; regions are boxes
// of the storages or of views that merge their dimensions.
func randomBody(t *testing.T, r *rand.Rand, p *platform.Platform, name string) *dag.Graph {
	t.Helper()
	b := dag.NewBuilder(name)
	var readable, writable []dag.BufferID
	buffer := func(role dag.Role, home string) {
		shape := [][]int{{2, 3, 5}, {7}, {1, 11}, {3, 4}, {1}}[r.IntN(5)]
		id := b.Buffer(dag.Buffer{Name: fmt.Sprintf("b%d", len(readable)), Shape: shape, Type: dag.Float32, Role: role, Home: home})
		readable = append(readable, id)
		if role != dag.Input {
			writable = append(writable, id)
		}
		if elems := b.BufferAt(id); len(shape) > 1 && r.IntN(3) == 0 {
			v := b.View(fmt.Sprintf("v%d", len(readable)), id, int(elems.Elems()))
			readable = append(readable, v)
			if role != dag.Input {
				writable = append(writable, v)
			}
		}
	}
	region := func(id dag.BufferID) dag.Region {
		if r.IntN(3) == 0 {
			return dag.Region{Buffer: id}
		}
		var box dag.Box
		for _, e := range b.BufferAt(id).Shape {
			lo := r.IntN(e)
			box = append(box, dag.Range{Lo: lo, Hi: lo + 1 + r.IntN(e-lo)})
		}
		return dag.Region{Buffer: id, Box: box}
	}
	home := func() string { return []string{"", dag.HostHome, p.Memories[r.IntN(len(p.Memories))].Name}[r.IntN(3)] }
	for range 1 + r.IntN(3) {
		buffer(dag.Input, home())
		buffer(dag.Parameter, home())
	}
	storage := func(id dag.BufferID) dag.BufferID {
		if v := b.BufferAt(id).ViewOf; v != dag.None {
			return v
		}
		return id
	}
	for i := range 3 + r.IntN(15) {
		task := dag.Task{Name: fmt.Sprintf("t%02d", i*37%101), Op: "op"}
		used := map[dag.BufferID]bool{}
		access := func(id dag.BufferID, mode dag.Mode) {
			if !used[storage(id)] {
				used[storage(id)] = true
				task.Accesses = append(task.Accesses, dag.Access{Region: region(id), Mode: mode})
			}
		}
		for range r.IntN(3) {
			access(readable[r.IntN(len(readable))], dag.Read)
		}
		for range r.IntN(3) {
			access(writable[r.IntN(len(writable))], []dag.Mode{dag.Write, dag.ReadWrite}[r.IntN(2)])
		}
		if r.IntN(2) == 0 {
			buffer(dag.Activation, "")
			id := writable[len(writable)-1]
			used[storage(id)] = true
			task.Accesses = append(task.Accesses, dag.Access{Region: dag.Region{Buffer: id}, Mode: dag.Write})
		}
		if i > 0 && r.IntN(4) == 0 {
			task.After = []dag.TaskID{dag.TaskID(r.IntN(i))}
		}
		task.Costs = []dag.Cost{{Key: dag.AnyDevice, Ns: int64(r.IntN(20))}}
		b.Task(task)
	}
	return must.Get(b.Build())(t)
}

// randomPlan puts every task on any worker, in any order that the graph allows.
func randomPlan(r *rand.Rand, g *dag.Graph, workers int) *Input {
	plan := &Input{Order: make([][]dag.TaskID, workers)}
	waits := make([]int, len(g.Tasks))
	var free []dag.TaskID
	for t := range waits {
		if waits[t] = len(g.Preds(dag.TaskID(t))); waits[t] == 0 {
			free = append(free, dag.TaskID(t))
		}
	}
	used := 1 + r.IntN(workers)
	for len(free) > 0 {
		k := r.IntN(len(free))
		t := free[k]
		free = slices.Delete(free, k, k+1)
		w := r.IntN(used)
		plan.Order[w] = append(plan.Order[w], t)
		for _, s := range g.Succs(t) {
			if waits[s]--; waits[s] == 0 {
				free = append(free, dag.TaskID(s))
			}
		}
	}
	return plan
}

// placeAll places plans with scratch sizes, by graph and memory; nil: no scratch. Tasks take what
// the graph says, where a plan does not.
func placeAll(prog *dag.Program, p *platform.Platform, plans []*Input, scratch [][]int64) (*Program, error) {
	inputs := make([]Input, len(plans))
	for i, plan := range plans {
		inputs[i] = *plan
		if inputs[i].ScratchBytes = make([]int64, len(p.Memories)); scratch != nil {
			inputs[i].ScratchBytes = scratch[i]
		}
		if plan.Occupies == nil {
			inputs[i].Occupies = func(t dag.TaskID, _ platform.WorkerID) time.Duration {
				return time.Duration(prog.Graphs[i].Tasks[t].Costs[0].Ns)
			}
		}
	}
	return Compile(prog, p, inputs)
}

func access(b dag.BufferID, m dag.Mode) dag.Access {
	return dag.Access{Region: dag.Region{Buffer: b}, Mode: m}
}

// randomPlaced is one random graph, plan and platform, placed.
func randomPlaced(t *testing.T, seed uint64) (*Program, *rand.Rand) {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 17))
	p := randomMemories(t, r)
	g := randomBody(t, r, p, "loop")
	plan := randomPlan(r, g, len(p.Workers))
	if seed%2 == 1 {
		g = randomCopies(t, seed, g, p, plan)
	}
	prog := &dag.Program{Name: "program", Graphs: []*dag.Graph{g}}
	placed, err := placeAll(prog, p, []*Input{plan}, nil)
	if err != nil {
		t.Fatalf("seed %d: %v", seed, err)
	}
	return placed, r
}

// randomCopies gives up to four copies to some of the storages that can have several, by the graph or,
// at some of the memories where its tasks use them, by the plan.
func randomCopies(t *testing.T, seed uint64, g *dag.Graph, p *platform.Platform, plan *Input) *dag.Graph {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 18))
	most := slices.Repeat([]int32{1}, len(g.Buffers))
	several := func(b dag.BufferID) bool {
		buf := &g.Buffers[b]
		return buf.ViewOf == dag.None && buf.Home == "" && g.WrittenStorages()[b] && !g.Carried(b) && r.IntN(2) == 0
	}
	byPlan := r.IntN(2) == 0
	if byPlan {
		plan.Versions = []PlannedVersions{}
	}
	for b := range most {
		if !several(dag.BufferID(b)) {
			continue
		}
		if !byPlan {
			most[b] = 1 + int32(r.IntN(4))
			continue
		}
		for w, list := range plan.Order {
			m := p.Memories[p.MemoryOf(platform.WorkerID(w))].Name
			is := func(a dag.Access) bool { return g.Storage(a.Buffer) == dag.BufferID(b) }
			uses := slices.ContainsFunc(list, func(t dag.TaskID) bool { return slices.ContainsFunc(g.Tasks[t].Accesses, is) })
			listed := func(c PlannedVersions) bool { return c.Memory == m && c.Buffer == g.Buffers[b].Name }
			if uses && r.IntN(3) > 0 && !slices.ContainsFunc(plan.Versions, listed) {
				plan.Versions = append(plan.Versions, PlannedVersions{m, g.Buffers[b].Name, 1 + r.IntN(4)})
				most[b] = max(most[b], int32(plan.Versions[len(plan.Versions)-1].Versions))
			}
		}
	}
	return must.Get(g.WithVersions(most))(t)
}

// graphOf is a placed graph written out.
func graphOf(t *testing.T, pg *Graph) *dag.Graph {
	t.Helper()
	return must.Get(pg.Graph())(t)
}
