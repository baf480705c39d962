package place

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"dahl/dag"
	"dahl/must"
	"dahl/platform"
	"dahl/schedule/layout"
)

// The interpreter gives graphs a meaning without kernels: a task digests its name and
// all it reads, and writes words that depend on the digest and on the place.
type interpreter struct {
	g      *dag.Graph
	step   int                                             // of the task that runs
	word   func(storage dag.BufferID, element int) *uint32 // in the copy of that step
	digest func(t dag.TaskID, step int, digest uint32)
	name   func(t dag.TaskID) string // empty: a copy
}

func (in *interpreter) run(t dag.TaskID, step int) {
	task := &in.g.Tasks[t]
	in.step = step
	name := in.name(t)
	if name == "" {
		for i := 0; i < len(task.Accesses); i += 2 {
			in.move(RegionPair{task.Accesses[i].Region, task.Accesses[i+1].Region})
		}
		return
	}
	h := fnv.New32a()
	fmt.Fprint(h, name)
	for _, a := range task.Accesses {
		if a.Mode.Reads() {
			for _, w := range in.words(a.Region) {
				if err := binary.Write(h, binary.LittleEndian, *w); err != nil {
					panic(err)
				}
			}
		}
	}
	digest := h.Sum32()
	in.digest(t, step, digest)
	for i, a := range task.Accesses {
		if a.Mode.Writes() {
			for k, w := range in.words(a.Region) {
				*w = digest*31 + uint32(i)*1009 + uint32(k)
			}
		}
	}
}

func (in *interpreter) move(pair RegionPair) {
	from := in.words(pair.From)
	for i, w := range in.words(pair.To) {
		*w = *from[i]
	}
}

// words are the elements of a region in row-major order; a view has the order of its
// storage.
func (in *interpreter) words(region dag.Region) []*uint32 {
	buf := &in.g.Buffers[region.Buffer]
	all := []int{0}
	for d, e := range buf.Shape {
		r := dag.Range{Lo: 0, Hi: e}
		if region.Box != nil {
			r = region.Box[d]
		}
		var next []int
		for _, base := range all {
			for i := r.Lo; i < r.Hi; i++ {
				next = append(next, base*e+i)
			}
		}
		all = next
	}
	words := make([]*uint32, len(all))
	for i, e := range all {
		words[i] = in.word(in.g.Storage(region.Buffer), e)
	}
	return words
}

// digests are those of all tasks, by step and task of the origin.
type digests map[dag.Instance]uint32

// runOrigin interprets a graph in program order, each storage by itself, and returns the
// digests and the contents afterwards.
func runOrigin(g *dag.Graph, steps int) (digests, [][]uint32) {
	contents := make([][]uint32, len(g.Buffers))
	for b := range contents {
		contents[b] = make([]uint32, g.Buffers[b].Elems())
		for i := range contents[b] {
			contents[b][i] = initialWord(b, i)
		}
	}
	got := digests{}
	in := &interpreter{g: g, word: func(b dag.BufferID, i int) *uint32 { return &contents[b][i] },
		digest: func(t dag.TaskID, step int, d uint32) { got[dag.Instance{Task: t, Step: int32(step)}] = d },
		name:   func(t dag.TaskID) string { return g.Tasks[t].Name }}
	for step := range steps {
		for t := range g.Tasks {
			in.run(dag.TaskID(t), step)
		}
	}
	return got, contents
}

func initialWord(b, i int) uint32 { return uint32(b)*7919 + uint32(i) + 13 }

// home is the memory in which the test puts and looks for a storage of the origin.
func home(p *platform.Platform, b *dag.Buffer) platform.MemoryID {
	if m, ok := p.MemoryByName(b.Home); ok {
		return m
	}
	return p.HostMemory()
}

// placedRun interprets a placed graph in the bytes that its layouts give it.
type placedRun struct {
	platform *platform.Platform
	*interpreter
	pg      *Graph
	layouts []*layout.Layout             // by memory
	arenas  [][layout.NumArenas][]uint32 // by memory
	got     digests
}

func newPlacedRun(t *testing.T, placed *Program, graph int) *placedRun {
	pg, layouts := placed.Graphs[graph], placed.Layouts()[graph]
	r := &placedRun{pg: pg, platform: placed.Platform, layouts: layouts, arenas: make([][layout.NumArenas][]uint32, len(layouts)), got: digests{}}
	for m, l := range layouts {
		for a := range r.arenas[m] {
			r.arenas[m][a] = make([]uint32, l.ArenaBytes[a]/4)
		}
	}
	r.interpreter = &interpreter{g: graphOf(t, pg), word: r.at,
		digest: func(t dag.TaskID, step int, d uint32) { r.got[dag.Instance{Task: pg.TaskOf(t), Step: int32(step)}] = d },
		name: func(t dag.TaskID) string {
			if pg.TaskOf(t) < 0 {
				return ""
			}
			return pg.Origin.Tasks[pg.TaskOf(t)].Name
		}}
	return r
}

func (r *placedRun) at(b dag.BufferID, element int) *uint32 {
	m := r.pg.MemoryOf(b)
	l := r.layouts[m]
	copies, bytes := int(r.g.Versions(b)), layout.Align(r.g.Buffers[b].Bytes())
	return &r.arenas[m][l.Arena(b)][(l.Offset(b)+int64(r.step%copies)*bytes)/4+int64(element)]
}

// atHome visits the replicas that hold the contents of storages between runs.
func (r *placedRun) atHome(p *platform.Platform, visit func(origin, replica dag.BufferID)) {
	for b := range r.g.Buffers {
		origin := r.pg.BufferOf(dag.BufferID(b))
		if r.g.Buffers[b].ViewOf == dag.None && r.pg.MemoryOf(dag.BufferID(b)) == home(p, &r.pg.Origin.Buffers[origin]) {
			visit(origin, dag.BufferID(b))
		}
	}
}

func (r *placedRun) moves(moves []*Move) {
	for _, m := range moves {
		for _, pair := range r.pg.Pairs(m, -1) {
			r.move(pair)
		}
	}
}

// anyOrder runs the lists of all lanes for some steps, taking at random what may run.
func (r *placedRun) anyOrder(rng *rand.Rand, steps int) error {
	g := r.g
	ended := make([]int, len(g.Tasks)) // steps
	lists := slices.Clone(r.pg.Order)
	for _, t := range r.pg.Unlaned() { // each by itself, as soon as it may
		lists = append(lists, []dag.TaskID{t})
	}
	at := make([]int, len(lists))
	before, beforeNext := make([][]dag.TaskID, len(g.Tasks)), make([][]dag.TaskID, len(g.Tasks))
	for _, e := range r.pg.Reuse {
		before[e.To] = append(before[e.To], e.From)
	}
	for _, e := range r.pg.MemoryReuseNext { // Orders has these and more
		beforeNext[e.To] = append(beforeNext[e.To], e.From)
	}
	mayRun := func(t dag.TaskID) bool {
		for _, p := range before[t] {
			if ended[p] <= ended[t] {
				return false
			}
		}
		for back := range g.Reach() + 1 {
			lists := g.PredsBack(t, back)
			if back == 1 {
				lists[0] = slices.Concat(lists[0], asInts(beforeNext[t]))
			}
			for _, p := range slices.Concat(lists[0], lists[1]) {
				if ended[p]+int(back) <= ended[t] {
					return false
				}
			}
		}
		return true
	}
	for range steps * len(g.Tasks) {
		var free []int
		for l, list := range lists {
			if len(list) > 0 && at[l] < steps*len(list) && mayRun(list[at[l]%len(list)]) {
				free = append(free, l)
			}
		}
		if len(free) == 0 {
			return fmt.Errorf("no lane can go on")
		}
		l := free[rng.IntN(len(free))]
		t := lists[l][at[l]%len(lists[l])]
		r.run(t, ended[t])
		ended[t]++
		at[l]++
	}
	return nil
}

func asInts(tasks []dag.TaskID) []int32 {
	ints := make([]int32, len(tasks))
	for i, t := range tasks {
		ints[i] = int32(t)
	}
	return ints
}

// mustMeanTheSame interprets a placed program of one graph in the bytes of its layouts,
// every lane in its order, lanes interleaved at random as far as the placed graph and its
// reuse edges allow, which finds any dependence that is missing. Every task of every step
// must read what it reads in the origin, interpreted in program order, and after the last
// step the home of every storage that keeps its contents must hold the same.
func mustMeanTheSame(t *testing.T, placed *Program, rng *rand.Rand, steps int) {
	t.Helper()
	pg := placed.Graphs[0]
	want, contents := runOrigin(pg.Origin, steps)
	r := newPlacedRun(t, placed, 0)
	for m, l := range r.layouts {
		if err := l.Check(r.g); err != nil {
			t.Fatalf("memory %d: %v", m, err)
		}
	}
	mustLinkTheSame(t, pg.Links, r.g)
	r.atHome(placed.Platform, func(origin, replica dag.BufferID) {
		for i := range contents[origin] {
			*r.at(replica, i) = initialWord(int(origin), i)
		}
	})
	r.moves(pg.Enter)
	must.Do(t, r.anyOrder(rng, steps))
	r.moves(pg.Leave)
	for i, digest := range want {
		if r.got[i] != digest {
			t.Fatalf("task %q of step %d reads something else", pg.Origin.Tasks[i.Task].Name, i.Step)
		}
	}
	r.atHome(placed.Platform, func(origin, replica dag.BufferID) {
		for i, w := range contents[origin] {
			if pg.Origin.Carried(origin) && *r.at(replica, i) != w {
				t.Fatalf("element %d of %q is not at home", i, pg.Origin.Buffers[origin].Name)
			}
		}
	})
}

// mustLinkTheSame: the edges that atoms of the origin give are those of the regions that are
// written out.
func mustLinkTheSame(t *testing.T, links *dag.Links, g *dag.Graph) {
	t.Helper()
	if links.Reach() != g.Reach() {
		t.Fatalf("it reaches %d steps back; by its regions %d", links.Reach(), g.Reach())
	}
	for id := range dag.TaskID(len(g.Tasks)) {
		for back := range g.Reach() + 1 {
			if is, want := links.PredsBack(id, back), g.PredsBack(id, back); !slices.Equal(is[0], want[0]) || !slices.Equal(is[1], want[1]) {
				t.Fatalf("%q follows %d of %d steps before; by its regions %d", g.Tasks[id].Name, is, back, want)
			}
		}
	}
}

// TestPlaceMeansTheSame places random graphs where everything fits.
func TestPlaceMeansTheSame(t *testing.T) {
	copies := 0
	for seed := range uint64(400) {
		placed, rng := randomPlaced(t, seed)
		t.Run(fmt.Sprint(seed), func(t *testing.T) { mustMeanTheSame(t, placed, rng, 4) })
		copies += placed.Graphs[0].NumTasks() - len(placed.Graphs[0].Origin.Tasks)
	}
	if copies < 1000 {
		t.Errorf("%d copies in all graphs: the test tests little", copies)
	}
}

// TestPartsMeanTheSame places random graphs where copies have no latency, so that all that passes
// the host memory on its way goes in parts.
func TestPartsMeanTheSame(t *testing.T) {
	parts, shares := 0, 0
	for seed := range uint64(400) {
		placed, rng := randomPlaced(t, seed)
		p := *placed.Platform
		p.Links = slices.Clone(p.Links)
		for l := range p.Links {
			p.Links[l].Latency = 0
		}
		must.Do(t, p.Complete())
		plan := &Input{Order: make([][]dag.TaskID, len(p.Workers))}
		for w := range plan.Order {
			for _, task := range placed.Graphs[0].Order[w] {
				plan.Order[w] = append(plan.Order[w], placed.Graphs[0].TaskOf(task))
			}
		}
		placed = must.Get(placeAll(placed.Origin, &p, []*Input{plan}, nil))(t)
		for _, m := range placed.Graphs[0].Moves() {
			if m != nil && m.Parts > 0 {
				parts++
			}
			if m != nil && m.Share.Of > 0 {
				shares++
			}
		}
		t.Run(fmt.Sprint(seed), func(t *testing.T) { mustMeanTheSame(t, placed, rng, 4) })
		plan.Written = placed.Written(0)
		if again, err := placeAll(placed.Origin, &p, []*Input{plan}, nil); err != nil || !reflect.DeepEqual(again.Written(0), plan.Written) {
			t.Fatalf("seed %d: by its own plan it is another program (%v)", seed, err)
		}
	}
	if parts < 300 || shares < 200 {
		t.Errorf("%d parts, %d of them shares: the test tests little", parts, shares)
	}
}

// squeezed is the plan of a placed graph on a platform whose other memories hold less
// than it needs there.
func squeezed(t *testing.T, free *Program, rng *rand.Rand) (*platform.Platform, *Input) {
	t.Helper()
	p := *free.Platform
	p.Memories = slices.Clone(p.Memories)
	for m := range p.Memories {
		if platform.MemoryID(m) != p.HostMemory() {
			p.Memories[m].CapacityBytes = layout.Align(free.Layouts()[0][m].TotalBytes() * int64(4+rng.IntN(5)) / 9)
		}
	}
	must.Do(t, p.Complete())
	plan := &Input{Order: make([][]dag.TaskID, len(p.Workers)), Written: Written{Versions: free.Graphs[0].plan.Versions}}
	for w, list := range free.Graphs[0].Order[:len(p.Workers)] {
		for _, task := range list {
			plan.Order[w] = append(plan.Order[w], free.Graphs[0].TaskOf(task))
		}
	}
	return &p, plan
}

// TestPlaceSpills places random graphs again where every memory but the host's has less
// than it needs, down to less than half. Either Place refuses it, or nothing exceeds the capacity,
// all means the same, and a second time it comes out the same.
func TestPlaceSpills(t *testing.T) {
	fitted, reloads, evictions := 0, 0, 0
	for seed := range uint64(600) {
		free, rng := randomPlaced(t, seed)
		p, plan := squeezed(t, free, rng)
		placed, err := placeAll(free.Origin, p, []*Input{plan}, nil)
		if err != nil {
			continue
		}
		fitted++
		again, err := placeAll(free.Origin, p, []*Input{plan}, nil)
		if err != nil || !reflect.DeepEqual(placed.Written(0), again.Written(0)) || graphOf(t, placed.Graphs[0]).Hash() != graphOf(t, again.Graphs[0]).Hash() {
			t.Fatalf("seed %d: placed a second time it is another program (%v)", seed, err)
		}
		for m, l := range placed.Layouts()[0] {
			if limit := p.Memories[m].CapacityBytes; limit > 0 && l.TotalBytes() > limit {
				t.Fatalf("seed %d: memory %d has %d bytes, the layout %d", seed, m, limit, l.TotalBytes())
			}
		}
		for _, m := range placed.Graphs[0].Moves() {
			if m != nil && m.Reason == ReasonReload {
				reloads++
			} else if m != nil && m.Reason == ReasonEvict {
				evictions++
			}
		}
		t.Run(fmt.Sprint(seed), func(t *testing.T) { mustMeanTheSame(t, placed, rng, 4) })
	}
	if fitted < 200 || reloads < 200 || evictions < 100 {
		t.Errorf("%d of 600 fitted, %d reloads and %d evictions: the test tests little", fitted, reloads, evictions)
	}
}

// TestPlaceBytes counts what has to move in a steady step by walking over the elements
// in program order: a task that reads an element where its present value has not been
// moves it there, by way of the host memory where the route passes it.
func TestPlaceBytes(t *testing.T) {
	for seed := range uint64(200) {
		placed, _ := randomPlaced(t, seed)
		pg := placed.Graphs[0]
		want := countBytes(placed.Platform, pg)
		var got int64
		for _, m := range pg.Moves() {
			if m != nil {
				got += m.Bytes
			}
		}
		if got != want {
			t.Fatalf("seed %d: %d bytes move in a step, want %d", seed, got, want)
		}
	}
}

func countBytes(p *platform.Platform, pg *Graph) int64 {
	g := pg.Origin
	memory := make([]platform.MemoryID, len(g.Tasks))
	for w, list := range pg.Order[:len(p.Workers)] {
		for _, t := range list {
			memory[pg.TaskOf(t)] = p.Devices[p.Workers[w].Device].Memory
		}
	}
	type element struct {
		storage dag.BufferID
		index   int
	}
	type value struct {
		from platform.MemoryID // where it was written or is at home
		in   uint64            // memories that have it
	}
	values := map[element]value{}
	shape := &interpreter{g: g}
	host := p.HostMemory()
	var bytes int64
	for step := range 3 {
		for t := range g.Tasks {
			to := memory[t]
			for _, a := range g.Tasks[t].Accesses {
				storage := g.Storage(a.Buffer)
				var elements []element
				shape.word = func(_ dag.BufferID, i int) *uint32 { elements = append(elements, element{storage, i}); return nil }
				shape.words(a.Region)
				for _, e := range elements {
					v, known := values[e]
					if !known {
						v = value{home(p, &g.Buffers[storage]), 1 << home(p, &g.Buffers[storage])}
					}
					through := []platform.MemoryID{to}
					if p.Passes(v.from, to, host) {
						through = []platform.MemoryID{host, to}
					}
					for _, m := range through {
						if a.Mode.Reads() && v.in&(1<<m) == 0 && step == 2 {
							bytes += 4
						}
						v.in |= 1 << m
					}
					if a.Mode.Writes() {
						v = value{to, 1 << to}
					}
					values[e] = v
				}
			}
		}
	}
	return bytes
}
