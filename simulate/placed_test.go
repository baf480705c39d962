package simulate

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"dahl/dag"
	"dahl/platform"
	"dahl/schedule"
)

// withEngines returns a platform on which every device has as many copy engines.
func withEngines(t *testing.T, p *platform.Platform, n int) *platform.Platform {
	t.Helper()
	q := *p
	q.Devices = slices.Clone(p.Devices)
	for d := range q.Devices {
		q.Devices[d].CopyEnginesIn, q.Devices[d].CopyEnginesOut = n, n
	}
	complete(t, &q)
	return &q
}

// planOf is what eager did.
func planOf(t *testing.T, p *schedule.Problem) *schedule.Plan {
	t.Helper()
	eager, err := schedule.PolicyByName("eager")
	if err != nil {
		t.Fatal(err)
	}
	return schedule.PlanFrom(runPolicy(t, p, eager), "eager", p.Graph)
}

// movements writes the transfers of a schedule with names and times, sorted. Those of the
// last step are left out: on lanes they are also made for the step after it.
func movements(p *schedule.Problem, s *schedule.Schedule) string {
	var lines []string
	for _, tr := range s.Transfers {
		if int(tr.Step) < s.Steps-1 {
			atoms := slices.Sorted(slices.Values(tr.Atoms))
			lines = append(lines, fmt.Sprint(p.Graph.Buffers[tr.Buffer].Name, atoms, tr.From, tr.To, tr.Step, tr.Start, tr.End))
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// moved is an atom that goes somewhere in a step.
type moved struct {
	atom, step int32
	from, to   platform.MemoryID
}

// atomsMoved counts the same by atom.
func atomsMoved(s *schedule.Schedule) map[moved]int {
	count := map[moved]int{}
	for _, tr := range s.Transfers {
		for _, a := range tr.Atoms {
			if int(tr.Step) < s.Steps-1 {
				count[moved{a, tr.Step, tr.From, tr.To}]++
			}
		}
	}
	return count
}

// TestPlacedAgainstEngine: where links are not shared and every copy has an engine of
// its own, the placed graph, replayed without the orders that its layouts add, moves
// every atom as often as the Engine does, which moves regions by itself. What moves
// together may differ where a task that waits takes a part of what was to go to another;
// where nothing differs, all starts and ends at the same times.
func TestPlacedAgainstEngine(t *testing.T) {
	copies, alike := 0, 0
	for seed := range uint64(150) {
		r := rand.New(rand.NewPCG(seed, 5))
		free := randomPlatform(t, r)
		for l := range free.Links {
			free.Links[l].Sharing = platform.Fatpipe
		}
		complete(t, free)
		tasks := randomGraph(r, free)
		p := problem(t, tasks.build(t, inOrder(len(tasks.tasks))), free, 2+int(seed%7))
		plan := planOf(t, p)
		want, err := Run(context.Background(), p, Options{Plan: plan})
		if err != nil {
			t.Fatal(err)
		}
		got := runOnLanes(t, p, plan)
		if got, want := atomsMoved(got), atomsMoved(want); !maps.Equal(got, want) {
			t.Fatalf("seed %d: atoms, from, to: %v\nwant %v", seed, got, want)
		}
		copies += len(want.Transfers)
		if movements(p, got) != movements(p, want) {
			continue
		}
		alike++
		if !slices.Equal(got.Spans, want.Spans) {
			t.Fatalf("seed %d: other spans:\n%v\n%v", seed, got.Spans, want.Spans)
		}
	}
	if copies < 500 || alike < 100 {
		t.Errorf("%d copies in all, %d runs alike: the test tests little", copies, alike)
	}
}

// runOnLanes simulates a plan with a hundred engines in each direction, and without the
// orders of the layouts.
func runOnLanes(t *testing.T, p *schedule.Problem, plan *schedule.Plan) *schedule.Schedule {
	t.Helper()
	q := *p
	q.Platform = withEngines(t, p.Platform, 100)
	s := &simulation{origin: &q, p: &q, network: newNetwork(q.Platform)}
	lanes, err := s.place(plan)
	if err != nil {
		t.Fatal(err)
	}
	s.p.Reuse, s.p.ReuseNext = nil, nextSteps(s.lanes.pg)
	if err := s.prepare(schedule.Replay(s.p, lanes), "eager"); err != nil {
		t.Fatal(err)
	}
	if err := s.run(context.Background()); err != nil {
		t.Fatal(err)
	}
	if err := s.complete(); err != nil {
		t.Fatal(err)
	}
	return s.out
}

// nextSteps is what the origin orders from step to step.
func nextSteps(pg *schedule.PlacedGraph) (edges []schedule.Edge) {
	at := make([]dag.TaskID, len(pg.Origin.Tasks))
	for t, origin := range pg.TaskOf {
		if origin >= 0 {
			at[origin] = dag.TaskID(t)
		}
	}
	for t := range at {
		for _, list := range [][]int32{pg.Origin.CarriedPreds(dag.TaskID(t)), pg.Origin.ReusePreds(dag.TaskID(t))} {
			for _, before := range list {
				edges = append(edges, schedule.Edge{From: at[before], To: at[t]})
			}
		}
	}
	return edges
}

// TestPlacedIsSound: with one or two engines in each direction on links of all kinds, of
// which one of two devices in some runs says nothing, the schedule stands up to Check against the problem as it was given, is no shorter
// than with engines without number, and comes out the same twice.
func TestPlacedIsSound(t *testing.T) {
	for seed := range uint64(150) {
		r := rand.New(rand.NewPCG(seed, 6))
		pl := randomPlatform(t, r)
		tasks := randomGraph(r, pl)
		p := problem(t, tasks.build(t, inOrder(len(tasks.tasks))), pl, 1+int(seed%7))
		plan := planOf(t, p)
		q := *p
		q.Platform = withEngines(t, pl, 1+int(seed%2))
		if silent := 1 + int(seed%4); len(pl.Devices) == 3 && silent < 3 {
			q.Platform.Devices[silent].CopyEnginesIn, q.Platform.Devices[silent].CopyEnginesOut = 0, 0
		}
		s, err := Run(context.Background(), &q, Options{Plan: plan})
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if err := s.Check(&q); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		placed, err := schedule.Place(&dag.Program{Graphs: []*dag.Graph{q.Graph}}, q.Platform, []*schedule.Plan{plan}, []*schedule.Costs{q.Costs}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if before, err := Run(context.Background(), &q, Options{Plan: plan, Placed: placed}); err != nil || len(pl.Memories) > 1 && byName(&q, s) != byName(&q, before) {
			t.Fatalf("seed %d: placed before, it differs (%v)", seed, err)
		}
		mustFollow(t, &q, plan, placed, s)
		if _, err := Run(context.Background(), p, Options{Plan: plan, Placed: placed}); err == nil {
			t.Fatalf("seed %d: placed for another platform, and not refused", seed)
		}
		again, err := Run(context.Background(), &q, Options{Plan: plan})
		if err != nil || byName(&q, s) != byName(&q, again) {
			t.Fatalf("seed %d: a second run differs (%v)", seed, err)
		}
		if bound := schedule.LowerBound(&q); s.Makespan < bound {
			t.Fatalf("seed %d: makespan %v is below the bound %v", seed, s.Makespan, bound)
		}
	}
}

// mustFollow: the schedule has the tasks and copies of the plan in its order, and none
// is found to do so of which a span or a transfer was changed.
func mustFollow(t *testing.T, p *schedule.Problem, plan *schedule.Plan, placed *schedule.Placed, s *schedule.Schedule) {
	t.Helper()
	pg := placed.Graphs[0]
	if err := s.Follows(p, plan); err != nil {
		t.Fatal(err)
	}
	if err := pg.Follows(placed, s); err != nil {
		t.Fatal(err)
	}
	other := *s
	other.Spans = slices.Clone(s.Spans)
	last := &other.Spans[len(other.Spans)-1]
	last.Step++
	if other.Follows(p, plan) == nil {
		t.Fatal("a task of another step is taken for the plan's")
	}
	if other.Spans = s.Spans[1:]; other.Follows(p, plan) == nil {
		t.Fatal("a task less is taken for the plan's")
	}
	if len(s.Transfers) == 0 {
		return
	}
	other.Transfers = s.Transfers[1:]
	if pg.Follows(placed, &other) == nil {
		t.Fatal("a copy less is taken for the plan's")
	}
	other.Transfers = append(slices.Clone(s.Transfers), s.Transfers[0])
	if pg.Follows(placed, &other) == nil {
		t.Fatal("a copy more is taken for the plan's")
	}
	other.Transfers = slices.Clone(s.Transfers)
	for i := range other.Transfers { // backwards in time
		from, to := s.Transfers[i].Start, s.Transfers[i].End
		other.Transfers[i].Start, other.Transfers[i].End = s.Makespan-to, s.Makespan-from
	}
	slices.Reverse(other.Transfers)
	onEngine := 0
	for _, list := range pg.Order[len(p.Platform.Workers):] {
		moved := 0
		for _, task := range list {
			if !pg.Moves[task].Anywhere && pg.Moves[task].Bytes > 0 {
				moved++
			}
		}
		onEngine = max(onEngine, moved)
	}
	if onEngine > 1 && pg.Follows(placed, &other) == nil {
		t.Fatal("copies in reverse are taken for the plan's")
	}
}

// TestPlacedInLittleMemory: where every memory but the host's has between a half and nine
// tenths of what the plan needs in it, what Place accepts runs and stands up to Check,
// which follows every region in, out and back, and sees no memory hold too much.
func TestPlacedInLittleMemory(t *testing.T) {
	ran, evictions := 0, 0
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 7))
		pl := withEngines(t, randomPlatform(t, r), 1+r.IntN(2))
		tasks := randomGraph(r, pl)
		p := problem(t, tasks.build(t, inOrder(len(tasks.tasks))), pl, 1+r.IntN(5))
		plan := planOf(t, p)
		prog := &dag.Program{Name: "random", Graphs: []*dag.Graph{p.Graph}}
		free, err := schedule.Place(prog, pl, []*schedule.Plan{plan}, []*schedule.Costs{p.Costs}, nil)
		if err != nil {
			t.Fatal(err)
		}
		little := *pl
		little.Memories = slices.Clone(pl.Memories)
		for m, l := range free.Graphs[0].Layouts {
			if platform.MemoryID(m) != pl.HostMemory() {
				for _, bytes := range l.ArenaBytes {
					little.Memories[m].CapacityBytes += bytes
				}
				little.Memories[m].CapacityBytes = schedule.Align(little.Memories[m].CapacityBytes * int64(5+r.IntN(5)) / 10)
			}
		}
		complete(t, &little)
		p.Platform = &little
		placed, err := schedule.Place(prog, &little, []*schedule.Plan{plan}, []*schedule.Costs{p.Costs}, nil)
		if err != nil {
			continue
		}
		s, err := Run(context.Background(), p, Options{Plan: plan})
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if err := s.Check(p); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		mustFollow(t, p, plan, placed, s)
		ran++
		evictions += len(s.Evictions)
	}
	if ran < 150 || evictions < 300 {
		t.Errorf("%d ran, with %d evictions: the test tests little", ran, evictions)
	}
}

// TestPlacedOneEngine: a and b are written on the host at 10 ns, 1000 bytes each, and each
// needs 2 + 1000 ns on a fatpipe of 1 GB/s. Two engines bring both at 1012 ns; one
// brings a at 1012, b at 2014. Each reader takes 5 ns on a unit of its own.
func TestPlacedOneEngine(t *testing.T) {
	pl := &platform.Platform{Name: "node",
		Memories: []platform.Memory{{Name: "ram"}, {Name: "gpu"}},
		Devices: []platform.Device{{Name: "cpu", Kind: "cpu", Count: 2, PowerSource: platform.Guess},
			{Name: "gpu", Kind: "emulated", Count: 2, Memory: 1, PowerSource: platform.Guess}},
		Links:  []platform.Link{{Name: "pcie", BandwidthBytesPerSec: 1e9, Latency: 2, Sharing: platform.Fatpipe, PowerSource: platform.Guess}},
		Routes: []platform.Route{{From: 0, To: 1, Links: []platform.LinkID{0}}},
	}
	complete(t, pl)
	b := dag.NewBuilder("two")
	for _, name := range []string{"a", "b"} {
		id := b.Buffer(dag.Buffer{Name: name, Shape: []int{1000}, Type: dag.Uint8})
		b.Task(dag.Task{Name: "make " + name, Costs: []dag.Cost{{Key: "cpu", Ns: 10}}, Accesses: []dag.Access{{Region: dag.Region{Buffer: id}, Mode: dag.Write}}})
		b.Task(dag.Task{Name: "use " + name, Costs: []dag.Cost{{Key: "gpu", Ns: 5}}, Accesses: []dag.Access{{Region: dag.Region{Buffer: id}}}})
	}
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	plan := &schedule.Plan{Order: [][]dag.TaskID{{0}, {2}, {1}, {3}}}
	for _, c := range []struct {
		engines  int
		makespan time.Duration
	}{{1, 10 + 2*1002 + 5}, {2, 10 + 1002 + 5}} {
		p := problem(t, g, withEngines(t, pl, c.engines), 1)
		s, err := Run(context.Background(), p, Options{Plan: plan})
		if err != nil {
			t.Fatal(err)
		}
		if s.Makespan != c.makespan {
			t.Errorf("with %d engines %v, want %v", c.engines, s.Makespan, c.makespan)
		}
		// Told that they take 70 and 110 ns, they do: one after the other, or at once.
		told := map[schedule.TransferKey]time.Duration{}
		for i, d := range []time.Duration{70, 110} {
			told[s.Transfers[i].Key()] = d
		}
		s, err = Run(context.Background(), p, Options{Plan: plan, Moving: func(t *schedule.Transfer) (time.Duration, bool) {
			d, ok := told[t.Key()]
			return d, ok
		}})
		want := 10 + max(70, 110) + 5*time.Nanosecond
		if c.engines == 1 {
			want += 70
		}
		if err != nil || s.Makespan != want {
			t.Errorf("with %d engines and given times %v, want %v (%v)", c.engines, s.Makespan, want, err)
		}
	}
}
