package simulate

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"dahl/dag"
	"dahl/must"
	"dahl/schedule"
	"dahl/schedule/audit"
	"dahl/schedule/codec"
	"dahl/schedule/policy"
)

// TestLags: two devices have a forward and a backward task each, of 10 and 30 ms and of 20 and 20 ms, and 6 ms between them. A step by
// itself takes 10+6+20+20+6+30 = 92 ms, which is the period without lags. If the last task lags n steps behind, the first one
// of step k+n+1 waits for it, so that n+1 periods are 92 ms, but no period is less than the work of a device, 40 ms. The first task of
// step k+n writes while the last of step k has yet to read: so there are n+1 versions.
func TestLags(t *testing.T) {
	const ms, steps = time.Millisecond, 61
	for n, period := range []time.Duration{92 * ms, 46 * ms, 40 * ms, 40 * ms} {
		text := fmt.Sprintf(`graph g
buffer a float32 [16] activation copies=%d
buffer b float32 [16] activation copies=%[1]d
buffer g float32 [16] activation copies=%[1]d
task F1
 write a
 costs d1=10000000
task F2
 read a
 write b
 costs d2=20000000
task B2
 read b
 write g
 costs d2=20000000
task B1
 read g
 read a
 costs d1=30000000
`, n+1)
		g := must.Get(dag.ParseText(strings.NewReader(text), "test"))(t)
		p := problem(t, g, twoMemoriesOf(t, 2), steps)
		plan := must.Get(policy.HEFT.Plan(p))(t)
		plan.GraphHash, plan.Lags = "", []int32{0, 0, 0, int32(n)}
		s := must.Get(run(p, how{plan: plan}))(t)
		d := mustDecide(t, p, plan)
		must.Do(t, audit.Check(s, d.Problem(0, steps, false)))
		mustFollow(t, p, plan, d.Placed, s)
		if s.Period != period || d.Priced.LowerBound(0, steps) > s.Makespan {
			t.Errorf("%d behind: a period of %v, want %v", n, s.Period, period)
		}
		plan.Lags[3]++
		if _, err := run(p, how{plan: plan}); err == nil || !strings.Contains(err.Error(), "contradict the dependences") {
			t.Errorf("%d behind with %d versions: %v", n+1, n+1, err)
		}
	}
	for what, lags := range map[string][]int32{"has lags of 1 tasks": {1}, "-1 steps behind": {0, 0, 0, -1}, "contradict": {1, 0, 0, 0}} {
		p := problem(t, stages(t, 4, 1, 1, 1), twoMemoriesOf(t, 4), 3)
		plan := must.Get(policy.HEFT.Plan(p))(t)
		plan.Lags = lags
		if _, err := run(p, how{plan: plan}); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("lags %v: %v, want %q", lags, err, what)
		}
	}
}

// TestRandomLags: where tasks of random graphs lag behind others at random, with and without copy engines, whatever may run stands up to Check, follows
// its plan, and is no shorter than the bound. The same plan from its file gives the same run.
func TestRandomLags(t *testing.T) {
	ran := 0
	for seed := range uint64(400) {
		r := rand.New(rand.NewPCG(seed, 21))
		pl := randomPlatform(t, r)
		if seed%2 == 0 {
			pl = withEngines(t, pl, 1+int(seed/2%2))
		}
		tasks := randomGraph(r, pl).inCopies(seed)
		p := problem(t, tasks.build(t, inOrder(len(tasks.tasks))), pl, 1+int(seed%17))
		plan := must.Get(policy.HEFT.Plan(p))(t)
		plan.Lags = make([]int32, len(p.Graph.Tasks))
		for task := range plan.Lags {
			for _, before := range p.Graph.Preds(dag.TaskID(task)) {
				plan.Lags[task] = max(plan.Lags[task], plan.Lags[before])
			}
			if r.IntN(4) == 0 {
				plan.Lags[task]++
			}
		}
		if plan.Check(p) != nil {
			continue
		}
		d, err := must.Get(priceOf(p))(t).Decide(schedule.Choice{Plans: []*schedule.Plan{plan}})
		if err != nil {
			if !strings.Contains(err.Error(), "contradicts the dependences of its transfers") {
				t.Fatalf("seed %d: %v", seed, err)
			}
			continue
		}
		s, err := Run(t.Context(), d, 0, p.Steps, Options{})
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if err := audit.Check(s, d.Problem(0, p.Steps, false)); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		must.Do(t, audit.Follows(s, p, plan))
		must.Do(t, audit.FollowsTransfers(s, d.Placed, 0))
		if bound := d.Priced.LowerBound(0, p.Steps); s.Makespan < bound {
			t.Fatalf("seed %d: makespan %v is below the bound %v", seed, s.Makespan, bound)
		}
		var file strings.Builder
		must.Do(t, codec.WritePlan(&file, d.PlanOf(0, s), p.Graph, pl))
		read := must.Get(codec.ReadPlan(strings.NewReader(file.String()), "plan", p.Graph, pl))(t)
		if again := must.Get(run(p, how{plan: read}))(t); byName(p, again) != byName(p, s) {
			t.Fatalf("seed %d: from its file the plan gives another run", seed)
		}
		if slices.Max(plan.Lags) > 0 && p.Steps > 1 {
			ran++
		}
	}
	if ran < 40 {
		t.Errorf("%d plans with lags ran", ran)
	}
}
