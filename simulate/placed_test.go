package simulate

import (
	"context"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"dahl/dag"
	"dahl/must"
	"dahl/platform"
	"dahl/platforms/testmachine"
	"dahl/schedule"
	"dahl/schedule/audit"
	"dahl/schedule/layout"
	"dahl/schedule/place"
	"dahl/schedule/policy"
)

// withEngines returns a platform on which every device has as many copy engines.
func withEngines(t *testing.T, p *platform.Platform, n int) *platform.Platform {
	t.Helper()
	q := *p
	q.Devices = slices.Clone(p.Devices)
	for d := range q.Devices {
		q.Devices[d].CopyEnginesIn, q.Devices[d].CopyEnginesOut = n, n
	}
	must.Do(t, q.Complete())
	return &q
}

// planOf is what eager did.
func planOf(t *testing.T, p *schedule.Problem) *schedule.Plan {
	t.Helper()
	eager := must.Get(policy.ByName("eager"))(t)
	return schedule.PlanFrom(runPolicy(t, p, eager), "eager", p.Graph)
}

// TestPlacedIsSound: with one or two engines in each direction on links of all kinds, of
// which one of two devices in some runs says nothing, the schedule stands up to Check against the problem as it was given, is no shorter
// than with engines without number, and comes out the same twice. Some buffers exist several times, by
// the graph or, in some of their memories, by the plan.
func TestPlacedIsSound(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 6))
		pl := randomPlatform(t, r)
		tasks := randomGraph(r, pl)
		p := problem(t, tasks.build(t, inOrder(len(tasks.tasks))), pl, 1+int(seed%13))
		plan := planOf(t, p)
		q := *withCopies(t, seed, tasks, p, plan)
		q.Platform = withEngines(t, pl, 1+int(seed%2))
		if silent := 1 + int(seed%4); len(pl.Devices) == 3 && silent < 3 {
			q.Platform.Devices[silent].CopyEnginesIn, q.Platform.Devices[silent].CopyEnginesOut = 0, 0
		}
		s, err := run(&q, how{plan: plan})
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		d := mustDecide(t, &q, plan)
		if err := audit.Check(s, d.Problem(0, q.Steps, false)); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		mustFollow(t, &q, plan, d.Placed, s)
		again, err := run(&q, how{plan: plan})
		if err != nil || byName(&q, s) != byName(&q, again) {
			t.Fatalf("seed %d: a second run differs (%v)", seed, err)
		}
		times := must.Get(Run(t.Context(), d, 0, q.Steps, Options{TimesOnly: true}))(t)
		if times.Makespan != s.Makespan || !reflect.DeepEqual(times.Spans, s.Spans) || !reflect.DeepEqual(times.Transfers, s.Transfers) {
			t.Fatalf("seed %d: without the contents of memories the run differs", seed)
		}
		if bound := d.Priced.LowerBound(0, q.Steps); s.Makespan < bound {
			t.Fatalf("seed %d: makespan %v is below the bound %v", seed, s.Makespan, bound)
		}
	}
}

// withCopies is the problem of a random graph with copies of some buffers in two of three cases: by the
// graph, or by the plan, to which they are added for some of the memories where it needs the buffers.
func withCopies(t *testing.T, seed uint64, tasks *randomTasks, p *schedule.Problem, plan *schedule.Plan) *schedule.Problem {
	t.Helper()
	if seed%3 == 0 {
		return p
	}
	several := tasks.inCopies(seed)
	if plan.GraphHash = ""; seed%3 == 1 {
		return problem(t, several.build(t, inOrder(len(several.tasks))), p.Platform, p.Steps)
	}
	r := rand.New(rand.NewPCG(seed, 13))
	var counts []place.PlannedVersions
	for _, at := range mustDecide(t, p, plan).Placed.Written(0).Places {
		name, _, _ := strings.Cut(at.Buffer, "@")
		if b, _ := p.Graph.BufferByName(name); p.Graph.Buffers[b].Role == dag.Activation && r.IntN(3) > 0 {
			counts = append(counts, place.PlannedVersions{Memory: at.Memory, Buffer: name, Versions: 1 + r.IntN(4)})
		}
	}
	plan.Versions = counts
	return p
}

// mustFollow: the schedule has the tasks and copies of the plan in its order, and none
// is found to do so of which a span or a transfer was changed.
func mustFollow(t *testing.T, p *schedule.Problem, plan *schedule.Plan, placed *place.Program, s *schedule.Schedule) {
	t.Helper()
	pg := placed.Graphs[0]
	must.Do(t, audit.Follows(s, p, plan))
	must.Do(t, audit.FollowsTransfers(s, placed, 0))
	other := *s
	other.Spans = slices.Clone(s.Spans)
	last := &other.Spans[len(other.Spans)-1]
	last.Step++
	if audit.Follows(&other, p, plan) == nil {
		t.Fatal("a task of another step is taken for the plan's")
	}
	if other.Spans = s.Spans[1:]; audit.Follows(&other, p, plan) == nil {
		t.Fatal("a task less is taken for the plan's")
	}
	if len(s.Transfers) == 0 {
		return
	}
	other.Transfers = s.Transfers[1:]
	if audit.FollowsTransfers(&other, placed, 0) == nil {
		t.Fatal("a copy less is taken for the plan's")
	}
	other.Transfers = append(slices.Clone(s.Transfers), s.Transfers[0])
	if audit.FollowsTransfers(&other, placed, 0) == nil {
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
			if !pg.Move(task).Anywhere && pg.Move(task).Bytes > 0 {
				moved++
			}
		}
		onEngine = max(onEngine, moved)
	}
	if onEngine > 1 && audit.FollowsTransfers(&other, placed, 0) == nil {
		t.Fatal("copies in reverse are taken for the plan's")
	}
}

// TestPlacedInLittleMemory: where every memory but the host's has between a half and nine
// tenths of what the plan needs in it, what Place accepts runs and stands up to Check,
// which follows every region in, out and back, and sees no memory hold too much. Copies of buffers stay.
func TestPlacedInLittleMemory(t *testing.T) {
	ran, evictions := 0, 0
	for seed := range uint64(600) {
		r := rand.New(rand.NewPCG(seed, 7))
		pl := withEngines(t, randomPlatform(t, r), 1+r.IntN(2))
		tasks := randomGraph(r, pl)
		p := problem(t, tasks.build(t, inOrder(len(tasks.tasks))), pl, 1+r.IntN(5))
		plan := planOf(t, p)
		p = withCopies(t, seed, tasks, p, plan)
		free := mustDecide(t, p, plan).Placed
		little := *pl
		little.Memories = slices.Clone(pl.Memories)
		for m, l := range free.Layouts()[0] {
			if platform.MemoryID(m) != pl.HostMemory() {
				for _, bytes := range l.ArenaBytes {
					little.Memories[m].CapacityBytes += bytes
				}
				little.Memories[m].CapacityBytes = layout.Align(little.Memories[m].CapacityBytes * int64(5+r.IntN(5)) / 10)
			}
		}
		must.Do(t, little.Complete())
		p.Platform = &little
		d, err := decided(p, how{plan: plan})
		if err != nil {
			continue
		}
		s, err := run(p, how{plan: plan})
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if err := audit.Check(s, d.Problem(0, p.Steps, false)); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		mustFollow(t, p, plan, d.Placed, s)
		ran++
		evictions += len(s.Evictions)
	}
	if ran < 150 || evictions < 300 {
		t.Errorf("%d ran, with %d evictions: the test tests little", ran, evictions)
	}
}

// TestWeightsThatComeInEveryStep: the host changes the weights w before the gpu reads them, so their 128 bytes there
// are free from the last use in a step to the copy in the next. The gpu has 640 bytes. While it fills c, 128 bytes
// of w, 256 of y and 384 of c are 768, and w is what leaves, the first of two that are used next by the same task.
// It shares bytes with c before and after, and all is laid out in 256 + 384 = 640 bytes. So in a step w comes
// twice, y never, and w is dropped twice, where first and again end: the host has it.
func TestWeightsThatComeInEveryStep(t *testing.T) {
	g := must.Get(dag.ParseText(strings.NewReader(`graph step
buffer w uint8 [128] parameter
buffer y uint8 [256] activation
buffer c uint8 [384] activation
task change
  readwrite w
  costs cpu=10
task first
  read w
  write y
  costs gpu=10
task fill
  write c
  costs gpu=10
task use
  read c
  costs gpu=10
task again
  read w
  read y
  costs gpu=10
`), "test"))(t)
	pl := testmachine.Node(t, testmachine.CPU(1), testmachine.GPU("gpu"))
	pl.Memories[1].CapacityBytes = 640
	must.Do(t, pl.Complete())
	const steps = 3
	p := problem(t, g, pl, steps)
	d := mustDecide(t, p, &schedule.Plan{Order: [][]dag.TaskID{{0}, {1, 2, 3, 4}}})
	s, err := Run(context.Background(), d, 0, steps, Options{})
	if err == nil {
		err = audit.Check(s, d.Problem(0, steps, false))
	}
	if err != nil {
		t.Fatal(err)
	}
	w, _ := g.BufferByName("w")
	for _, e := range s.Evictions {
		ends := slices.ContainsFunc(s.Spans, func(span schedule.Span) bool { return span.End == e.At && (span.Task == 1 || span.Task == 4) })
		if e.Buffer != w || !ends {
			t.Errorf("buffer %d is dropped at %v", e.Buffer, e.At)
		}
	}
	for _, move := range s.Transfers {
		if move.Buffer != w || move.From != 0 {
			t.Errorf("buffer %d moves out of memory %d", move.Buffer, move.From)
		}
	}
	if len(s.Evictions) != 2*steps || len(s.Transfers) != 2*steps || d.ReservedBytes()[1] != 640 {
		t.Errorf("%d evictions and %d transfers in %d steps, %d bytes reserved", len(s.Evictions), len(s.Transfers), steps, d.ReservedBytes()[1])
	}
}

// TestPlacedOneEngine: a and b are written on the host at 10 ns, 1000 bytes each, and each
// needs 2 + 1000 ns on a fatpipe of 1 GB/s. Two engines bring both at 1012 ns; one
// brings a at 1012, b at 2014. Each reader takes 5 ns on a unit of its own.
func TestPlacedOneEngine(t *testing.T) {
	pl := testmachine.Node(t, testmachine.CPU(2), testmachine.GPU("gpu"))
	pl.Devices[1].Count, pl.Links[0].Latency, pl.Links[0].Sharing = 2, 2, platform.Fatpipe
	must.Do(t, pl.Complete())
	b := dag.NewBuilder("two")
	for _, name := range []string{"a", "b"} {
		id := b.Buffer(dag.Buffer{Name: name, Shape: []int{1000}, Type: dag.Uint8})
		b.Task(dag.Task{Name: "make " + name, Costs: []dag.Cost{{Key: "cpu", Ns: 10}}, Accesses: []dag.Access{{Region: dag.Region{Buffer: id}, Mode: dag.Write}}})
		b.Task(dag.Task{Name: "use " + name, Costs: []dag.Cost{{Key: "gpu", Ns: 5}}, Accesses: []dag.Access{{Region: dag.Region{Buffer: id}}}})
	}
	g := must.Get(b.Build())(t)
	plan := &schedule.Plan{Order: [][]dag.TaskID{{0}, {2}, {1}, {3}}}
	for _, c := range []struct {
		engines  int
		makespan time.Duration
	}{{1, 10 + 2*1002 + 5}, {2, 10 + 1002 + 5}} {
		p := problem(t, g, withEngines(t, pl, c.engines), 1)
		s := must.Get(run(p, how{plan: plan}))(t)
		if s.Makespan != c.makespan {
			t.Errorf("with %d engines %v, want %v", c.engines, s.Makespan, c.makespan)
		}
		// Told that they take 70 and 110 ns, they do: one after the other, or at once.
		told := map[schedule.TransferKey]time.Duration{}
		for i, d := range []time.Duration{70, 110} {
			told[s.Transfers[i].Key()] = d
		}
		s, err := run(p, how{plan: plan, Options: Options{Moving: func(t *schedule.Transfer) (time.Duration, bool) {
			d, ok := told[t.Key()]
			return d, ok
		}}})
		want := 10 + max(70, 110) + 5*time.Nanosecond
		if c.engines == 1 {
			want += 70
		}
		if err != nil || s.Makespan != want {
			t.Errorf("with %d engines and given times %v, want %v (%v)", c.engines, s.Makespan, want, err)
		}
	}
}
