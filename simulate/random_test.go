package simulate

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"dahl/dag"
	"dahl/must"
	"dahl/platform"
	"dahl/schedule"
	"dahl/schedule/audit"
	"dahl/schedule/policy"
)

// randomPlatform has one to three memories with one device each, joined by links
// of every kind of sharing; with three, the last is reached through the second.
func randomPlatform(t *testing.T, r *rand.Rand) *platform.Platform {
	t.Helper()
	p := &platform.Platform{Name: "random"}
	n := 1 + r.IntN(3)
	for i := range n {
		kind := "cpu"
		if i > 0 {
			kind = "emulated"
		}
		p.Memories = append(p.Memories, platform.Memory{Name: "m" + strconv.Itoa(i), BandwidthBytesPerSec: 1e9})
		p.Devices = append(p.Devices, platform.Device{Name: "d" + strconv.Itoa(i), Kind: kind, Count: 1 + r.IntN(3),
			Memory: platform.MemoryID(i), Dispatch: time.Duration(r.IntN(3)), PowerSource: platform.Guess})
	}
	for i := 1; i < n; i++ {
		p.Links = append(p.Links, platform.Link{Name: "l" + strconv.Itoa(i), BandwidthBytesPerSec: float64(1+r.IntN(5)) * 1e9,
			Latency: time.Duration(r.IntN(4)), Sharing: platform.Sharing(r.IntN(3)), PowerSource: platform.Guess})
		p.Routes = append(p.Routes, platform.Route{From: platform.MemoryID(i - 1), To: platform.MemoryID(i), Links: []platform.LinkID{platform.LinkID(i - 1)}})
	}
	must.Do(t, p.Complete())
	return p
}

// vary gives workers a time to learn of their tasks, and of three memories has two reached
// through one link more, with or without a way between them.
func vary(t *testing.T, p *platform.Platform, r *rand.Rand) {
	t.Helper()
	for i := range p.Devices {
		d := &p.Devices[i]
		d.Handoff = time.Duration(r.IntN(4))
		if d.Kind != "cpu" {
			d.HandoffToCPU = time.Duration(r.IntN(2) * r.IntN(12))
		} else if r.IntN(3) == 0 {
			d.WakeAfter, d.Wake = time.Duration(1+r.IntN(30)), time.Duration(1+r.IntN(9))
		}
	}
	if len(p.Memories) == 3 && r.IntN(2) == 0 {
		up, between := platform.LinkID(len(p.Links)), p.Routes[1]
		p.Links = append(p.Links, platform.Link{Name: "up", BandwidthBytesPerSec: float64(1+r.IntN(5)) * 1e9,
			Latency: time.Duration(r.IntN(4)), Sharing: platform.Sharing(r.IntN(3)), PowerSource: platform.Guess})
		for i := range p.Routes {
			p.Routes[i] = platform.Route{To: platform.MemoryID(i + 1), Links: []platform.LinkID{up, platform.LinkID(i)}}
		}
		if r.IntN(2) == 0 {
			p.Routes = append(p.Routes, between)
		}
	}
	if r.IntN(3) == 0 {
		addStates(r, p)
	}
	must.Do(t, p.Complete())
}

// addStates lets devices and links sleep, and some have less power than all units together draw.
// The cap leaves room for one task or transfer beside what waits or is on its way to sleep.
func addStates(r *rand.Rand, p *platform.Platform) {
	states := func() []platform.SleepState {
		transition := func() platform.Transition {
			return platform.Transition{Takes: time.Duration(1 + r.IntN(6)), Joules: 1e-9}
		}
		after := time.Duration(1 + r.IntN(9))
		return []platform.SleepState{{Name: "light", Watts: 0.5, After: after, Enter: transition(), Leave: transition()},
			{Name: "deep", After: after + time.Duration(1+r.IntN(30)), Enter: transition(), Leave: transition()}}[r.IntN(3)%2:]
	}
	least := 0.0
	for i := range p.Devices {
		d := &p.Devices[i]
		d.IdleWatts, d.Busy = 1, platform.BusyPower{UnitWatts: float64(2 + r.IntN(5))}
		if len(d.Clocks) > 0 {
			d.Clocks[0].Idle, d.Clocks[0].Busy = d.IdleWatts, d.Busy
		}
		if r.IntN(2) == 0 {
			d.Sleeps = states()
		}
		// Waiting, 1 W and on the way to sleep 1 nJ in 1 ns more; the idle watts of two clocks differ
		// by half a watt; a task 5 W above idle, and 1 W for waking.
		least += 2.5*float64(d.Count) + 6
	}
	for l := range p.Links {
		p.Links[l].IdleWatts, p.Links[l].BusyWatts = 0.5, 2
		if r.IntN(2) == 0 {
			p.Links[l].Sleeps = states()
		}
		least += 4.5 // 0.5 idle, 1.5 above twice for a link that is crossed twice, 1 for waking
	}
	if r.IntN(2) == 0 {
		p.CapWatts = least + float64(r.IntN(10))
	}
}

// randomStates gives the tasks of a plan clocks and sleeps of their devices.
func randomStates(r *rand.Rand, plan *schedule.Plan, g *dag.Graph, p *platform.Platform) {
	for w, list := range plan.Order {
		d := &p.Devices[p.Workers[w].Device]
		for _, t := range list {
			if n := len(d.Clocks); n > 0 && r.IntN(2) == 0 {
				plan.SetClock(g, t, platform.ClockID(r.IntN(n)))
			}
			if n := len(d.Sleeps); n > 0 && r.IntN(3) == 0 {
				plan.SetSleep(g, t, int32(1+r.IntN(n)))
			}
		}
	}
}

// addClocks gives every device a second clock.
func addClocks(r *rand.Rand, p *platform.Platform) {
	for i := range p.Devices {
		d := &p.Devices[i]
		d.Clocks = []platform.Clock{{Name: "own", Scale: 1, Idle: d.IdleWatts, Busy: d.Busy}, {Name: "slow", Scale: 0.5, Idle: d.IdleWatts / 2, Busy: d.Busy}}
		if d.Count > 1 && r.IntN(2) == 0 {
			d.Busy = platform.BusyPower{FirstWatts: float64(d.Count + 3), AllWatts: float64(d.Count + 3 + r.IntN(6)), WholeDevice: true}
			d.Clocks[0].Busy = d.Busy
		}
		d.UnitClocks, d.Switch = r.IntN(2) == 0, platform.Transition{Takes: time.Duration(r.IntN(8))}
	}
}

// randomTasks describes a graph by data, so that it can be built in any order
// that its dependences allow.
type randomTasks struct {
	buffers []dag.Buffer
	tasks   []dag.Task
}

// randomGraph mixes parameters that are read and later updated, inputs with and
// without a home, and activations in tiles that are written and then read in
// other tiles; some tasks run on one kind of device only, some share a worker,
// some take no time.
func randomGraph(r *rand.Rand, p *platform.Platform) *randomTasks {
	g := &randomTasks{}
	buffer := func(role dag.Role, home string) dag.BufferID {
		g.buffers = append(g.buffers, dag.Buffer{Name: fmt.Sprintf("b%d", len(g.buffers)), Shape: []int{2 + r.IntN(12)}, Type: dag.Float32, Role: role, Home: home})
		return dag.BufferID(len(g.buffers) - 1)
	}
	tile := func(b dag.BufferID) dag.Region {
		n := g.buffers[b].Shape[0]
		if r.IntN(2) == 0 {
			return dag.Region{Buffer: b}
		}
		lo := r.IntN(n)
		return dag.Region{Buffer: b, Box: dag.Box{{Lo: lo, Hi: lo + 1 + r.IntN(n-lo)}}}
	}
	home := func() string { return []string{"", "host", p.Memories[r.IntN(len(p.Memories))].Name}[r.IntN(3)] }
	var readable []dag.BufferID
	for range 1 + r.IntN(3) {
		readable = append(readable, buffer(dag.Input, home()), buffer(dag.Parameter, home()))
	}
	for i := range 3 + r.IntN(20) {
		task := dag.Task{Name: fmt.Sprintf("t%02d", (i*37)%101), Op: "op", Priority: int32(r.IntN(2))}
		used := map[dag.BufferID]bool{}
		for range 1 + r.IntN(3) {
			b := readable[r.IntN(len(readable))]
			if used[b] {
				continue
			}
			used[b] = true
			mode := dag.Read
			if g.buffers[b].Role != dag.Input && r.IntN(4) == 0 {
				mode = dag.ReadWrite
			}
			task.Accesses = append(task.Accesses, dag.Access{Region: tile(b), Mode: mode})
		}
		if r.IntN(4) > 0 {
			b := buffer(dag.Activation, "")
			task.Accesses = append(task.Accesses, dag.Access{Region: dag.Region{Buffer: b}, Mode: dag.Write})
			readable = append(readable, b)
		}
		for _, d := range p.Devices {
			if d.Kind == "cpu" || r.IntN(3) > 0 {
				task.Costs = append(task.Costs, dag.Cost{Key: d.Name, Ns: int64(r.IntN(20))})
			}
		}
		if r.IntN(8) == 0 {
			task.Placement = &dag.Placement{Device: "cpu"}
		} else if r.IntN(8) == 0 {
			task.Placement = &dag.Placement{Colocate: "together"}
		}
		g.tasks = append(g.tasks, task)
	}
	return g
}

// inCopies is the same with up to four copies of some activations, which each have a writer.
func (g *randomTasks) inCopies(seed uint64) *randomTasks {
	r := rand.New(rand.NewPCG(seed, 12))
	with := &randomTasks{slices.Clone(g.buffers), g.tasks}
	for i := range with.buffers {
		if with.buffers[i].Role == dag.Activation {
			with.buffers[i].Versions = max(1, r.IntN(7)-2)
		}
	}
	return with
}

func (g *randomTasks) build(t *testing.T, order []int) *dag.Graph {
	t.Helper()
	b := dag.NewBuilder("random")
	for _, buf := range g.buffers {
		b.Buffer(buf)
	}
	for _, i := range order {
		b.Task(g.tasks[i])
	}
	graph := must.Get(b.Build())(t)
	return graph
}

func inOrder(n int) []int {
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	return order
}

// otherOrder is a random order of the tasks in which every pair that depends on
// each other keeps its order, so that the graph means the same.
func otherOrder(r *rand.Rand, g *dag.Graph) []int {
	n := len(g.Tasks)
	waits := make([]int, n)
	var free, order []int
	for t := range n {
		if waits[t] = len(g.Preds(dag.TaskID(t))); waits[t] == 0 {
			free = append(free, t)
		}
	}
	for len(free) > 0 {
		k := r.IntN(len(free))
		t := free[k]
		free = append(free[:k], free[k+1:]...)
		order = append(order, t)
		for _, s := range g.Succs(dag.TaskID(t)) {
			if waits[s]--; waits[s] == 0 {
				free = append(free, int(s))
			}
		}
	}
	return order
}

// Plans with clocks and sleeps of their own, on machines that sleep by themselves and have caps,
// pass a check that knows nothing of the simulator, and twice give the same.
func TestRandomStates(t *testing.T) {
	seen := map[schedule.ChangeKind]int{}
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 11))
		pl := randomPlatform(t, r)
		addStates(r, pl)
		addClocks(r, pl)
		must.Do(t, pl.Complete())
		tasks := randomGraph(r, pl)
		g := tasks.build(t, inOrder(len(tasks.tasks)))
		prob := problem(t, g, pl, 1+r.IntN(4))
		plan := must.Get(policy.HEFT.Plan(prob))(t)
		randomStates(r, plan, g, pl)
		d := mustDecide(t, prob, plan)
		s, err := Run(context.Background(), d, 0, prob.Steps, Options{})
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if err := audit.Check(s, d.Problem(0, prob.Steps, false)); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if !bytes.Equal(scheduleBytes(t, d, prob.Steps), scheduleBytes(t, d, prob.Steps)) {
			t.Errorf("seed %d: two runs of one plan differ", seed)
		}
		for _, c := range s.Changes {
			seen[c.Kind]++
		}
	}
	for _, kind := range []schedule.ChangeKind{schedule.SwitchClock, schedule.FallAsleep, schedule.WakeUp} {
		if seen[kind] < 1000 {
			t.Errorf("%d changes of kind %v; the test shows little", seen[kind], kind)
		}
	}
}
