package best

import (
	"bytes"
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
	"dahl/plan/tiling"
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

// No relaxation bounds a graph above the least value of its plans, which branch and bound knows, and most
// come near. What a certificate claims is what its check proves again after it was written and read.
func TestBoundsOfKnownOptima(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 8))
	compared, near, cases := 0, 0, 200
	if testing.Short() {
		cases = 40
	}
	for compared < cases {
		in, ok := randomInstance(t, r)
		if !ok {
			continue
		}
		for _, o := range []problem.Objective{problem.Time, problem.Energy} {
			least := in.least[o]
			m := must.Get(certificate.NewModel(in.priced, o, false))(t)
			proof := must.Get(relax.Bound(t.Context(), m, least*1.5))(t)
			c := &certificate.Certificate{Objective: o, Devices: []string{""}, Tiles: []tiling.Tiling{{}}, Leaves: []certificate.Leaf{{Graph: in.priced.Program.Graphs[0].Hash()}}}
			must.Do(t, c.Leaves[0].Add(m, proof))
			bound := c.Leaves[0].Claims[0].Bound
			if bound > least*(1+tolerance) {
				t.Errorf("graph %d, %s: the bound is %.12g, and a plan takes %.12g", compared, o, bound, least)
			}
			if bound > 0.8*least {
				near++
			}
			var file bytes.Buffer
			must.Do(t, c.Write(&file))
			again, err := certificate.Read(&file)
			if err == nil {
				err = again.Check(space.Of(in.priced, again.Devices))
			}
			if err != nil || again.Bound() != c.Bound() {
				t.Errorf("graph %d, %s: written and read again: %v", compared, o, err)
			}
			compared++
		}
	}
	if near < compared*2/3 {
		t.Errorf("%d of %d bounds are above 0.8 of the least", near, compared)
	}
}

// A certificate that somebody changed proves something lower, something true, or nothing. Of instances
// with a known least value none of 10,000 mutants proves more than that.
func TestMutants(t *testing.T) {
	r := rand.New(rand.NewPCG(13, 21))
	families := []certificate.Family{certificate.Assign, certificate.Precede, certificate.Deliver, certificate.Finish, certificate.Area, certificate.Awake,
		certificate.Span, certificate.Copy, certificate.Inflow, certificate.Engine, certificate.Tail, certificate.Head, certificate.Between,
		certificate.Pool, certificate.PoolAwake, certificate.Turn, certificate.Given, certificate.Spread}
	mutants, refused, proved := 0, 0, 0
	for mutants < 10_000 {
		in, ok := randomInstance(t, r)
		if !ok {
			continue
		}
		for _, o := range []problem.Objective{problem.Time, problem.Energy} {
			least := in.least[o]
			m := must.Get(certificate.NewModel(in.priced, o, false))(t)
			proof := must.Get(relax.Bound(t.Context(), m, least*1.2))(t)
			for range 200 {
				mutants++
				mutant := certificate.Proof{Value: proof.Value, Rows: append([]certificate.Multiplied(nil), proof.Rows...)}
				for range 1 + r.IntN(4) {
					k := r.IntN(len(mutant.Rows))
					row := &mutant.Rows[k]
					switch r.IntN(7) {
					case 0:
						row.Multiplier *= 4 * r.Float64()
					case 1:
						row.Multiplier += 10 * r.NormFloat64()
					case 2:
						row.Row.From, row.Row.To = row.Row.To, int32(r.IntN(len(m.Tasks)+1))
					case 3:
						row.Row.Family = families[r.IntN(len(families))]
					case 4:
						row.Row.Where = r.IntN(3)
					case 5:
						mutant.Rows = append(mutant.Rows, mutant.Rows[r.IntN(len(mutant.Rows))])
					case 6:
						mutant.Value *= 2 * r.Float64()
					}
				}
				switch bound, err := mutant.Bound(m); {
				case err != nil:
					refused++
				case bound > least*(1+tolerance):
					t.Errorf("a mutant proves %s %.12g, and a plan takes %.12g", o, bound, least)
				default:
					proved++
				}
			}
		}
	}
	if refused < mutants/20 || proved < mutants/20 {
		t.Errorf("%d mutants were refused and %d proved something: the test tests little", refused, proved)
	}
}

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
