package exact

import (
	"fmt"
	"iter"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"dahl/dag"
	"dahl/energy"
	"dahl/must"
	"dahl/plan/problem"
	"dahl/platform"
	"dahl/schedule"
	"dahl/simulate"
)

// enumeration lists all plans of a small graph: every order in which tasks may be given to workers, every
// worker that has a cost for the task, every clock. It shares nothing with the search.
type enumeration struct {
	priced *schedule.Priced
	most   int
	plans  map[string]*schedule.Plan
}

// add goes on from a part of a plan; false: there are too many.
func (e *enumeration) add(done uint64, order [][]dag.TaskID, clocks []platform.ClockID) bool {
	g, p := e.priced.Program.Graphs[0], e.priced.Platform
	if done == 1<<len(g.Tasks)-1 {
		plan := &schedule.Plan{Order: make([][]dag.TaskID, len(order)), States: schedule.States{Clocks: slices.Clone(clocks)}}
		for w := range order {
			plan.Order[w] = slices.Clone(order[w])
		}
		e.plans[fmt.Sprint(plan.Order, clocks)] = plan
		return len(e.plans) <= e.most
	}
	for t := range g.Tasks {
		ready := done&(1<<t) == 0
		for _, before := range g.Preds(dag.TaskID(t)) {
			ready = ready && done&(1<<before) != 0
		}
		for w := range p.Workers {
			d := p.Workers[w].Device
			if _, ok := e.priced.Costs(0).Of(dag.TaskID(t), d); !ok || !ready {
				continue
			}
			for clock := range p.Devices[d].NumClocks() {
				order[w], clocks[t] = append(order[w], dag.TaskID(t)), clock
				ok := e.add(done|1<<t, order, clocks)
				order[w] = order[w][:len(order[w])-1]
				if !ok {
					return false
				}
			}
		}
	}
	return true
}

// least simulates all plans, and returns the least value by objective.
func (e *enumeration) least(t *testing.T) map[problem.Objective]float64 {
	return leastOf(t, e.priced, maps.Values(e.plans))
}

// asleep are the plans with naps after some of the tasks on devices that have them, drawn four times for each.
func (e *enumeration) asleep(r *rand.Rand) (plans []*schedule.Plan) {
	p := e.priced.Platform
	for _, key := range slices.Sorted(maps.Keys(e.plans)) {
		for range 4 {
			plan := *e.plans[key]
			plan.Sleeps = nil
			for w, list := range plan.Order {
				for _, t := range list {
					if len(p.Devices[p.Workers[w].Device].Sleeps) > 0 && r.IntN(2) == 0 {
						plan.SetSleep(e.priced.Program.Graphs[0], t, 1)
					}
				}
			}
			plans = append(plans, &plan)
		}
	}
	return plans
}

func leastOf(t *testing.T, priced *schedule.Priced, plans iter.Seq[*schedule.Plan]) map[problem.Objective]float64 {
	best := map[problem.Objective]float64{problem.Time: math.Inf(1), problem.Energy: math.Inf(1), problem.EDP: math.Inf(1)}
	for plan := range plans {
		makespan, joules, err := simulated(t, priced, plan)
		if err != nil {
			continue // such as above a cap
		}
		best[problem.Time] = min(best[problem.Time], makespan)
		best[problem.Energy] = min(best[problem.Energy], joules)
		best[problem.EDP] = min(best[problem.EDP], joules*makespan)
	}
	return best
}

func simulated(t *testing.T, priced *schedule.Priced, plan *schedule.Plan) (seconds, joules float64, err error) {
	d, err := priced.Decide(schedule.Choice{Plans: []*schedule.Plan{plan}})
	if err != nil {
		return 0, 0, err
	}
	s, err := simulate.Run(t.Context(), d, 0, 1, simulate.Options{})
	if err != nil {
		return 0, 0, err
	}
	r, err := energy.FromSchedule(s, d.Problem(0, 1, false))
	if err != nil {
		return 0, 0, err
	}
	return s.Makespan.Seconds(), r.TotalJoules, nil
}

// machine is a platform drawn at random; what the model of the search leaves out is drawn with it.
func machine(t *testing.T, r *rand.Rand, relaxed bool) *platform.Platform {
	t.Helper()
	p := &platform.Platform{Name: "drawn", HostPower: platform.Quantity{Value: float64(r.IntN(4)), Source: platform.Guess}}
	memories := 1 + r.IntN(3)
	for m := range memories {
		p.Memories = append(p.Memories, platform.Memory{Name: fmt.Sprint("m", m), BandwidthBytesPerSec: 1e9})
	}
	for i := range max(memories, 2) {
		idle := 0.5 + float64(r.IntN(3))
		d := platform.Device{Name: fmt.Sprint("d", i), Kind: platform.CPU, Count: 1, Memory: platform.MemoryID(i % memories), PowerSource: platform.Guess,
			IdleWatts: idle, Busy: platform.BusyPower{UnitWatts: idle + float64(r.IntN(12))}, Dispatch: time.Duration(r.IntN(2)) * 300 * time.Millisecond}
		if r.IntN(3) == 0 {
			d.Count = 2
		}
		if r.IntN(2) == 0 {
			slow := platform.BusyPower{UnitWatts: idle + (d.Busy.UnitWatts-idle)*0.3}
			d.Clocks = []platform.Clock{{Name: "fast", Scale: 1, Idle: idle, Busy: d.Busy}, {Name: "slow", Scale: 0.5, Idle: idle, Busy: slow}}
			d.UnitClocks = d.Count > 1 && r.IntN(2) == 0
			if r.IntN(2) == 0 {
				d.Switch = platform.Transition{Takes: time.Second, Joules: 2}
			}
		}
		if r.IntN(3) == 0 {
			d.MayBeOff, d.OffWatts = true, 0.25
		}
		if relaxed {
			relax(r, &d)
		}
		p.Devices = append(p.Devices, d)
	}
	star := r.IntN(2) == 0 // the memories reach each other by way of the first
	for from := range memories {
		for to := from + 1; to < memories; to++ {
			if from > 0 && star {
				continue
			}
			l := platform.Link{Name: fmt.Sprintf("l%d-%d", from, to), BandwidthBytesPerSec: 3, Latency: time.Duration(r.IntN(2)) * time.Second, Sharing: platform.Fatpipe,
				IdleWatts: 0.1, BusyWatts: 0.1 + 0.5*float64(r.IntN(3)), PowerSource: platform.Guess}
			if relaxed {
				l.Sharing = []platform.Sharing{platform.Shared, platform.Duplex, platform.Fatpipe}[r.IntN(3)]
			}
			p.Routes = append(p.Routes, platform.Route{From: platform.MemoryID(from), To: platform.MemoryID(to), Links: []platform.LinkID{platform.LinkID(len(p.Links))}})
			p.Links = append(p.Links, l)
		}
	}
	if relaxed && r.IntN(4) == 0 {
		p.CapWatts = 25 + float64(r.IntN(20))
	}
	must.Do(t, p.Complete())
	return p
}

// relax adds to a device what the model leaves out.
func relax(r *rand.Rand, d *platform.Device) {
	d.Handoff = time.Duration(r.IntN(2)) * 400 * time.Millisecond
	d.CopyEnginesIn, d.CopyEnginesOut = r.IntN(2), r.IntN(2)
	if r.IntN(3) == 0 {
		d.Sleeps = []platform.SleepState{{Name: "nap", Watts: 0.1, After: time.Duration(1+r.IntN(3)) * time.Second, Leave: platform.Transition{Takes: 500 * time.Millisecond, Joules: 1}}}
	}
	if len(d.Clocks) > 0 && r.IntN(2) == 0 {
		d.Clocks[1].Idle /= 2
	}
	if len(d.Clocks) == 0 && d.Count == 2 && r.IntN(2) == 0 {
		d.Busy = platform.BusyPower{WholeDevice: true, FirstWatts: 2*d.IdleWatts + 6, AllWatts: 2*d.IdleWatts + 8}
	}
}

// network is a graph drawn at random.
func network(t *testing.T, r *rand.Rand, p *platform.Platform, tasks int, relaxed bool) *dag.Graph {
	t.Helper()
	b := dag.NewBuilder("drawn")
	home := []string{"", dag.HostHome, p.Memories[r.IntN(len(p.Memories))].Name}[r.IntN(3)]
	in := b.Buffer(dag.Buffer{Name: "in", Shape: []int{1 + r.IntN(4)}, Type: dag.Uint8, Role: dag.Parameter, Home: home})
	var wrote []dag.BufferID
	for i := range tasks {
		task := dag.Task{Name: fmt.Sprint("t", i)}
		for d := range p.Devices {
			if r.IntN(6) > 0 || d == len(p.Devices)-1 {
				c := dag.Cost{Key: p.Devices[d].Name, Ns: int64(1+r.IntN(9)) * 1e9}
				if r.IntN(5) == 0 {
					c.Joules = float64(1 + r.IntN(20))
				}
				task.Costs = append(task.Costs, c)
			}
		}
		for k, w := range wrote {
			if r.IntN(2) == 0 || tasks > 5 && k == len(wrote)-1 {
				mode := dag.Read
				if relaxed && r.IntN(4) == 0 {
					mode = dag.ReadWrite
				}
				a := dag.Access{Region: dag.Region{Buffer: w}, Mode: mode}
				if relaxed && r.IntN(4) == 0 {
					a.Box = dag.Box{{Lo: 0, Hi: 1}}
				}
				task.Accesses = append(task.Accesses, a)
			}
		}
		if r.IntN(4) == 0 {
			mode := dag.Read
			if relaxed && i > 0 {
				mode = dag.ReadWrite
			}
			task.Accesses = append(task.Accesses, dag.Access{Region: dag.Region{Buffer: in}, Mode: mode})
		}
		out := b.Buffer(dag.Buffer{Name: fmt.Sprint("b", i), Shape: []int{2 + r.IntN(12)}, Type: dag.Uint8})
		task.Accesses = append(task.Accesses, dag.Access{Region: dag.Region{Buffer: out}, Mode: dag.Write})
		wrote = append(wrote, out)
		if r.IntN(6) == 0 {
			task.Placement = &dag.Placement{Colocate: "together"}
		} else if r.IntN(10) == 0 {
			task.Placement = &dag.Placement{Device: p.Workers[r.IntN(len(p.Workers))].Name}
		}
		b.Task(task)
	}
	return must.Get(b.Build())(t)
}

func hasSleeps(p *platform.Platform) bool {
	return slices.ContainsFunc(p.Devices, func(d platform.Device) bool { return len(d.Sleeps) > 0 })
}

// TestBruteForce: on graphs of up to 8 tasks the search finds and proves what the least of all plans
// is, each of them simulated, for every objective. Where a plan could let units sleep and joules count it proves
// a bound, which plans that do so keep.
func TestBruteForce(t *testing.T) {
	graphs, mostPlans := 200, 400
	if testing.Short() {
		graphs = 40
	}
	sizes, searches, better := map[int]int{}, 0, 0
	r := rand.New(rand.NewPCG(1, 2))
	for n := 0; n < graphs; {
		relaxed := n%2 == 1
		p := machine(t, r, relaxed)
		tasks := 3 + r.IntN(6)
		g := network(t, r, p, tasks, relaxed)
		priced, err := schedule.Price(&dag.Program{Name: g.Name, Graphs: []*dag.Graph{g}}, p, schedule.Unbound)
		if err != nil {
			continue // a task is placed where it cannot run
		}
		e := enumeration{priced: priced, most: mostPlans, plans: map[string]*schedule.Plan{}}
		if !e.add(0, make([][]dag.TaskID, len(p.Workers)), make([]platform.ClockID, len(priced.Program.Graphs[0].Tasks))) {
			continue
		}
		n++
		sizes[tasks]++
		sleeps, asleep := hasSleeps(p), map[problem.Objective]float64{}
		if sleeps {
			asleep = leastOf(t, priced, slices.Values(e.asleep(rand.New(rand.NewPCG(3, uint64(n))))))
		}
		for objective, want := range e.least(t) {
			got, err := Search(t.Context(), priced, Options{Objective: objective, Nodes: 100_000})
			if math.IsInf(want, 1) {
				if err == nil {
					t.Errorf("graph %d: a plan is found where none can run", n)
				}
				continue
			}
			if err != nil {
				t.Errorf("graph %d, %s: %v", n, objective, err)
				continue
			}
			if !got.Proven && (!sleeps || objective == problem.Time) || math.Abs(got.Value-want) > want*1e-9 {
				t.Errorf("graph %d of %d tasks, relaxed %v, %s: value %.12g, proven %v, bound %.12g; the least of %d plans is %.12g", n, tasks, relaxed, objective, got.Value, got.Proven, got.Bound, len(e.plans), want)
			}
			if least := asleep[objective]; sleeps && got.Bound > least*(1+1e-9) {
				t.Errorf("graph %d, %s: bound %.12g; a plan with sleep has %.12g", n, objective, got.Bound, least)
			} else if sleeps && least < want*(1-1e-9) {
				better++
			}
			seconds, joules, err := simulated(t, priced, got.Plan)
			if err != nil || objective.Of(time.Duration(math.Round(seconds*1e9)), joules) != got.Value {
				t.Errorf("graph %d, %s: the plan comes to %v s, %v J, %v; the search says %v", n, objective, seconds, joules, err, got.Value)
			}
			searches++
		}
	}
	if better == 0 {
		t.Error("no plan with sleep is better than those without")
	}
	t.Logf("graphs by tasks %v, %d searches, sleep is better in %d", sizes, searches, better)
}
