package simulate

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"dahl/dag"
	"dahl/platform"
	"dahl/schedule"
	"dahl/schedule/place"
)

// moves writes transfers and evictions in the order of their times, as
// "x fetch 0-50" and "x leaves 120".
func moves(p *schedule.Problem, s *schedule.Schedule) string {
	type line struct {
		at   time.Duration
		text string
	}
	var lines []line
	for _, e := range s.Evictions {
		lines = append(lines, line{e.At, fmt.Sprintf("%s leaves %d", p.Graph.Buffers[e.Buffer].Name, e.At)})
	}
	for _, t := range s.Transfers {
		lines = append(lines, line{t.Start, fmt.Sprintf("%s %s %d-%d", p.Graph.Buffers[t.Buffer].Name, t.Reason, t.Start, t.End)})
	}
	slices.SortStableFunc(lines, func(a, b line) int { return int(a.at - b.at) })
	var all []string
	for _, l := range lines {
		all = append(all, l.text)
	}
	return strings.Join(all, ", ")
}

// onGPU is a graph of tasks of 10 ns on the gpu that run in order of their names. Each
// is given as its operands: a name in capitals is one that it reads and writes, and all
// are of 40 bytes and at home in ram.
func onGPU(t *testing.T, tasks ...string) *dag.Graph {
	b := dag.NewBuilder("on the gpu")
	buffers := map[string]dag.BufferID{}
	for i, operands := range tasks {
		task := dag.Task{Name: string(rune('a' + i)), Costs: []dag.Cost{{Key: "gpu", Ns: 10}}}
		for _, r := range operands {
			name, mode := strings.ToLower(string(r)), dag.Read
			if string(r) != name {
				mode = dag.ReadWrite
			}
			if _, ok := buffers[name]; !ok {
				buffers[name] = b.Buffer(dag.Buffer{Name: name, Shape: []int{40}, Type: dag.Uint8, Role: dag.Parameter, Home: "host"})
			}
			task.Accesses = append(task.Accesses, whole(buffers[name], mode))
		}
		b.Task(task)
	}
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// runPlan does so with a plan.
func runPlan(t *testing.T, p *schedule.Problem, plan *schedule.Plan) *schedule.Schedule {
	t.Helper()
	s, err := run(p, how{plan: plan})
	if err == nil {
		err = s.Check(p)
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func runChecked(t *testing.T, p *schedule.Problem, policy schedule.Policy) *schedule.Schedule {
	t.Helper()
	s, err := run(p, how{policy: policy})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Check(p); err != nil {
		t.Fatal(err)
	}
	return s
}

// TestEvictLeastRecentlyUsed: a gpu of 90 bytes has room for two of three operands. A
// copy takes 50 ns, a task 10, eager brings nothing early, and the gpu takes its next task
// when one begins to run. a reads x (0-50, runs to 60), b, taken at 50, reads y (50-100, to
// 110). For c, taken at 100, and its z, x has to go: a has ended, and b needs y. It is valid
// in ram, so it is dropped at once; z comes 100-150, c runs to 160, and d, taken at 150,
// finds y still there and follows until 170. At 160 a of the next step is taken: x is
// missing, and z, which nobody needs any more, goes. x comes 160-210, a runs to 220 and b,
// which is taken at 210, to 230. At 220 c is taken: z is missing and x goes, z comes
// 220-270, c runs to 280, d to 290.
func TestEvictLeastRecentlyUsed(t *testing.T) {
	pl := twoMemories(t)
	pl.Memories[1].CapacityBytes = 90
	p := problem(t, onGPU(t, "x", "y", "z", "y"), pl, 2)
	s := runChecked(t, p, dynamic(t, p, "eager"))
	want := "x fetch 0-50, y fetch 50-100, x leaves 100, z fetch 100-150, z leaves 160, x fetch 160-210, x leaves 220, z fetch 220-270"
	if got := moves(p, s); got != want {
		t.Errorf("moves %s, want %s", got, want)
	}
	if s.Makespan != 290 || s.PeakBytes[1] != 80 {
		t.Errorf("makespan %d, peak %d; want 290, 80", s.Makespan, s.PeakBytes[1])
	}
}

// TestWriteBack: a gpu of 90 bytes writes w (fetched 0-50, task to 60), and its next
// task needs x and y. The only valid w is on the gpu: it is copied home 60-110 and
// dropped then. x fits beside it, comes at the same time on the other direction of the
// link, and y when w has left, 110-160. The task runs to 170.
func TestWriteBack(t *testing.T) {
	pl := twoMemories(t)
	pl.Memories[1].CapacityBytes = 90
	p := problem(t, onGPU(t, "W", "xy"), pl, 1)
	s := runChecked(t, p, dynamic(t, p, "eager"))
	want := "w fetch 0-50, w evict 60-110, x fetch 60-110, w leaves 110, y fetch 110-160"
	if got := moves(p, s); got != want {
		t.Errorf("moves %s, want %s", got, want)
	}
	if s.Makespan != 170 {
		t.Errorf("makespan %d, want 170", s.Makespan)
	}
}

// TestEarlyCopies: dmda gives all tasks to the gpu of 130 bytes at once. While a waits
// for x, y and z come early, for b and c: the three copies share the link and arrive
// after 10 ns of latency and 120 for their bytes. What d reads does not fit beside them,
// and nothing leaves for what is early. d is taken when c begins to run, at 150, but does
// not fit beside what c holds: its operands come when c has ended, at 160, and the other
// three have to leave for them.
func TestEarlyCopies(t *testing.T) {
	pl := twoMemories(t)
	pl.Memories[1].CapacityBytes = 130
	p := problem(t, onGPU(t, "x", "y", "z", "uvw"), pl, 1)
	s := runChecked(t, p, dynamic(t, p, "dmda"))
	want := "x fetch 0-130, y prefetch 0-130, z prefetch 0-130, x leaves 160, y leaves 160, z leaves 160, u fetch 160-290, v fetch 160-290, w fetch 160-290"
	if got := moves(p, s); got != want {
		t.Errorf("moves %s, want %s", got, want)
	}
	// Taken in the reverse order: u, v and w, for which d waits, are promised 120 of the
	// 130 bytes before anything comes early. When d has ended, at 140, z of c, which was
	// taken when d began, takes the place of u. c runs from 190 on, b is taken, and y takes
	// the place of v; from 240 on, x that of w.
	s = runChecked(t, p, &lastFirst{})
	want = "u fetch 0-130, v fetch 0-130, w fetch 0-130, u leaves 140, z fetch 140-190, v leaves 190, y fetch 190-240, w leaves 240, x fetch 240-290"
	if got := moves(p, s); got != want {
		t.Errorf("moves %s, want %s", got, want)
	}
}

// lastFirst assigns what is ready to the gpu and takes the last by name first.
type lastFirst struct{ ready []dag.Instance }

func (q *lastFirst) Ready(v *schedule.View, i dag.Instance) platform.WorkerID {
	q.ready = append(q.ready, i)
	return v.Workers(i.Task)[0]
}

func (q *lastFirst) Next(_ *schedule.View, w platform.WorkerID) (dag.Instance, bool) {
	if len(q.ready) == 0 || w != 1 {
		return dag.Instance{}, false
	}
	last := q.ready[len(q.ready)-1]
	q.ready = q.ready[:len(q.ready)-1]
	return last, true
}

// TestTooSmall: a task that needs 80 bytes at once cannot run in 79. It runs on the cpu
// if it can, and else the error names what needs how much of what.
func TestTooSmall(t *testing.T) {
	pl := twoMemories(t)
	pl.Memories[1].CapacityBytes = 79
	p := problem(t, onGPU(t, "x", "yz"), pl, 1)
	_, err := run(p, how{policy: dynamic(t, p, "eager")})
	if want := `task "b" could run on "gpu", where it needs 80 B at once and memory "hbm" has 79 B`; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want %s", err, want)
	}
	// What has to leave the gpu must fit the host: w is written in the gpu, where x does not
	// fit beside it, and the host has no room for it.
	pl.Memories[0].CapacityBytes, pl.Memories[1].CapacityBytes = 79, 79
	full := problem(t, onGPU(t, "W", "x"), pl, 1)
	full.Graph.Buffers[0].Home = "hbm"
	_, err = run(full, how{policy: dynamic(t, full, "eager")})
	if want := `memory "ram" would hold 80 B and has 79 B`; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want %s", err, want)
	}
	pl.Memories[0].CapacityBytes = 0
	p.Graph.Tasks[1].Costs = append(p.Graph.Tasks[1].Costs, dag.Cost{Key: "cpu", Ns: 90})
	p = problem(t, p.Graph, pl, 1)
	s := runChecked(t, p, dynamic(t, p, "dmda"))
	for _, span := range s.Spans {
		if want := platform.WorkerID(1 - span.Task); span.Worker != want { // a on the gpu, b on the cpu
			t.Errorf("task %d ran on worker %d, want %d", span.Task, span.Worker, want)
		}
	}
}

// squeeze gives every memory but the host's as few bytes as the largest of its tasks
// needs, or what it holds at the start if that is more, and a few more.
func squeeze(p *schedule.Problem, r *rand.Rand) {
	g := p.Graph
	for m := range p.Platform.Memories {
		if platform.MemoryID(m) == p.Platform.HostMemory() {
			continue
		}
		var atStart, largest int64
		for _, b := range g.Buffers {
			if b.Home == p.Platform.Memories[m].Name {
				atStart += b.Bytes()
			}
		}
		for t := range g.Tasks {
			atoms := map[int32]bool{}
			bytes := int64(0)
			for i, a := range g.Tasks[t].Accesses {
				for _, atom := range g.Atoms(dag.TaskID(t), i) {
					if s := g.Storage(a.Buffer); !atoms[atom] && (g.Buffers[s].Home != "" || g.Buffers[s].Role != dag.Input) {
						atoms[atom] = true
						bytes += g.AtomBytes(dag.AtomID(atom))
					}
				}
			}
			largest = max(largest, bytes)
		}
		p.Platform.Memories[m].CapacityBytes = max(atStart, largest) + int64(r.IntN(3)*r.IntN(20))
	}
}

// TestTightMemories: whatever the policy, a run in memories that hold hardly more than
// the largest task comes to its end and stands up to Check, is the same twice and does
// not depend on the order in which tasks were added, also with few copy engines.
func TestTightMemories(t *testing.T) {
	evictions, writeBacks, seeds := 0, 0, uint64(200)
	for seed := range seeds {
		r := rand.New(rand.NewPCG(seed, 2))
		pl := randomPlatform(t, r)
		if seed%2 == 1 {
			vary(t, pl, r)
		}
		if len(pl.Memories) == 1 {
			continue
		}
		for d := range pl.Devices {
			pl.Devices[d].CopyEnginesIn, pl.Devices[d].CopyEnginesOut = r.IntN(3), r.IntN(3)
		}
		tasks := randomGraph(r, pl)
		g := tasks.build(t, inOrder(len(tasks.tasks)))
		p := problem(t, g, pl, 1+int(seed%12))
		squeeze(p, r)
		other := problem(t, tasks.build(t, otherOrder(r, g)), pl, p.Steps)
		for name, policy := range map[string]func(*schedule.Problem) schedule.Policy{
			"eager": func(p *schedule.Problem) schedule.Policy { return dynamic(t, p, "eager") },
			"dmda":  func(p *schedule.Problem) schedule.Policy { return dynamic(t, p, "dmda") },
			"dmdar": func(p *schedule.Problem) schedule.Policy { return dynamic(t, p, "dmdar") },
			"thief": func(*schedule.Problem) schedule.Policy { return &thief{} },
		} {
			s, err := run(p, how{policy: policy(p)})
			if err != nil {
				t.Fatalf("seed %d, %s: %v", seed, name, err)
			}
			if err := s.Check(p); err != nil {
				t.Fatalf("seed %d, %s: %v", seed, name, err)
			}
			if name == "thief" {
				continue // its choice depends on the order of the tasks
			}
			first := byName(p, s)
			if again := byName(p, runChecked(t, p, policy(p))); again != first {
				t.Fatalf("seed %d, %s: a second run differs", seed, name)
			}
			if shuffled := byName(other, runChecked(t, other, policy(other))); shuffled != first {
				t.Fatalf("seed %d, %s: built in another order it differs:\n%s\n%s", seed, name, first, shuffled)
			}
			evictions += len(s.Evictions)
			for _, tr := range s.Transfers {
				if tr.Reason == place.ReasonEvict {
					writeBacks++
				}
			}
		}
	}
	if evictions < 10*int(seeds) || writeBacks < int(seeds) {
		t.Errorf("only %d evictions and %d copies for them in %d runs", evictions, writeBacks, seeds)
	}
}

// TestPromisedRoom: on a gpu of 90 bytes a reads x and writes o, of 40 bytes each. While
// x is on its way, the bytes of o are promised: z does not come early, but when a has
// ended at 60 and nothing uses o any more.
func TestPromisedRoom(t *testing.T) {
	pl := twoMemories(t)
	pl.Memories[1].CapacityBytes = 90
	b := dag.NewBuilder("promised")
	x := b.Buffer(dag.Buffer{Name: "x", Shape: []int{40}, Type: dag.Uint8, Role: dag.Input, Home: "host"})
	z := b.Buffer(dag.Buffer{Name: "z", Shape: []int{40}, Type: dag.Uint8, Role: dag.Input, Home: "host"})
	o := b.Buffer(dag.Buffer{Name: "o", Shape: []int{40}, Type: dag.Uint8})
	gpu := []dag.Cost{{Key: "gpu", Ns: 10}}
	b.Task(dag.Task{Name: "a", Costs: gpu, Accesses: []dag.Access{whole(x, dag.Read), whole(o, dag.Write)}})
	b.Task(dag.Task{Name: "b", Costs: gpu, Accesses: []dag.Access{whole(z, dag.Read)}})
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	p := problem(t, g, pl, 1)
	want := "x fetch 0-50, z fetch 60-110"
	if got := moves(p, runChecked(t, p, dynamic(t, p, "dmda"))); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// TestWriteBackFromElsewhere: p and q write w and u on the gpu, a reads w on a second one, b
// reads u on the cpu. c needs z on the gpu of 250 bytes, where w (40) has to leave beside u (200),
// and d, after a, x and y on the second, of 90. Each has one copy engine in and one out. p runs
// 0-10 and q 10-20. At 10 a is given w, which takes both links' 10 ns and 40 for its
// bytes (10-70), and c is taken: the copy that brings w home for it waits for the engine, and
// from 20 on behind u, since b comes before c. At 70 w is on the second GPU, and the gpu drops
// it; u goes home 70-280, z comes 70-120, a runs to 80. For d, w has to leave there, too.
// The copy home that still waits is not from there, and is called off when its turn comes:
// w needs one of its own (80-130). x comes beside it and y when w has left.
func TestWriteBackFromElsewhere(t *testing.T) {
	pl := twoMemories(t)
	memory, gpu, link, route := pl.Memories[1], pl.Devices[1], pl.Links[0], pl.Routes[0]
	memory.Name, gpu.Name, link.Name = "hbm2", "gpu2", "bus2"
	gpu.Memory, route.To, route.Links = 2, 2, []platform.LinkID{1}
	pl.Memories, pl.Devices, pl.Links, pl.Routes = append(pl.Memories, memory), append(pl.Devices, gpu), append(pl.Links, link), append(pl.Routes, route)
	for d := 1; d <= 2; d++ {
		pl.Devices[d].CopyEnginesIn, pl.Devices[d].CopyEnginesOut = 1, 1
	}
	pl.Memories[1].CapacityBytes, pl.Memories[2].CapacityBytes = 250, 90
	complete(t, pl)
	b := dag.NewBuilder("elsewhere")
	buffer := func(name string, bytes int) dag.BufferID {
		return b.Buffer(dag.Buffer{Name: name, Shape: []int{bytes}, Type: dag.Uint8, Role: dag.Parameter, Home: "host"})
	}
	w, u, x, y, z := buffer("w", 40), buffer("u", 200), buffer("x", 40), buffer("y", 40), buffer("z", 40)
	var after []dag.TaskID
	task := func(name, device string, accesses ...dag.Access) dag.TaskID {
		return b.Task(dag.Task{Name: name, Costs: []dag.Cost{{Key: device, Ns: 10}}, Accesses: accesses, After: after})
	}
	task("1 p", "gpu", whole(w, dag.Write))
	task("2 q", "gpu", whole(u, dag.Write))
	a := task("3 a", "gpu2", whole(w, dag.Read))
	task("4 b", "cpu", whole(u, dag.Read))
	task("5 c", "gpu", whole(z, dag.Read))
	after = []dag.TaskID{a}
	task("6 d", "gpu2", whole(x, dag.Read), whole(y, dag.Read))
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	p := problem(t, g, pl, 1)
	want := "w fetch 10-70, w leaves 70, u fetch 70-280, z fetch 70-120, w evict 80-130, x fetch 80-130, w leaves 130, y fetch 130-180"
	if got := moves(p, runChecked(t, p, dynamic(t, p, "eager"))); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
