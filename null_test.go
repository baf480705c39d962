package dahl_test

import (
	"context"
	"fmt"
	"testing"

	"dahl/dag"
	"dahl/execute"
	"dahl/nn"
	"dahl/platform"
	"dahl/schedule"
	"dahl/simulate"
)

// TestNullRunAgreesWithTheSimulator: the executor's own loop around the Engine, with
// the model's clock in place of kernels, gives the simulator's schedule of every
// training step, span for span. The two share the Engine and schedule.Pace and nothing
// else: queue and order of simultaneous ends are written twice.
func TestNullRunAgreesWithTheSimulator(t *testing.T) {
	const batch, steps = 23, 5
	for _, platformName := range []string{"laptop", "manycore"} {
		p := shipped(t, platformName)
		for _, model := range nn.Models() {
			if model.Name == "dahl-cnn-big" || model.Name == "dahl-cnn-512" {
				continue // thousands of tasks, and nothing in them that dahl-cnn has not
			}
			g := trainingStep(t, model.Name, batch, p)
			for _, policy := range []string{"eager", "dmda", "heft"} {
				t.Run(fmt.Sprintf("%s/%s/%s", platformName, model.Name, policy), func(t *testing.T) {
					problem := newProblem(t, g, p, steps)
					want := simulated(t, problem, policy)
					scheduler, _ := decide(t, problem, policy)
					got, err := execute.NullRun(problem, scheduler)
					if err != nil {
						t.Fatal(err)
					}
					compareSchedules(t, problem, got, want)
				})
			}
		}
	}
}

// TestNullRunReplaysAPlan does the same for a plan with the layout made for it,
// whose reuse of bytes adds orders of its own.
func TestNullRunReplaysAPlan(t *testing.T) {
	p := machine(t, 3)
	p.Devices[0].Dispatch, p.Devices[0].Handoff = 200, 100
	p.Devices[0].WakeAfter, p.Devices[0].Wake = 50_000, 20_000
	for _, model := range []string{"digits-cnn", "lenet5"} {
		n := newNetwork(t, model, dag.Float64, false, 1)
		plans := make([]*schedule.Plan, len(n.prog.Graphs))
		for i, g := range n.prog.Graphs {
			_, plans[i] = decide(t, newProblem(t, g, p, 1), "heft")
		}
		layouts, err := schedule.LayoutProgram(n.prog, plans, nil)
		if err != nil {
			t.Fatal(err)
		}
		for i, g := range n.prog.Graphs {
			problem := newProblem(t, g, p, 7)
			problem.Reuse, problem.ReuseNext = layouts[i].Reuse, layouts[i].ReuseNext
			dependOnCaches(problem.Costs)
			if len(problem.Reuse)+len(problem.ReuseNext) == 0 {
				t.Errorf("graph %q: no order from reuse; the case should have some", g.Name)
			}
			want, err := simulate.Run(context.Background(), problem, simulate.Options{Plan: plans[i]})
			if err != nil {
				t.Fatal(err)
			}
			got, err := execute.NullRun(problem, schedule.Replay(problem, plans[i]))
			if err != nil {
				t.Fatal(err)
			}
			compareSchedules(t, problem, got, want)
		}
	}
}

// dependOnCaches makes every duration depend on where the operands are and on what else
// runs, as that of a call measured by itself does.
func dependOnCaches(c *schedule.Costs) {
	for _, row := range c.ByClass {
		for d := range row {
			near := row[d].Duration
			row[d].Busy = platform.CacheTimes{Warm: near * 3 / 4, Near: near, Far: 2 * near}
			row[d].Alone = platform.CacheTimes{Warm: near / 2, Near: near * 2 / 3, Far: near}
		}
	}
}

// compareSchedules reports the first span in which two schedules of one problem
// differ, and differences in what follows from the spans.
func compareSchedules(t *testing.T, p *schedule.Problem, got, want *schedule.Schedule) {
	t.Helper()
	if err := got.Check(p); err != nil {
		t.Error(err)
	}
	if len(got.Spans) != len(want.Spans) {
		t.Fatalf("%d spans, want %d", len(got.Spans), len(want.Spans))
	}
	for i, s := range got.Spans {
		if w := want.Spans[i]; s != w {
			t.Fatalf("span %d is %s %+v, want %s %+v", i, p.Graph.Tasks[s.Task].Name, s, p.Graph.Tasks[w.Task].Name, w)
		}
	}
	if got.Makespan != want.Makespan || got.FirstStep != want.FirstStep || got.Period != want.Period {
		t.Errorf("makespan %v, first step %v, period %v; want %v, %v, %v",
			got.Makespan, got.FirstStep, got.Period, want.Makespan, want.FirstStep, want.Period)
	}
}
