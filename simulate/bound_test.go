package simulate

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"dahl/dag"
	"dahl/must"
	"dahl/platform"
	"dahl/schedule"
	"dahl/schedule/layout"
	"dahl/schedule/policy"
)

// TestNoScheduleBeatsTheBound: on random graphs and machines every policy, and plans by chance
// with variants by chance, take no less than the bound, on the whole machine and on parts of it,
// which is one number for all of them.
func TestNoScheduleBeatsTheBound(t *testing.T) {
	cases := 1000
	if testing.Short() {
		cases = 100
	}
	n := &boundCounts{}
	for seed := range uint64(cases) {
		r := rand.New(rand.NewPCG(seed, 27))
		pl := boundPlatform(t, r)
		tasks := randomGraph(r, pl)
		modelTasks(r, tasks)
		g := tasks.build(t, inOrder(len(tasks.tasks)))
		whole, err := schedule.Price(&dag.Program{Name: "p", Graphs: []*dag.Graph{g}}, pl, schedule.Unbound)
		if err != nil {
			n.refused++
			continue
		}
		c := &boundCase{t: t, r: r, whole: whole, steps: 1 + r.IntN(8), boundCounts: n}
		c.where = fmt.Sprintf("seed %d", seed)
		c.on(whole, 1)
		for range 2 {
			devices := anyDevices(r, pl)
			if part, err := whole.On(devices); err == nil {
				c.where = fmt.Sprintf("seed %d on %s", seed, devices)
				c.on(part, 0.5)
			}
		}
		c.atOtherClock(pl)
	}
	t.Logf("%+v", *n)
	if n.ran < 10*cases || n.reached < cases/5 || n.evicted < cases || n.parts < cases || n.refused > n.ran/20 {
		t.Errorf("the test tests little: %+v", *n)
	}
}

// boundCounts says how much a test has seen: runs, those of them that take as long as the bound,
// evictions, runs on parts of a machine whose bound is larger than the whole's, and what had
// no place for a task or a buffer.
type boundCounts struct{ ran, reached, evicted, parts, refused int }

// boundCase is one graph on one machine.
type boundCase struct {
	t     *testing.T
	r     *rand.Rand
	whole *schedule.Priced
	steps int
	where string
	*boundCounts
}

// on decides in every way, or in some, on the machine or on a part of it, and simulates.
func (c *boundCase) on(part *schedule.Priced, some float64) {
	chance := policy.NewOnline(schedule.Doc{Name: "chance"}, func(*schedule.Problem) policy.Scheduler { return &byChance{r: c.r} })
	if plan := c.planByChance(part, chance); plan != nil && c.r.Float64() < some {
		if d, err := part.Decide(schedule.Choice{Plans: []*schedule.Plan{plan}}); err != nil {
			c.refused++
		} else {
			c.run(part, d)
		}
	}
	for _, info := range append(policy.All(), chance) {
		if c.r.Float64() >= some {
			continue
		}
		if d, err := part.Decide(schedule.Choice{Policy: info}); err != nil {
			c.refused++
		} else {
			c.run(part, d)
		}
		if part.DecidesLater(info) { // and with nothing laid out
			p := part.Problem(0, c.steps)
			c.run(part, &schedule.Decision{Priced: part, Policy: info, Graphs: []schedule.Decided{{Problem: *p, Timed: part.Timed(0)}}})
		}
	}
}

// run simulates a decision and compares it with the bounds.
func (c *boundCase) run(part *schedule.Priced, d *schedule.Decision) {
	c.t.Helper()
	s, err := Run(context.Background(), d, 0, c.steps, Options{Timed: c.r.IntN(4) == 0})
	if err != nil {
		c.refused++
		return
	}
	bound, ofWhole := part.LowerBound(0, c.steps), c.whole.LowerBound(0, c.steps)
	if decided := d.Priced.LowerBound(0, c.steps); decided != bound {
		c.t.Fatalf("%s, %s: the bound is %d for the decision and %d before it", c.where, s.Policy, decided, bound)
	}
	if s.Makespan < bound || bound < ofWhole {
		c.t.Fatalf("%s, %s: %d steps take %d, the bound is %d, that of the whole machine %d", c.where, s.Policy, c.steps, s.Makespan, bound, ofWhole)
	}
	c.ran++
	c.evicted += len(s.Evictions)
	if s.Makespan == bound {
		c.reached++
	}
	if bound > ofWhole {
		c.parts++
	}
}

// planByChance is a plan for a part of the machine that draws workers, orders and variants; nil
// where its memories are too small.
func (c *boundCase) planByChance(part *schedule.Priced, chance schedule.Policy) *schedule.Plan {
	d, err := part.Decide(schedule.Choice{Policy: chance})
	if err != nil {
		return nil
	}
	s, err := Run(context.Background(), d, 0, 1, Options{})
	if err != nil {
		return nil
	}
	g := part.Program.Graphs[0]
	plan := schedule.PlanFrom(s, "chance", g)
	plan.Variants = schedule.Variants{}
	for _, device := range part.Platform.Devices {
		plan.Variants[device.Name] = map[string]string{}
		for t := range g.Tasks {
			if task := &g.Tasks[t]; task.Op != "op" && c.r.IntN(2) == 0 {
				plan.Variants[device.Name][task.Op+" "+task.Type.String()+" "+task.Shape] = []string{"a", "b"}[c.r.IntN(2)]
			}
		}
	}
	return plan
}

// atOtherClock runs the graph with another clock of a device in force.
func (c *boundCase) atOtherClock(pl *platform.Platform) {
	for _, d := range pl.Devices {
		if len(d.Clocks) < 2 {
			continue
		}
		clocked, err := pl.WithClock(d.Name, d.Clocks[1].Name)
		if err != nil {
			c.t.Fatal(err)
		}
		other, err := schedule.Price(c.whole.Program, clocked, schedule.Unbound)
		if err != nil {
			continue
		}
		if a, b := other.LowerBound(0, c.steps), c.whole.LowerBound(0, c.steps); a != b {
			c.t.Fatalf("%s: the bound is %d, and %d where the clock of %s is %s", c.where, b, a, d.Name, d.Clocks[1].Name)
		}
		c.on(other, 0.3)
	}
}

// byChance gives tasks to workers at random.
type byChance struct {
	r     *rand.Rand
	queue []dag.Instance
}

func (q *byChance) Ready(v *policy.View, i dag.Instance) platform.WorkerID {
	q.queue = append(q.queue, i)
	if workers := v.Workers(i.Task); q.r.IntN(3) > 0 {
		return workers[q.r.IntN(len(workers))]
	}
	return policy.Undecided
}

func (q *byChance) Next(v *policy.View, w platform.WorkerID) (dag.Instance, bool) {
	for _, k := range q.r.Perm(len(q.queue)) {
		if i := q.queue[k]; v.CanRun(i.Task, w) {
			q.queue = slices.Delete(q.queue, k, k+1)
			return i, true
		}
	}
	return dag.Instance{}, false
}

// boundPlatform is a random machine whose tasks take other times with other numbers of units:
// by models that were measured with some of them busy, in caches and in steps, and by a share of
// a bandwidth. Memories may be small, two devices may have one, and clocks and copy engines vary.
func boundPlatform(t *testing.T, r *rand.Rand) *platform.Platform {
	t.Helper()
	p := randomPlatform(t, r)
	vary(t, p, r)
	if r.IntN(3) == 0 {
		p.Devices = append(p.Devices, platform.Device{Name: "beside", Kind: "emulated", Count: 1 + r.IntN(2), PowerSource: platform.Guess})
	}
	for i := range p.Devices {
		d := &p.Devices[i]
		d.FlopsPerSec = map[string]float64{"float32": float64(1+r.IntN(4)) * 5e8}
		d.L2Bytes, d.L3Bytes = int64(r.IntN(100)), int64(r.IntN(300))
		if d.Kind != "cpu" {
			d.Timing = time.Duration(r.IntN(6))
			d.CopyEnginesIn, d.CopyEnginesOut = r.IntN(3), r.IntN(3)
		}
		if r.IntN(3) == 0 {
			d.Clocks = []platform.Clock{{Name: "base", Scale: 1, Idle: d.IdleWatts, Busy: d.Busy}, {Name: "other", Scale: []float64{0.5, 2}[r.IntN(2)]}}
		}
		for op := range 3 {
			randomModels(r, p, d, fmt.Sprintf("m%d", op))
		}
	}
	for m := 1; m < len(p.Memories); m++ {
		if r.IntN(2) == 0 {
			p.Memories[m].CapacityBytes = layout.Align(int64(192 + r.IntN(600)))
		}
	}
	must.Do(t, p.Complete())
	return p
}

// randomModels are of two variants of an operation, each of some shapes and numbers of units.
func randomModels(r *rand.Rand, p *platform.Platform, d *platform.Device, op string) {
	for _, variant := range []string{"a", "b"} {
		for shape := range 1 + r.IntN(5) {
			cached := r.IntN(2) == 0
			for active := range d.Count {
				if r.IntN(3) == 0 {
					continue
				}
				ns := func() float64 { return float64(1 + r.IntN(30)) }
				m := platform.Model{Op: op, Variant: variant, Type: "float32", Device: d.Name, Shape: fmt.Sprint(shape), Active: 1 + active, Count: 5,
					MedianNs: ns(), P95Ns: 40, Flops: float64(r.IntN(40)), MovedBytes: int64(r.IntN(40))}
				if cached {
					m.WarmNs, m.FarNs = ns(), ns()
				} else if r.IntN(2) == 0 {
					m.StepNs, m.FirstNs = ns(), ns()
				}
				if len(d.Clocks) > 0 {
					m.Clock = []string{"", "base", "other"}[r.IntN(3)]
				}
				p.Models = append(p.Models, m)
			}
		}
	}
}

// modelTasks takes the costs of some tasks away, so that models or rooflines answer for them.
func modelTasks(r *rand.Rand, g *randomTasks) {
	for i := range g.tasks {
		if task := &g.tasks[i]; r.IntN(3) > 0 {
			task.Costs, task.Op, task.Shape, task.Type = nil, fmt.Sprintf("m%d", r.IntN(4)), fmt.Sprint(r.IntN(6)), dag.Float32
			task.Flops, task.MovedBytes = float64(r.IntN(40)), int64(r.IntN(40))
		}
	}
}

// anyDevices is a random list for [schedule.Priced.On].
func anyDevices(r *rand.Rand, p *platform.Platform) string {
	var list []string
	for len(list) == 0 {
		for _, d := range p.Devices {
			if r.IntN(2) == 0 {
				list = append(list, fmt.Sprintf("%s:%d", d.Name, 1+r.IntN(d.Count)))
			}
		}
	}
	return strings.Join(list, ",")
}
