package plan

import (
	"math"
	"testing"

	"dahl/dag"
	"dahl/must"
	"dahl/platform"
	"dahl/platforms/testmachine"
	"dahl/schedule"
	"dahl/schedule/policy"
)

// oneCore draws 2 W, or 5 W while it runs a task, in a machine that draws 1 W.
func oneCore(t *testing.T) *platform.Platform {
	t.Helper()
	p := testmachine.Node(t, testmachine.CPU(1, 2, 5))
	p.HostPower = testmachine.Watts(1)
	return p
}

// TestStep: a step of tasks of 4 and 6 us on one core takes 10 us and 10 us · 6 W = 60 uJ, alone and among others. A run is
// simulated once.
func TestStep(t *testing.T) {
	prog := parsed(t, `"tasks": [{"name": "a", "ns": {"cpu": 4000}}, {"name": "b", "ns": {"cpu": 6000}}]`)
	priced := must.Get(schedule.Price(prog, oneCore(t), schedule.Unbound))(t)
	e := must.Get(Evaluate(priced, schedule.Choice{Policy: policy.HEFT}))(t)
	for _, steady := range []bool{false, true} {
		step, err := e.Step(t.Context(), steady, 3)
		if err != nil || step.Time != 10_000 || math.Abs(step.Joules*1e6-60) > 1e-9 {
			t.Errorf("steady %v: %+v, %v; want 10 us and 60 uJ", steady, step, err)
		}
		if took, err := e.StepTime(t.Context(), steady, 3); err != nil || took != step.Time {
			t.Errorf("steady %v: %v without joules, %v", steady, took, err)
		}
	}
	ran, err := e.Simulate(t.Context(), 0, 2, false)
	if err != nil || ran.Schedule.Makespan != 20_000 {
		t.Errorf("two steps take %v, %v", ran.Schedule.Makespan, err)
	}
	if again, err := e.Simulate(t.Context(), 0, 2, false); err != nil || again.Schedule != ran.Schedule {
		t.Errorf("two steps are simulated twice, %v", err)
	}
}

// TestEvaluator: a policy plans once for a program, and its plan is evaluated by then. Another program has another plan.
func TestEvaluator(t *testing.T) {
	of := func() *schedule.Priced {
		return must.Get(schedule.Price(parsed(t, `"tasks": [{"name": "a", "ns": {"cpu": 4000}}]`), oneCore(t), schedule.Unbound))(t)
	}
	var v Evaluator
	one, two := of(), of()
	for _, policy := range policy.All() {
		first, err := v.Policy(t.Context(), one, policy, true)
		if err != nil {
			t.Fatal(policy.Doc().Name, err)
		}
		if first == nil {
			continue // it replays the plan of a file
		}
		again, err := v.Policy(t.Context(), one, policy, true)
		if err != nil || again != first {
			t.Errorf("%s is evaluated twice, %v", policy.Doc().Name, err)
		}
		if e, err := v.Plan(one, first.Plan()); err != nil || e != first {
			t.Errorf("the plan of %s is evaluated again, %v", policy.Doc().Name, err)
		}
		if other, err := v.Policy(t.Context(), two, policy, true); err != nil || other == first {
			t.Errorf("two programs have one plan of %s, %v", policy.Doc().Name, err)
		}
	}
}

// TestEvaluatorForgets: of evaluations of 120,000 tasks one is kept, the latest.
func TestEvaluatorForgets(t *testing.T) {
	prog := &dag.Program{Graphs: []*dag.Graph{{Tasks: make([]dag.Task, 120_000)}}}
	var v Evaluator
	var keys [3]evaluation
	for i := range keys {
		keys[i] = evaluation{plan: &schedule.Plan{}}
		v.keep(&Evaluated{Decision: &schedule.Decision{Priced: &schedule.Priced{Program: prog}}}, keys[i])
	}
	for i, key := range keys {
		if got := v.get(key) != nil; got != (i == 2) {
			t.Errorf("evaluation %d of 3 is kept: %v", i+1, got)
		}
	}
}
