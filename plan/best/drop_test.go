package best

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"dahl/dag"
	"dahl/must"
	"dahl/plan/exact"
	"dahl/plan/problem"
	"dahl/plan/space"
	"dahl/platform"
	"dahl/schedule"
)

// found is a search that has come to a plan of equal tasks without data of 1 ms on all devices of a machine: so many on each
// worker.
func found(t *testing.T, devices string, counts ...int) *finder {
	t.Helper()
	p := must.Get(platform.Parse([]byte("host_power = \"4 W\"\n[[memory]]\nname = \"ram\"\n"+devices), "machine.toml"))(t)
	order, names := make([][]dag.TaskID, len(counts)), []string(nil)
	for w, n := range counts {
		for range n {
			order[w] = append(order[w], dag.TaskID(len(names)))
			names = append(names, fmt.Sprintf(`{"name": "t%d", "ns": {"cpu": 1000000, "chip": 1000000}}`, len(names)))
		}
	}
	g := must.Get(dag.ReadJSON(strings.NewReader(`{"format": "dahl-graph 1", "tasks": [`+strings.Join(names, ",")+`]}`), "graph.json"))(t)
	priced := must.Get(schedule.Price(&dag.Program{Name: "p", Graphs: []*dag.Graph{g}}, p, schedule.Unbound))(t)
	f := newFinder(space.Of(priced, space.Sets(p, g)), Options{Aim: problem.Aim{Objective: problem.Energy, Deadline: 1e12}, Nodes: 100_000})
	must.Do(t, f.price(t.Context()))
	f.best = f.candidates[slices.IndexFunc(f.candidates, func(c *candidate) bool { return c.Devices == "" })]
	must.Do(t, f.best.adoptPlan(t.Context(), f.Options, &schedule.Plan{Policy: "by hand", GraphHash: g.Hash(), Order: order}, shortRun))
	return f
}

// equal is a device of a unit at 1 W, of 3 W while it works.
func equal(name, kind string) string {
	return fmt.Sprintf("[[device]]\nname = %q\nkind = %q\nmemory = \"ram\"\npower = { idle = \"1 W\", busy = \"3 W\" }\n", name, kind)
}

// TestDropIdle: of three equal devices only the last has tasks: its set is chosen, which is none of the space, since the first
// stands for it there. The step takes 5 ms at 4 + 1 + 1 + 3 W, 45 mJ, as before: devices that are left out idle all the same.
// The bound is that of the search still, and covers the plan as its own choice.
func TestDropIdle(t *testing.T) {
	f := found(t, equal("a", "cpu")+equal("b", "cpu")+equal("c", "cpu"), 0, 0, 5)
	must.Do(t, f.dropIdle(t.Context()))
	must.Do(t, f.boundTogether(t.Context()))
	r := must.Get(f.result())(t)
	if r.Devices != "c" || r.Makespan != 5e6 || !near9(r.Joules, 0.045) {
		t.Errorf("chosen %q, %v, %v J; want c, 5ms, 0.045 J", r.Devices, r.Makespan, r.Joules)
	}
	if c := r.Covered; !c.Own || c.Outside || r.Certificate == nil || r.Bound <= 0 {
		t.Fatalf("covered %+v, bound %v, certificate %v", c, r.Bound, r.Certificate)
	}
	if err := r.Certificate.Check(f.space); err != nil {
		t.Error(err)
	}
}

// TestOutsideHasNoGap: of a plan that no bound covers no gap is known, whatever its value.
func TestOutsideHasNoGap(t *testing.T) {
	r := &Result{Result: exact.Result{Value: 2, Bound: 1}}
	if r.Gap() != 1 {
		t.Errorf("a value of 2 is %v above a bound of 1", r.Gap())
	}
	if r.Covered.Outside = true; !(r.Gap() > 1e300) {
		t.Errorf("a gap of %v to a bound of other plans", r.Gap())
	}
}
