package best

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"dahl/dag"
	"dahl/must"
	"dahl/plan/certificate"
	"dahl/plan/exact"
	"dahl/plan/problem"
	"dahl/plan/relax"
	"dahl/plan/space"
	"dahl/platform"
	"dahl/schedule"
)

// instance is a random graph of few tasks on two unlike devices, of one memory or two, with one clock or
// two, and the least time and joules of all its plans.
type instance struct {
	priced *schedule.Priced
	least  map[problem.Objective]float64 // nanoseconds, nanojoules, their product
}

func randomInstance(t *testing.T, r *rand.Rand) (in instance, ok bool) {
	t.Helper()
	in = instance{randomGraph(t, r, 3+r.IntN(5)), map[problem.Objective]float64{}}
	for o, unit := range map[problem.Objective]float64{problem.Time: 1e9, problem.Energy: 1e9, problem.EDP: 1e18} {
		found, err := exact.Search(t.Context(), in.priced, exact.Options{Objective: o, Nodes: 20_000})
		if err != nil || !found.Proven {
			return in, false
		}
		in.least[o] = found.Value * unit
	}
	return in, true
}

// randomGraph is a random graph of so many tasks, on such a machine.
func randomGraph(t *testing.T, r *rand.Rand, tasks int) *schedule.Priced {
	t.Helper()
	return randomGraphOf(t, r, tasks, func(i int) dag.Task {
		return dag.Task{Op: "op", Costs: []dag.Cost{{Key: "d0", Ns: int64(1 + r.IntN(40))}, {Key: "d1", Ns: int64(1 + r.IntN(40))}}}
	})
}

// randomGraphOf is one of tasks that are given but for their names and data.
func randomGraphOf(t *testing.T, r *rand.Rand, tasks int, taskOf func(i int) dag.Task) *schedule.Priced {
	t.Helper()
	p := &platform.Platform{Name: "p", HostPower: platform.Quantity{Value: float64(r.IntN(4)), Source: platform.Guess}, Memories: []platform.Memory{{Name: "ram"}}}
	for i := range 2 {
		d := platform.Device{Name: fmt.Sprint("d", i), Kind: []string{"cpu", "emulated"}[i], Count: 1 + r.IntN(2), Dispatch: time.Duration(r.IntN(3)),
			IdleWatts: 1 + r.Float64(), Busy: platform.BusyPower{UnitWatts: float64(4 + r.IntN(20))}, PowerSource: platform.Guess}
		if d.Count > 1 && r.IntN(2) == 0 {
			d.Busy = platform.BusyPower{FirstWatts: 12, AllWatts: float64(14 + r.IntN(9)), WholeDevice: true}
		}
		if r.IntN(2) == 0 {
			d.Clocks = []platform.Clock{{Name: "own", Scale: 1, Idle: d.IdleWatts, Busy: d.Busy}, {Name: "slow", Scale: 0.5, Idle: d.IdleWatts / 2, Busy: platform.BusyPower{UnitWatts: 3}}}
		}
		p.Devices = append(p.Devices, d)
	}
	if r.IntN(2) == 0 {
		p.Memories = append(p.Memories, platform.Memory{Name: "vram"})
		p.Devices[1].Memory, p.Devices[1].CopyEnginesIn, p.Devices[1].CopyEnginesOut = 1, r.IntN(3), r.IntN(2)
		p.Links = []platform.Link{{Name: "bus", BandwidthBytesPerSec: 1e9, Latency: time.Duration(r.IntN(5)), Sharing: platform.Sharing(r.IntN(3)), IdleWatts: 0.5, BusyWatts: 2, PowerSource: platform.Guess}}
		p.Routes = []platform.Route{{From: 0, To: 1, Links: []platform.LinkID{0}}}
	}
	must.Do(t, p.Complete())
	b := dag.NewBuilder("random")
	var written []dag.BufferID
	for i := range tasks {
		task := taskOf(i)
		task.Name = fmt.Sprint("t", i)
		for _, of := range written {
			if r.IntN(3) == 0 {
				task.Accesses = append(task.Accesses, dag.Access{Region: dag.Region{Buffer: of}, Mode: dag.Read})
			}
		}
		out := b.Buffer(dag.Buffer{Name: fmt.Sprint("b", i), Shape: []int{1 + r.IntN(8)}, Type: dag.Float32, ViewOf: dag.None})
		task.Accesses = append(task.Accesses, dag.Access{Region: dag.Region{Buffer: out}, Mode: dag.Write})
		written = append(written, out)
		b.Task(task)
	}
	g := must.Get(b.Build())(t)
	return must.Get(schedule.Price(&dag.Program{Name: "random", Graphs: []*dag.Graph{g}}, p, schedule.Unbound))(t)
}

// tolerance is what sums of floating-point joules may be off.
const tolerance = 1e-9

// The bound of a steady step is no more than what a step adds to a long run by any policy's plan.
func TestSteadyBounds(t *testing.T) {
	r := rand.New(rand.NewPCG(17, 4))
	compared, near, cases := 0, 0, 150
	if testing.Short() {
		cases = 30
	}
	for compared < cases {
		in, ok := randomInstance(t, r)
		if !ok {
			continue
		}
		for _, o := range []problem.Objective{problem.Time, problem.Energy, problem.EDP} {
			found := must.Get(Find(t.Context(), space.Of(in.priced, []string{""}), Options{Aim: problem.Aim{Objective: o, Steady: true}, Nodes: 1000}))(t)
			compared++
			// Find holds the bound to the value of the plan that it knows; so each claim is proved once more
			// with a value that leaves room.
			var leaf certificate.Leaf
			for _, claim := range found.Certificate.Leaves[0].Claims {
				m := must.Get(certificate.NewModel(in.priced, claim.Objective, true))(t)
				proof := must.Get(relax.Bound(t.Context(), m, 3*claim.Proofs[0].Value))(t)
				must.Do(t, leaf.Add(m, proof))
			}
			bound := leaf.Bound()
			if bound > found.Value*(1+tolerance) {
				t.Errorf("graph %d, %s: the bound is %.12g, and a step takes %.12g", compared, o, bound, found.Value)
			}
			if bound > 0.7*found.Value {
				near++
			}
		}
	}
	if near < compared/3 {
		t.Errorf("%d of %d bounds are above 0.7 of what was found", near, compared)
	}
}
