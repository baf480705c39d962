package place

import (
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"dahl/dag"
	"dahl/must"
	"dahl/platform"
	"dahl/schedule/layout"
)

// recordedPlan is the plan of a random graph with its copies, and what is needed to place
// it again.
type recordedPlan struct {
	placed *Program
	plan   *Input
}

func (r *recordedPlan) place(plan *Input) (*Program, error) {
	return placeAll(r.placed.Origin, r.placed.Platform, []*Input{plan}, nil)
}

func recordPlan(t *testing.T, seed uint64) *recordedPlan {
	t.Helper()
	placed, _ := randomPlaced(t, seed)
	pg := placed.Graphs[0]
	plan := &Input{Order: make([][]dag.TaskID, len(placed.Platform.Workers))}
	for w := range plan.Order {
		for _, task := range pg.Order[w] {
			plan.Order[w] = append(plan.Order[w], pg.TaskOf(task))
		}
	}
	plan.Written = placed.Written(0)
	return &recordedPlan{placed, plan}
}

// TestPlanTransfers: copies and offsets survive their written form, and placing the plan that lists
// them gives them again. An order of copies that was not the estimate's is kept, as far as
// dependences allow any other; then the offsets may differ, and are not listed. A plan for a machine that does not say how many engines it has leaves copies to any. They take
// the estimate's order here.
func TestPlanTransfers(t *testing.T) {
	swapped := 0
	for seed := range uint64(60) {
		r := recordPlan(t, seed)
		file := must.Get(json.Marshal(r.plan.Written))(t)
		got := &Input{Order: r.plan.Order}
		must.Do(t, json.Unmarshal(file, &got.Written))
		if !reflect.DeepEqual(got.Transfers, r.plan.Transfers) || !reflect.DeepEqual(got.Places, r.plan.Places) {
			t.Fatalf("seed %d: read %v, wrote %v", seed, got.Transfers, r.plan.Transfers)
		}
		again, err := r.place(got)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if !reflect.DeepEqual(again.Graphs[0].Order, r.placed.Graphs[0].Order) {
			t.Fatalf("seed %d: other lists", seed)
		}
		got.Places = nil
		for _, engine := range got.Transfers {
			if n := len(engine.Transfers); n > 1 && engine.Engine != anyEngine {
				slices.Reverse(engine.Transfers)
			}
		}
		for i := range got.Transfers {
			got.Transfers[i].Engine = anyEngine
		}
		if again = must.Get(r.place(got))(t); !reflect.DeepEqual(again.Graphs[0].Order, r.placed.Graphs[0].Order) {
			t.Fatalf("seed %d: other lists of copies that are left to any engine", seed)
		}
		for i := range got.Transfers {
			got.Transfers[i].Engine = r.plan.Transfers[i].Engine
		}
		if again, err = r.place(got); err == nil && !reflect.DeepEqual(again.Written(0).Transfers, got.Transfers) {
			t.Fatalf("seed %d: the order of the plan was not kept", seed)
		} else if err == nil {
			swapped++
		}
	}
	if swapped < 10 {
		t.Errorf("%d plans could be turned round: the test tests little", swapped)
	}
}

// TestPlanTransfersRefused changes one thing of a plan with several copies on an engine.
func TestPlanTransfersRefused(t *testing.T) {
	for _, c := range []struct {
		what, want string
		change     func(plan *Input, engine int)
	}{
		{"a copy less", "leaves out", func(p *Input, e int) { p.Transfers[e].Transfers = p.Transfers[e].Transfers[1:] }},
		{"one twice", "twice", func(p *Input, e int) { p.Transfers[e].Transfers[1] = p.Transfers[e].Transfers[0] }},
		{"an unknown one", "does not need", func(p *Input, e int) { p.Transfers[e].Transfers[0].Name = "copy of nothing" }},
		{"other bytes", "needs", func(p *Input, e int) { p.Transfers[e].Transfers[0].Bytes++ }},
		{"an unknown engine", "does not have", func(p *Input, e int) { p.Transfers[e].Engine = "a dma" }},
		{"another engine", "does not reach", func(p *Input, e int) {
			other := slices.IndexFunc(p.Transfers, func(x EngineTransfers) bool {
				return x.Engine != anyEngine && x.Engine[:2] != p.Transfers[e].Engine[:2]
			})
			p.Transfers[other].Transfers = append(p.Transfers[other].Transfers, p.Transfers[e].Transfers...)
			p.Transfers[e].Transfers = nil
		}},
		{"a crooked offset", "not aligned", func(p *Input, _ int) { p.Places[0].Offset += layout.Alignment / 2 }},
		{"another arena", "it belongs to", func(p *Input, _ int) { p.Places[0].Arena = layout.ScratchArena.String() }},
		{"an unknown arena", "does not need", func(p *Input, _ int) { p.Places[0].Arena = "heap" }},
		{"an unknown buffer", "does not need", func(p *Input, _ int) { p.Places[0].Buffer = "nothing" }},
		{"a place less", "leaves out", func(p *Input, _ int) { p.Places = p.Places[1:] }},
		{"a place twice", "twice", func(p *Input, _ int) { p.Places = append(p.Places, p.Places[0]) }},
		{"less room", "puts buffers into", func(p *Input, _ int) {
			for i := range p.Arenas {
				p.Arenas[i].Bytes = 0
			}
		}},
		{"something else before", "before the first step", func(p *Input, _ int) { p.Enter = append(p.Enter, PlannedTransfer{Buffer: "nothing"}) }},
		{"something less after", "after the last step", func(p *Input, _ int) {
			if p.Leave = p.Leave[:len(p.Leave):len(p.Leave)]; len(p.Leave) > 0 {
				p.Leave = p.Leave[1:]
			} else {
				p.Leave = append(p.Leave, PlannedTransfer{Buffer: "nothing"})
			}
		}},
	} {
		refused := 0
		for seed := range uint64(20) {
			r := recordPlan(t, seed)
			e := slices.IndexFunc(r.plan.Transfers, func(x EngineTransfers) bool { return len(x.Transfers) > 1 && x.Engine != anyEngine })
			memories := map[string]bool{}
			for _, x := range r.plan.Transfers {
				if x.Engine != anyEngine {
					memories[x.Engine[:2]] = true
				}
			}
			if e < 0 || len(memories) < 2 {
				continue
			}
			c.change(r.plan, e)
			if _, err := r.place(r.plan); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("seed %d, %s: %v; want %q", seed, c.what, err, c.want)
			}
			refused++
		}
		if refused == 0 {
			t.Errorf("%s: not tried", c.what)
		}
	}
}

// TestPlanPlaces: a plan puts what a step needs a line further into its arenas than the
// layout did, and there it lies. Where it puts two storages that keep their contents onto
// each other it is refused.
func TestPlanPlaces(t *testing.T) {
	moved, refused := 0, 0
	for seed := range uint64(20) {
		r := recordPlan(t, seed)
		for i := range r.plan.Places {
			if p := &r.plan.Places[i]; p.Arena == layout.StepArena.String() {
				p.Offset += layout.Alignment
				moved++
			}
		}
		for i := range r.plan.Arenas {
			r.plan.Arenas[i].Bytes += layout.Alignment
		}
		again, err := r.place(r.plan)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if got := again.Written(0); !reflect.DeepEqual(got.Places, r.plan.Places) || !reflect.DeepEqual(got.Arenas, r.plan.Arenas) {
			t.Fatalf("seed %d: places %v, want %v", seed, got.Places, r.plan.Places)
		}
		for m, l := range again.Layouts()[0] {
			if err := l.Check(graphOf(t, again.Graphs[0])); err != nil {
				t.Fatalf("seed %d, memory %d: %v", seed, m, err)
			}
		}
		first := slices.IndexFunc(r.plan.Places, func(p PlannedPlace) bool { return p.Arena == layout.DataArena.String() })
		second := slices.IndexFunc(r.plan.Places, func(p PlannedPlace) bool {
			return first >= 0 && p.Arena == layout.DataArena.String() && p.Memory == r.plan.Places[first].Memory && p.Offset > r.plan.Places[first].Offset
		})
		if second < 0 {
			continue
		}
		r.plan.Places[second].Offset = r.plan.Places[first].Offset
		if _, err := r.place(r.plan); err == nil || !strings.Contains(err.Error(), "share bytes") {
			t.Errorf("seed %d: two inputs at one place: %v", seed, err)
		}
		refused++
	}
	if moved == 0 || refused == 0 {
		t.Errorf("%d places were moved, %d plans refused: the test tests little", moved, refused)
	}
}

// TestPlanPlacesMustNotMeet puts every storage of a step at the same offset. That is
// refused exactly where the definition finds two in use at once.
func TestPlanPlacesMustNotMeet(t *testing.T) {
	kept, refused := 0, 0
	for seed := range uint64(60) {
		r := recordPlan(t, seed)
		l := *r.placed.Layouts()[0][r.placed.Platform.HostMemory()]
		memory := r.placed.Platform.Memories[r.placed.Platform.HostMemory()].Name
		g := graphOf(t, r.placed.Graphs[0])
		places := *l.Places
		places.Offsets = slices.Clone(places.Offsets)
		l.Places = &places
		l.Reuse, l.ReuseNext = r.placed.Graphs[0].Reuse, r.placed.Graphs[0].Orders()[1]
		for i := range r.plan.Places {
			if p := &r.plan.Places[i]; p.Arena == layout.StepArena.String() && p.Memory == memory {
				p.Offset = 0
			}
		}
		for b := range dag.BufferID(len(places.Offsets)) {
			if l.Arena(b) == layout.StepArena && l.Offset(b) != layout.Elsewhere {
				places.Offsets[b] = 0
			}
		}
		again, err := r.place(r.plan)
		if err == nil {
			kept++
			if err := again.Layouts()[0][r.placed.Platform.HostMemory()].Check(g); err != nil {
				t.Errorf("seed %d: %v", seed, err)
			}
			continue
		}
		refused++
		if l.Check(g) == nil || !strings.Contains(err.Error(), "in use at once") {
			t.Errorf("seed %d: a sound layout is refused: %v", seed, err)
		}
	}
	if kept == 0 || refused == 0 {
		t.Errorf("%d plans kept, %d refused: the test tests little", kept, refused)
	}
}

// TestPlanRoomHolds: what leaves memories and comes back was found along the order of an
// estimate. A plan that has it written down gives the same graph, lists and places where
// all tasks take other times.
func TestPlanRoomHolds(t *testing.T) {
	spilled, otherwise := 0, 0
	for seed := range uint64(200) {
		free, rng := randomPlaced(t, seed)
		p, plan := squeezed(t, free, rng)
		placed, err := placeAll(free.Origin, p, []*Input{plan}, nil)
		if err != nil || placed.Graphs[0].spillPlan == nil {
			continue
		}
		spilled++
		recorded := &Input{Order: plan.Order, Written: placed.Written(0)}
		recorded.Occupies = func(dag.TaskID, platform.WorkerID) time.Duration { return time.Duration(1 + rng.IntN(100_000)) }
		again, err := placeAll(free.Origin, p, []*Input{recorded}, nil)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if graphOf(t, again.Graphs[0]).Hash() != graphOf(t, placed.Graphs[0]).Hash() || !reflect.DeepEqual(again.Written(0), recorded.Written) {
			t.Fatalf("seed %d: with other times the plan is another", seed)
		}
		plan.Occupies = recorded.Occupies
		if anew, err := placeAll(free.Origin, p, []*Input{plan}, nil); err != nil || !reflect.DeepEqual(anew.Written(0), recorded.Written) {
			otherwise++
		}
		swapped := *recorded.Spill
		swapped.Order = slices.Clone(swapped.Order)
		slices.Reverse(swapped.Order)
		recorded.Spill = &swapped
		if _, err := placeAll(free.Origin, p, []*Input{recorded}, nil); err == nil || !strings.Contains(err.Error(), "order of tasks and transfers") {
			t.Errorf("seed %d: an order that contradicts everything: %v", seed, err)
		}
	}
	if spilled < 20 || otherwise == 0 {
		t.Errorf("%d plans with spills, of which %d are others when made anew: the test tests little", spilled, otherwise)
	}
}

// TestPlanOfAGraphAlone: the training step is placed alone, as the simulator does. In a
// program with an evaluation, which comes with more data and more workspace, everything of
// the step stays where the plan has it, and what both graphs share is at the same place.
func TestPlanOfAGraphAlone(t *testing.T) {
	p := hostAndGPU(t, 0)
	train, evaluate := trainingGraph(t, "train", true), trainingGraph(t, "evaluate", false)
	plan := &Input{Order: [][]dag.TaskID{{0}, nil, {1, 2, 3}}}
	alone := must.Get(placeAll(&dag.Program{Name: "alone", Graphs: []*dag.Graph{train}}, p, []*Input{plan}, [][]int64{{10, 20}}))(t)
	recorded := &Input{Order: plan.Order, Written: alone.Written(0)}
	// In the gpu v would come before w; the plan has it the other way round.
	for i := range recorded.Places {
		switch pl := &recorded.Places[i]; pl.Buffer {
		case "w@gpu.mem":
			pl.Offset = 0
		case "v@gpu.mem":
			pl.Offset = 320
		}
	}
	all := must.Get(placeAll(&dag.Program{Name: "all", Graphs: []*dag.Graph{train, evaluate}}, p,
		[]*Input{recorded, {Order: [][]dag.TaskID{{0}, nil, {1}}}}, [][]int64{{10, 20}, {30, 70}}))(t)
	if got := all.Written(0); !reflect.DeepEqual(got, recorded.Written) {
		t.Errorf("in the program the plan is\n%+v\nalone it is\n%+v", got, recorded)
	}
	w, ok := graphOf(t, all.Graphs[1]).BufferByName("w@gpu.mem")
	if l := all.Layouts()[1][1]; !ok || l.Arena(w) != layout.NetworkArena || l.Offset(w) != 0 {
		t.Errorf("the evaluation has w elsewhere than the plan of the training step")
	}
}

// TestPlanCopiesRefused: x is written and read at the first of two memories, w carries its contents.
func TestPlanCopiesRefused(t *testing.T) {
	p := randomMemories(t, rand.New(rand.NewPCG(1, 1)))
	b := dag.NewBuilder("g")
	x := b.Buffer(dag.Buffer{Name: "x", Shape: []int{4}, Type: dag.Float32})
	b.View("flat", x, 2, 2)
	b.Task(dag.Task{Name: "a", Accesses: []dag.Access{access(x, dag.Write)}, Costs: []dag.Cost{{Key: dag.AnyDevice, Ns: 1}}})
	b.Task(dag.Task{Name: "b", Accesses: []dag.Access{access(x, dag.Read)}, Costs: []dag.Cost{{Key: dag.AnyDevice, Ns: 1}}})
	g := must.Get(b.Build())(t)
	away := p.Workers[0].Device
	here, elsewhere := p.Memories[p.Devices[away].Memory].Name, p.Memories[1-p.Devices[away].Memory].Name
	for _, c := range []struct {
		counts []PlannedVersions
		want   string
	}{
		{[]PlannedVersions{{here, "x", 2}}, ""},
		{[]PlannedVersions{{elsewhere, "x", 2}}, `the plan has versions of buffer "x" in memory "` + elsewhere + `", which its placement of the tasks does not need there`},
		{[]PlannedVersions{{here, "y", 2}}, "there is no such buffer"},
		{[]PlannedVersions{{here, "x", 0}}, "0 versions of buffer \"x\" in memory \"" + here + "\"; write a number from 1 to 64"},
		{[]PlannedVersions{{here, "flat", 2}}, `view "flat" has 2 versions; write them at its owner "x"`},
	} {
		plan := &Input{Order: make([][]dag.TaskID, len(p.Workers)), Written: Written{Versions: c.counts}}
		plan.Order[0] = []dag.TaskID{0, 1}
		counted := g
		all, err := plan.VersionsIn(g, p)
		if err == nil {
			most := slices.Clone(all[0])
			for b := range most {
				most[b] = max(most[b], all[1][b])
			}
			counted, err = g.WithVersions(most)
		}
		if err == nil {
			_, err = placeAll(&dag.Program{Name: "p", Graphs: []*dag.Graph{counted}}, p, []*Input{plan}, nil)
		}
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%v: error %v, want %q", c.counts, err, c.want)
		}
	}
}
