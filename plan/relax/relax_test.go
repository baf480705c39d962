package relax

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"dahl/dag"
	"dahl/must"
	"dahl/plan/certificate"
	"dahl/plan/lp"
	"dahl/plan/problem"
	"dahl/platform"
	"dahl/platforms/testmachine"
	"dahl/schedule"
)

// machine has a pool of equal units and a device at a memory of its own.
func machine(t *testing.T, units int) *platform.Platform {
	t.Helper()
	p := testmachine.Node(t, testmachine.CPU(units, 1, 5), testmachine.GPU("gpu", 2, 30))
	p.HostPower, p.Links[0].Latency, p.Links[0].IdleWatts, p.Links[0].BusyWatts = testmachine.Watts(3), 3, 0.5, 2
	must.Do(t, p.Complete())
	return p
}

// modelOf is the model of a step that runs alone, or of a steady one.
func modelOf(t *testing.T, b *dag.Builder, p *platform.Platform, o problem.Objective, steady bool) *certificate.Model {
	t.Helper()
	g := must.Get(b.Build())(t)
	priced := must.Get(schedule.Price(&dag.Program{Name: g.Name, Graphs: []*dag.Graph{g}}, p, schedule.Unbound))(t)
	return must.Get(certificate.NewModel(priced, o, steady))(t)
}

// layered is a graph of layers of equal tasks, each of which follows all, one or two tasks of the layer
// before, as tiles of a network do, on two devices of two memories.
func layered(t *testing.T, r *rand.Rand, o problem.Objective) *certificate.Model {
	t.Helper()
	return layers(t, r, o, 1)
}

// layers is layered with so many times as wide layers, of tasks that are equal if they are not wider.
func layers(t *testing.T, r *rand.Rand, o problem.Objective, times int) *certificate.Model {
	t.Helper()
	p := machine(t, 1+r.IntN(4))
	b := dag.NewBuilder("layered")
	var before []dag.BufferID
	for layer := range 2 + r.IntN(4) {
		var written []dag.BufferID
		width, cpu, gpu, bytes, reads := times*(1+r.IntN(5)), int64(5+r.IntN(30)), int64(2+r.IntN(9)), 4+r.IntN(20), r.IntN(3)
		for i := range width {
			task := dag.Task{Name: fmt.Sprintf("%d.%d", layer, i), Op: "op", Costs: []dag.Cost{{Key: "cpu", Ns: cpu + int64((times-1)*i)}, {Key: "gpu", Ns: gpu}}}
			for k, of := range before {
				if reads == 0 || k == i%len(before) || reads == 2 && k == (i+1)%len(before) {
					task.Accesses = append(task.Accesses, dag.Access{Region: dag.Region{Buffer: of}, Mode: dag.Read})
				}
			}
			out := b.Buffer(dag.Buffer{Name: fmt.Sprintf("b%d.%d", layer, i), Shape: []int{bytes}, Type: dag.Uint8, ViewOf: dag.None})
			task.Accesses = append(task.Accesses, dag.Access{Region: dag.Region{Buffer: out}, Mode: dag.Write})
			written = append(written, out)
			b.Task(task)
		}
		before = written
	}
	return modelOf(t, b, p, o, false)
}

// apart gives each task and version a colour of its own.
func apart(m *certificate.Model) *colours {
	c := &colours{task: make([]int32, len(m.Tasks)), version: make([]int32, len(m.Versions))}
	for t := range c.task {
		c.task[t] = int32(t)
	}
	for v := range c.version {
		c.version[v] = int32(v)
	}
	c.tasks, c.versions = members(c.task), members(c.version)
	return c
}

// updated is a steady step in which each of some equal tasks reads a part of what one task wrote, of each of which the copies
// lead or not, and updates weights that others read in the next step, the first half their own ones as well.
func updated(t *testing.T, r *rand.Rand, o problem.Objective) *certificate.Model {
	t.Helper()
	p := machine(t, 1+r.IntN(4))
	p.Devices[1].CopyEnginesIn, p.Devices[1].CopyEnginesOut = 1, 1
	b := dag.NewBuilder("updated")
	buffer := func(name string, bytes int) dag.BufferID {
		return b.Buffer(dag.Buffer{Name: name, Shape: []int{bytes}, Type: dag.Uint8, ViewOf: dag.None})
	}
	access := func(mode dag.Mode, buffers ...dag.BufferID) (list []dag.Access) {
		for _, of := range buffers {
			list = append(list, dag.Access{Region: dag.Region{Buffer: of}, Mode: mode})
		}
		return list
	}
	width, bytes := 2*(1+r.IntN(3)), 4+r.IntN(20)
	var parts, weights []dag.BufferID
	for i := range width {
		parts, weights = append(parts, buffer(fmt.Sprint("x", i), bytes)), append(weights, buffer(fmt.Sprint("w", i), bytes))
	}
	costs := func() []dag.Cost {
		return []dag.Cost{{Key: "cpu", Ns: 5 + int64(r.IntN(30))}, {Key: "gpu", Ns: 2 + int64(r.IntN(9))}}
	}
	b.Task(dag.Task{Name: "feed", Op: "op", Costs: costs(), Accesses: access(dag.Write, parts...)})
	each := costs()
	for i := range width {
		reads := append(access(dag.Read, parts[i]), access(dag.Read, weights[i-i%2:i-i%2+2]...)...)
		b.Task(dag.Task{Name: fmt.Sprint("use", i), Op: "op", Costs: each, Accesses: reads})
	}
	each = costs()
	for i := range width {
		task := dag.Task{Name: fmt.Sprint("update", i), Op: "op", Costs: each, Accesses: access(dag.ReadWrite, weights[i])}
		if i >= width/2 {
			task.Accesses = append(access(dag.Read, weights[i-width/2]), access(dag.Write, weights[i])...)
		}
		b.Task(task)
	}
	return modelOf(t, b, p, o, true)
}

// solveOnce is the proof without rows that are added later.
func (q *quotient) solveOnce(ctx context.Context, value float64) (*certificate.Proof, error) {
	r, err := lp.NewSolver(q.program).Solve(ctx, iterations)
	if err != nil || r.Status != lp.Optimal {
		return nil, fmt.Errorf("not solved: %v, %v", r, err)
	}
	return &certificate.Proof{Value: value, Rows: q.multiplied(r.Y)}, nil
}

// The rows that every program has bound alike whether equal tasks share columns or not: the proofs, added
// up in rational numbers, give the same.
func TestColoursChangeNoBound(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 3))
	fewer := 0
	for n := range 60 {
		o := []problem.Objective{problem.Time, problem.Energy}[n%2]
		m := [](func(*testing.T, *rand.Rand, problem.Objective) *certificate.Model){layered, updated}[n/2%2](t, r, o)
		value := 1e5
		bounds := map[bool]float64{}
		for _, together := range []bool{true, false} {
			c := apart(m)
			if together {
				if c = refine(m); len(c.tasks) < len(m.Tasks) {
					fewer++
				}
			}
			q := newQuotient(m, c, m.Horizon(value))
			q.addFixed()
			proof := must.Get(q.solveOnce(t.Context(), value))(t)
			bounds[together] = must.Get(proof.Bound(m))(t)
		}
		if math.Abs(bounds[true]-bounds[false]) > 1e-7*bounds[false] {
			t.Errorf("graph %d, %s: %.12g by colours, %.12g by tasks", n, o, bounds[true], bounds[false])
		}
	}
	if fewer < 40 {
		t.Errorf("%d of 60 graphs have equal tasks", fewer)
	}
}

// Rows that are added later only make a bound larger, and end in one that solving again does not change.
func TestCutsRaiseTheBound(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 1))
	raised := 0
	for n := range 40 {
		m := layered(t, r, []problem.Objective{problem.Time, problem.Energy}[n%2])
		const value = 1e5
		q := newQuotient(m, refine(m), m.Horizon(value))
		q.addFixed()
		first := must.Get(q.solveOnce(t.Context(), value))(t)
		last := must.Get(Bound(t.Context(), m, value))(t)
		a, errA := first.Bound(m)
		b, errB := last.Bound(m)
		if errA != nil || errB != nil || b < a*(1-1e-9) {
			t.Errorf("graph %d: %v with all rows, %v without (%v, %v)", n, b, a, errA, errB)
		}
		if b > a*1.001 {
			raised++
		}
	}
	if raised == 0 {
		t.Error("no bound was raised")
	}
}

// Without orders only the work counts. For time, n equal tasks of cpu ns on u units or gpu ns on one are
// shared so that both end at once: a rate of u/cpu + 1/gpu tasks per ns takes n/(u/cpu + 1/gpu). With orders
// a bound is no less.
func TestAreaIsTheWork(t *testing.T) {
	const n, units, cpu, gpu = 7, 3, 12, 5
	b := dag.NewBuilder("independent")
	for i := range n {
		b.Task(dag.Task{Name: fmt.Sprint(i), Op: "op", Costs: []dag.Cost{{Key: "cpu", Ns: cpu}, {Key: "gpu", Ns: gpu}}})
	}
	m := modelOf(t, b, machine(t, units), problem.Time, false)
	proof := must.Get(Area(t.Context(), m, 1e5))(t)
	want := n / (units/float64(cpu) + 1/float64(gpu))
	if got, err := proof.Bound(m); err != nil || math.Abs(got-want) > 1e-9*want {
		t.Errorf("%v, %v, want %v", got, err, want)
	}
	r := rand.New(rand.NewPCG(5, 5))
	for i := range 40 {
		m := layered(t, r, []problem.Objective{problem.Time, problem.Energy}[i%2])
		work, errA := Area(t.Context(), m, 1e5)
		all, errB := Bound(t.Context(), m, 1e5)
		if errA != nil || errB != nil {
			t.Fatal(errA, errB)
		}
		a, errA := work.Bound(m)
		b, errB := all.Bound(m)
		if errA != nil || errB != nil || a <= 0 || a > b*(1+1e-9) {
			t.Errorf("graph %d: %v by work, %v with orders (%v, %v)", i, a, b, errA, errB)
		}
	}
}

// A bound that is enough ends the search before orders are looked at, and so does the end of the context.
func TestBoundEndsEarly(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 1))
	ordered := func(p *certificate.Proof) bool {
		return slices.ContainsFunc(p.Rows, func(r certificate.Multiplied) bool {
			return slices.Contains([]certificate.Family{certificate.Precede, certificate.Deliver, certificate.Finish}, r.Row.Family)
		})
	}
	needed := 0
	for range 20 {
		m := layered(t, r, problem.Time)
		all := must.Get(Bound(t.Context(), m, 1e5))(t)
		early, err := Bound(t.Context(), m, 1) // every task takes 2 ns or more
		if err != nil || ordered(early) {
			t.Errorf("1 ns is enough: %v, %v", early, err)
		}
		if bound, err := early.Bound(m); err != nil || bound < 1 {
			t.Errorf("1 ns is enough, and %v is proved (%v)", bound, err)
		}
		if ordered(all) {
			needed++
		}
		ended, end := context.WithCancel(t.Context())
		end()
		if p, err := Bound(ended, m, 1e5); err != nil || p.Value != 1e5 {
			t.Errorf("the context has ended: %v, %v", p, err)
		}
	}
	if needed == 0 {
		t.Error("no bound needs orders")
	}
}

// A bound that time ends within its first program may be above that of the work alone.
func TestBoundOfUnsolved(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 1))
	const value = 1e6
	between := 0
	for range 3 {
		m := layers(t, r, problem.Energy, 6)
		work := must.Get(must.Get(Area(t.Context(), m, value))(t).Bound(m))(t)
		q := newQuotient(m, refine(m), m.Horizon(value))
		q.addFixed()
		solved := must.Get(must.Get(q.solveOnce(t.Context(), value))(t).Bound(m))(t)
		for look := 1; ; look++ {
			bound := must.Get(must.Get(Bound(must.EndsAtLook(t, look), m, value))(t).Bound(m))(t)
			if bound >= solved*(1-1e-6) {
				break
			}
			if bound > work*(1+1e-6) {
				between++
			}
		}
	}
	if between == 0 {
		t.Error("no end of a program left more than the bound by work")
	}
}

// Five tasks on the cores and five on the device, each of which reads 16 bytes of one of the former. They move over one link of 1 B/ns, so that no
// plan takes less than 80 ns. Nothing else takes as long: a task takes 7 ns at most, and a copy alone 16 and 3 of latency.
func TestBoundByCrossing(t *testing.T) {
	p := machine(t, 5)
	p.Links[0].BandwidthBytesPerSec, p.Links[0].Sharing = 1e9, platform.Shared
	must.Do(t, p.Complete())
	b := dag.NewBuilder("pairs")
	for i := range 5 {
		x := b.Buffer(dag.Buffer{Name: fmt.Sprint("x", i), Shape: []int{16}, Type: dag.Uint8, ViewOf: dag.None})
		for _, at := range []struct {
			device string
			mode   dag.Mode
		}{{"cpu", dag.Write}, {"gpu", dag.Read}} {
			b.Task(dag.Task{Name: fmt.Sprint(at.device, i), Op: "op", Costs: []dag.Cost{{Key: at.device, Ns: 7}}, Placement: &dag.Placement{Device: at.device},
				Accesses: []dag.Access{{Region: dag.Region{Buffer: x}, Mode: at.mode}}})
		}
	}
	m := modelOf(t, b, p, problem.Time, false)
	proof := must.Get(Bound(t.Context(), m, 1000))(t)
	bound := must.Get(proof.Bound(m))(t)
	if !slices.ContainsFunc(proof.Rows, func(r certificate.Multiplied) bool { return r.Row.Family == certificate.Cross }) || bound < 80 {
		t.Errorf("the bound is %g, by %v", bound, proof.Rows)
	}
}
