package improve

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"dahl/dag"
	"dahl/must"
	"dahl/plan"
	"dahl/plan/exact"
	"dahl/plan/problem"
	"dahl/platform"
	"dahl/schedule"
	"dahl/schedule/codec"
	"dahl/schedule/policy"
)

func price(t *testing.T, b *dag.Builder, p *platform.Platform) *schedule.Priced {
	t.Helper()
	must.Do(t, p.Complete())
	g := must.Get(b.Build())(t)
	return must.Get(schedule.Price(&dag.Program{Name: g.Name, Graphs: []*dag.Graph{g}}, p, schedule.Unbound))(t)
}

// A task takes 100 ns at 10 W, or 200 ns at 3 W at the slow clock, and the host draws 3 W: 100·13 = 1300 nJ,
// or 200·6 = 1200 nJ. Where 150 ns are all the time there is, only the first counts. A search that starts
// with the slow clock finds it.
func TestClocksAndDeadline(t *testing.T) {
	p := &platform.Platform{Name: "p", HostPower: platform.Quantity{Value: 3, Source: platform.Guess}, Memories: []platform.Memory{{Name: "ram"}},
		Devices: []platform.Device{{Name: "cpu", Kind: "cpu", Count: 1, Busy: platform.BusyPower{UnitWatts: 10}, PowerSource: platform.Guess,
			Clocks: []platform.Clock{{Name: "base", Scale: 1, Busy: platform.BusyPower{UnitWatts: 10}}, {Name: "slow", Scale: 0.5, Busy: platform.BusyPower{UnitWatts: 3}}}}}}
	b := dag.NewBuilder("one")
	b.Task(dag.Task{Name: "t", Op: "op", Costs: []dag.Cost{{Key: "cpu", Ns: 100}, {Key: "cpu@slow", Ns: 200}}})
	priced := price(t, b, p)
	for _, c := range []struct {
		from     platform.ClockID
		deadline time.Duration
		clocks   [][]platform.ClockID
		want     float64
	}{
		{0, 0, nil, 1200e-9},
		{1, 150, nil, 1300e-9},
		{0, 0, [][]platform.ClockID{{0}}, 1300e-9},
	} {
		from := &schedule.Plan{Order: [][]dag.TaskID{{0}}, States: schedule.States{Clocks: []platform.ClockID{c.from}}}
		r := must.Get(Search(t.Context(), priced, from, Options{Aim: problem.Aim{Objective: problem.Energy, Deadline: c.deadline}, Moves: 100, Clocks: c.clocks}))(t)
		if math.Abs(r.Value-c.want) > 1e-15 {
			t.Errorf("from clock %d, %d ns: %g J, want %g", c.from, c.deadline, r.Value, c.want)
		}
	}
}

// coresAndGPU is a machine of some cores and a GPU with its own memory, behind a bus of 1 B/ns and 5 ns.
func coresAndGPU(cores int) *platform.Platform {
	return &platform.Platform{Name: "p", Memories: []platform.Memory{{Name: "ram"}, {Name: "vram"}},
		Devices: []platform.Device{{Name: "cpu", Kind: "cpu", Count: cores}, {Name: "gpu", Kind: "emulated", Count: 1, Memory: 1, CopyEnginesIn: 1, CopyEnginesOut: 1}},
		Links:   []platform.Link{{Name: "bus", BandwidthBytesPerSec: 1e9, Latency: 5, Sharing: platform.Duplex}},
		Routes:  []platform.Route{{From: 0, To: 1, Links: []platform.LinkID{0}}}}
}

// A chain of ten tasks takes 100 ns each on the core and 10 ns each on the GPU; each writes 8 B, which take
// 5 + 8 = 13 ns over the bus of 1 B/ns. Of 1000 ns with all on the core, 9·100 + 10 + 2·13 = 936 remain with
// one in the middle on the GPU, and 100 with all ten there, of which nothing has to move.
func TestTwoMemories(t *testing.T) {
	p := coresAndGPU(1)
	b := dag.NewBuilder("chain")
	from := &schedule.Plan{Order: make([][]dag.TaskID, 2)}
	last := dag.BufferID(dag.None)
	for i := range 10 {
		task := dag.Task{Name: fmt.Sprint("t", i), Op: "op", Costs: []dag.Cost{{Key: "cpu", Ns: 100}, {Key: "gpu", Ns: 10}}}
		if i > 0 {
			task.Accesses = append(task.Accesses, dag.Access{Region: dag.Region{Buffer: last}, Mode: dag.Read})
		}
		last = b.Buffer(dag.Buffer{Name: fmt.Sprint("b", i), Shape: []int{2}, Type: dag.Float32, ViewOf: dag.None})
		task.Accesses = append(task.Accesses, dag.Access{Region: dag.Region{Buffer: last}, Mode: dag.Write})
		from.Order[0] = append(from.Order[0], b.Task(task))
	}
	r := must.Get(Search(t.Context(), price(t, b, p), from, Options{Aim: problem.Aim{Objective: problem.Time}, Moves: 1000}))(t)
	if r.Time != 100 {
		t.Errorf("the step takes %d ns, want 100", r.Time)
	}
}

// randomProblem is a random graph on two unlike devices, of one memory or two, with one clock or two.
func randomProblem(t *testing.T, r *rand.Rand, tasks int) *schedule.Priced {
	t.Helper()
	p := &platform.Platform{Name: "p", HostPower: platform.Quantity{Value: float64(r.IntN(4)), Source: platform.Guess}, Memories: []platform.Memory{{Name: "ram"}}}
	for i := range 2 {
		d := platform.Device{Name: fmt.Sprint("d", i), Kind: []string{"cpu", "emulated"}[i], Count: 1 + r.IntN(3), Dispatch: time.Duration(r.IntN(3)), Handoff: time.Duration(r.IntN(2)),
			IdleWatts: 1 + r.Float64(), Busy: platform.BusyPower{UnitWatts: float64(4 + r.IntN(20))}, PowerSource: platform.Guess}
		if d.Count > 1 && r.IntN(2) == 0 {
			d.Busy = platform.BusyPower{FirstWatts: 12, AllWatts: float64(14 + r.IntN(9)), WholeDevice: true}
		}
		if r.IntN(2) == 0 {
			takes := r.IntN(3)
			d.UnitClocks, d.Switch = r.IntN(2) == 0, platform.Transition{Takes: time.Duration(takes), Joules: 1e-9 * float64(takes)}
			d.Clocks = []platform.Clock{{Name: "own", Scale: 1, Idle: d.IdleWatts, Busy: d.Busy}, {Name: "slow", Scale: 0.5, Idle: d.IdleWatts / 2, Busy: platform.BusyPower{UnitWatts: 3}}}
		}
		p.Devices = append(p.Devices, d)
	}
	if r.IntN(2) == 0 {
		p.Memories = append(p.Memories, platform.Memory{Name: "vram"})
		p.Devices[1].Memory, p.Devices[1].CopyEnginesIn, p.Devices[1].CopyEnginesOut = 1, r.IntN(2), r.IntN(2)
		p.Links = []platform.Link{{Name: "bus", BandwidthBytesPerSec: 1e9, Latency: time.Duration(r.IntN(5)), Sharing: platform.Sharing(r.IntN(3)), IdleWatts: 0.5, BusyWatts: 2, PowerSource: platform.Guess}}
		p.Routes = []platform.Route{{From: 0, To: 1, Links: []platform.LinkID{0}}}
	}
	return price(t, randomGraph(r, tasks), p)
}

// randomGraph is a graph of tasks that run on both devices and read any of what those before have written.
func randomGraph(r *rand.Rand, tasks int) *dag.Builder {
	b := dag.NewBuilder("random")
	var written []dag.BufferID
	for i := range tasks {
		task := dag.Task{Name: fmt.Sprint("t", i), Op: "op", Costs: []dag.Cost{{Key: "d0", Ns: int64(1 + r.IntN(40))}, {Key: "d1", Ns: int64(1 + r.IntN(40))}}}
		for _, of := range written {
			if r.IntN(max(3, tasks/3)) == 0 {
				task.Accesses = append(task.Accesses, dag.Access{Region: dag.Region{Buffer: of}, Mode: dag.Read})
			}
		}
		out := b.Buffer(dag.Buffer{Name: fmt.Sprint("b", i), Shape: []int{1 + r.IntN(8)}, Type: dag.Float32, ViewOf: dag.None})
		task.Accesses = append(task.Accesses, dag.Access{Region: dag.Region{Buffer: out}, Mode: dag.Write})
		written = append(written, out)
		b.Task(task)
	}
	return b
}

// heftOf is the plan from which searches start.
func heftOf(t *testing.T, priced *schedule.Priced) *schedule.Plan {
	t.Helper()
	d := must.Get(priced.Decide(schedule.Choice{Policy: policy.HEFT}))(t)
	return d.Graphs[0].Plan
}

// What is found is no worse than the plan at the start, by the simulator's word, and is what the simulator
// says of the plan that is returned. Equal seeds give equal bytes.
func TestNeverWorse(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 9))
	better := 0
	for k := range 40 {
		priced := randomProblem(t, r, 5+r.IntN(20))
		from := heftOf(t, priced)
		for _, objective := range []problem.Objective{problem.Time, problem.Energy} {
			o := Options{Aim: problem.Aim{Objective: objective, Steady: r.IntN(2) == 0}, Moves: 300, Seed: uint64(k)}
			value := func(made *schedule.Plan) float64 {
				e := must.Get(plan.Evaluate(priced, schedule.Choice{Plans: []*schedule.Plan{made}}))(t)
				step := must.Get(e.Step(t.Context(), o.Steady, steadySteps))(t)
				return objective.Of(step.Time, step.Joules)
			}
			var files [2]bytes.Buffer
			for i := range files {
				found := must.Get(Search(t.Context(), priced, from, o))(t)
				if got, first := value(found.Plan()), value(from); got != found.Value || got > first {
					t.Errorf("graph %d: the plan is worth %g, was said to be worth %g, and the first one %g", k, got, found.Value, first)
				} else if got < first*(1-1e-9) {
					better++
				}
				must.Do(t, codec.WritePlan(&files[i], found.Plan(), priced.Program.Graphs[0], priced.Platform))
			}
			if !bytes.Equal(files[0].Bytes(), files[1].Bytes()) {
				t.Errorf("graph %d: two searches found different plans", k)
			}
		}
	}
	if better < 40 {
		t.Errorf("only %d of 160 searches found something better", better)
	}
}

// Of graphs of few tasks, on which branch and bound proves what is optimal, at least nine in ten searches
// find that.
func TestFindsOptima(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 1))
	searches, optimal, cases := 0, 0, 100
	if testing.Short() {
		cases = 40
	}
	for searches < cases {
		priced := randomProblem(t, r, 3+r.IntN(5))
		from := heftOf(t, priced)
		for _, objective := range []problem.Objective{problem.Time, problem.Energy} {
			best, err := exact.Search(t.Context(), priced, exact.Options{Objective: objective, Nodes: 20_000})
			if err != nil || !best.Proven {
				continue
			}
			found := must.Get(Search(t.Context(), priced, from, Options{Aim: problem.Aim{Objective: objective}, Moves: 2000}))(t)
			searches++
			if found.Value < best.Value*(1-1e-9) {
				t.Errorf("%s: found %g, below the proven least %g", objective, found.Value, best.Value)
			}
			if found.Value <= best.Value*(1+1e-9) {
				optimal++
			}
		}
	}
	if optimal < searches*9/10 {
		t.Errorf("%d of %d searches found the optimum", optimal, searches)
	}
	t.Logf("%d of %d", optimal, searches)
}

func newTestSearch(t *testing.T, priced *schedule.Priced, from *schedule.Plan, o Options) *search {
	t.Helper()
	return must.Get(newSearch(t.Context(), priced, from, o))(t)
}

// Cholesky's factorisation of 10 by 10 tiles on nine cores and three GPUs: 260 ms from the best policy's 276.
func TestCholesky(t *testing.T) {
	p := must.Get(platform.Load("testdata/cholesky10.toml"))(t)
	text := must.Get(os.ReadFile("testdata/cholesky10.json"))(t)
	g := must.Get(dag.ReadJSON(strings.NewReader(string(text)), "cholesky10.json"))(t)
	priced := must.Get(schedule.Price(&dag.Program{Name: "cholesky", Graphs: []*dag.Graph{g}}, p, schedule.Unbound))(t)
	from := heftOf(t, priced)
	r := must.Get(Search(t.Context(), priced, from, Options{Aim: problem.Aim{Objective: problem.Time}, Moves: 60_000}))(t)
	if most := 260 * time.Millisecond; r.Time > most {
		t.Errorf("the step takes %v, want at most %v", r.Time, most)
	}
	if !slices.ContainsFunc(r.Plan().Order, func(list []dag.TaskID) bool { return len(list) > 0 }) {
		t.Error("the plan is empty")
	}
}

// One unit writes a buffer in 10 ns and another one reads it in 10 ns. With one copy the next step writes when
// the buffer has been read, 20 ns a step; with two it writes the other one meanwhile, 10 ns a step. Of a plan
// that lists two copies both stay, where the options say nothing. A memory of 100 B has no room for two, which
// take 64 B each.
func TestCopiesOfBuffers(t *testing.T) {
	var with *schedule.Plan
	for _, c := range []struct {
		copies   int32
		capacity int64
		again    bool // from the plan found before
		want     time.Duration
	}{{copies: 0, want: 20}, {copies: 2, capacity: 100, want: 20}, {copies: 2, want: 10}, {again: true, want: 10}} {
		p := &platform.Platform{Name: "p", Memories: []platform.Memory{{Name: "ram", CapacityBytes: c.capacity}}, Devices: []platform.Device{{Name: "cpu", Kind: "cpu", Count: 2}}}
		b := dag.NewBuilder("pipeline")
		x := b.Buffer(dag.Buffer{Name: "x", Shape: []int{1}, Type: dag.Float32, ViewOf: dag.None})
		for i, mode := range []dag.Mode{dag.Write, dag.Read} {
			b.Task(dag.Task{Name: fmt.Sprint("t", i), Op: "op", Costs: []dag.Cost{{Key: "cpu", Ns: 10}}, Accesses: []dag.Access{{Region: dag.Region{Buffer: x}, Mode: mode}}})
		}
		from := &schedule.Plan{Order: [][]dag.TaskID{{0}, {1}}}
		if c.again {
			from = with
		}
		r := must.Get(Search(t.Context(), price(t, b, p), from, Options{Aim: problem.Aim{Objective: problem.Time, Steady: true}, Moves: 100, Versions: c.copies}))(t)
		if r.Time != c.want {
			t.Errorf("%+v: a step takes %d ns", c, r.Time)
		}
		with = r.Plan()
	}
}
