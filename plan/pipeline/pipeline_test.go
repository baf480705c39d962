package pipeline

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"dahl/dag"
	"dahl/must"
	"dahl/plan"
	"dahl/platform"
	"dahl/schedule"
	"dahl/schedule/audit"
	"dahl/simulate"
)

// gpus is a machine of some GPUs, each with a memory and a link of a bandwidth in each direction to the host's memory.
func gpus(t testing.TB, n int, bandwidth string) *platform.Platform {
	t.Helper()
	var text strings.Builder
	text.WriteString("name = \"gpus\"\n[[memory]]\nname = \"ram\"\nhost = true\n")
	for i := range n {
		fmt.Fprintf(&text, "[[memory]]\nname = \"m%d\"\n[[device]]\nname = \"gpu%[1]d\"\nkind = \"cuda\"\nmemory = \"m%[1]d\"\nspeed = { float32 = \"1 GF/s\" }\n", i)
		fmt.Fprintf(&text, "[[link]]\nname = \"l%d\"\nbandwidth = \"%s\"\nsharing = \"duplex\"\n[[route]]\nfrom = \"ram\"\nto = \"m%[1]d\"\nlinks = [\"l%[1]d\"]\n", i, bandwidth)
	}
	return must.Get(platform.Parse([]byte(text.String()), "gpus.toml"))(t)
}

// chain is a training of layers one after the other: a backward task reads the output of its layer, and the gradient of the layer after it.
func chain(t testing.TB, forward, backward []int) *dag.Graph {
	t.Helper()
	var b strings.Builder
	b.WriteString("graph chain\n")
	for i := range forward {
		fmt.Fprintf(&b, "buffer a%d uint8 [1000] activation\nbuffer g%[1]d uint8 [1000] gradient\n", i)
	}
	task := func(i int, phase string, ns int, accesses ...string) {
		fmt.Fprintf(&b, "task %s%d\n", phase, i)
		for _, a := range accesses {
			fmt.Fprintf(&b, " %s\n", a)
		}
		fmt.Fprintf(&b, " costs *=%d\n labels layer=l%d phase=%s\n place colocate=l%[2]d\n", ns, i, phase)
	}
	for i, ns := range forward {
		read := ""
		if i > 0 {
			read = fmt.Sprintf("read a%d", i-1)
		}
		task(i, "forward", ns, fmt.Sprintf("write a%d", i), read)
	}
	for i, ns := range slices.Backward(backward) {
		read := ""
		if i < len(backward)-1 {
			read = fmt.Sprintf("read g%d", i+1)
		}
		task(i, "backward", ns, fmt.Sprintf("read a%d", i), fmt.Sprintf("write g%d", i), read)
	}
	return must.Get(dag.ParseText(strings.NewReader(b.String()), "chain"))(t)
}

func priced(t testing.TB, g *dag.Graph, p *platform.Platform) *schedule.Priced {
	t.Helper()
	return must.Get(schedule.Price(&dag.Program{Name: g.Name, Graphs: []*dag.Graph{g}, Order: []dag.Segment{{Steps: 1}}}, p, schedule.Unbound))(t)
}

// some are n times between 1 and 9 us.
func some(r *rand.Rand, n int) (all []int) {
	for range n {
		all = append(all, 1000+r.IntN(8000))
	}
	return all
}

// TestPlan: wherever the layers of a training lie, steps follow each other as fast as the worker with most work, where transfers take next to nothing. The
// run is one of the plan.
func TestPlan(t *testing.T) {
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 3))
		layers := 1 + r.IntN(12)
		g, p := chain(t, some(r, layers), some(r, layers)), gpus(t, 3, "1000 GB/s")
		priced := priced(t, g, p)
		m := must.Get(New(priced.Problem(0, 1)))(t)
		workers, longest := make([]platform.WorkerID, len(g.Tasks)), make([]int64, 3)
		for i := range layers {
			w := platform.WorkerID(r.IntN(3))
			workers[i], workers[len(workers)-1-i] = w, w
			longest[w] += g.Tasks[i].Costs[0].Ns + g.Tasks[len(workers)-1-i].Costs[0].Ns
		}
		if period := m.Period(workers); period != slices.Max(longest) {
			t.Fatalf("seed %d: a period of %d ns, want %d", seed, period, slices.Max(longest))
		}
		made := m.Plan(workers, Stretched)
		e := must.Get(plan.Evaluate(priced, schedule.Choice{Plans: []*schedule.Plan{made}}))(t)
		step := must.Get(e.Step(t.Context(), true, 60))(t)
		if got := step.Time.Nanoseconds(); got != slices.Max(longest) {
			t.Errorf("seed %d: %d layers with lags %v take %d ns per step, want %d", seed, layers, made.Lags, got, slices.Max(longest))
		}
		s := must.Get(simulate.Run(t.Context(), e.Decision, 0, 9, simulate.Options{}))(t)
		must.Do(t, audit.Check(s, e.Decision.Problem(0, 9, false)))
		must.Do(t, audit.Follows(s, e.Decision.Problem(0, 9, false), made))
	}
}

// TestInPlace: where a step reads what the step before wrote in place, the tasks take turns.
func TestInPlace(t *testing.T) {
	g := must.Get(dag.ParseText(strings.NewReader("graph g\nbuffer w uint8 [8] parameter\nbuffer a uint8 [8] activation\n"+
		"task f\n read w\n write a\n costs *=10\n labels phase=forward\ntask b\n read a\n readwrite w\n costs *=20\n labels phase=backward\n"), "g"))(t)
	priced := priced(t, g, gpus(t, 2, "1000 GB/s"))
	m := must.Get(New(priced.Problem(0, 1)))(t)
	made := m.Plan([]platform.WorkerID{0, 1}, 100)
	if made.Lags != nil || len(made.Order[0]) != 1 || len(made.Order[1]) != 1 {
		t.Errorf("lags %v, order %v", made.Lags, made.Order)
	}
}

// TestSearch compares with all places of five layers on two GPUs, whose links take as long for an output as some layers do.
func TestSearch(t *testing.T) {
	for seed := range uint64(3) {
		r := rand.New(rand.NewPCG(seed, 4))
		const layers = 5
		g := chain(t, some(r, layers), some(r, layers))
		priced := priced(t, g, gpus(t, 2, "200 MB/s"))
		m := must.Get(New(priced.Problem(0, 1)))(t)
		least, first := int64(0), make([]platform.WorkerID, len(g.Tasks))
		for set := range 1 << layers {
			workers := slices.Clone(first)
			for i := range layers {
				workers[i] = platform.WorkerID(set >> i & 1)
				workers[len(workers)-1-i] = workers[i]
			}
			if period := m.Period(workers); set == 0 || period < least {
				least = period
			}
		}
		seeds := []*schedule.Plan{m.inTurn(first)}
		found := must.Get(Search(t.Context(), priced, seeds, Options{Nodes: 800, Steps: 12, Evaluator: &plan.Evaluator{}}))(t)
		if got := found.Step.Time.Nanoseconds(); got != least {
			t.Errorf("seed %d: %d ns per step, and the best of all places has %d", seed, got, least)
		}
		if bound := found.Bound; bound > found.Step.Time || bound < time.Duration(least/3) {
			t.Errorf("seed %d: a bound of %v for %v", seed, bound, found.Step.Time)
		}
		again := must.Get(Search(t.Context(), priced, seeds, Options{Nodes: 800, Steps: 12, Evaluator: &plan.Evaluator{}}))(t)
		if !slices.Equal(again.Plan().Lags, found.Plan().Lags) || again.Step != found.Step {
			t.Errorf("seed %d: a second search finds another plan", seed)
		}
	}
}
