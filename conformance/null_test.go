package conformance

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"dahl/dag"
	"dahl/nn/models"
	"dahl/platform"
	"dahl/schedule"
	"dahl/schedule/audit"
	"dahl/schedule/policy"
)

// TestNullRunAgreesWithTheSimulator: a loop of its own around the Engine gives the
// simulator's schedule of every training step, span for span. With a policy the two share
// the Engine and schedule.Pace and nothing else: queue and order of simultaneous ends are
// written twice. With a plan the simulator follows schedule.Lists, and what they share is
// schedule.Pace and the count of predecessors.
func TestNullRunAgreesWithTheSimulator(t *testing.T) {
	const batch, steps = 23, 5
	for _, platformName := range []string{"laptop", "manycore"} {
		p := shipped(t, platformName)
		for _, model := range models.All() {
			if model.Name == "dahl-cnn-big" || model.Name == "dahl-cnn-512" {
				continue // thousands of tasks, and nothing in them that dahl-cnn has not
			}
			if strings.HasPrefix(model.Name, "vgg") || strings.HasPrefix(model.Name, "resnet") || strings.HasPrefix(model.Name, "gpt") || strings.HasPrefix(model.Name, "llama") || strings.HasPrefix(model.Name, "bert") || strings.HasPrefix(model.Name, "vit") {
				continue // many thousands
			}
			g := trainingStep(t, model.Name, batch, p)
			for _, policy := range []string{"eager", "dmda", "heft"} {
				t.Run(fmt.Sprintf("%s/%s/%s", platformName, model.Name, policy), func(t *testing.T) {
					d := decided(t, program(g), how{platform: p, policy: policy})
					compareWorlds(t, d, 0, steps)
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
		n := newNetwork(t, model, dag.Float64, 1)
		d := decided(t, n.prog, how{platform: p, policy: "heft"})
		for i, g := range n.prog.Graphs {
			problem := &d.Graphs[i].Problem
			problem.Costs = dependingOnCaches(problem.Costs)
			if len(problem.Reuse)+len(problem.ReuseNext) == 0 {
				t.Errorf("graph %q: no order from reuse; the case should have some", g.Name)
			}
			compareWorlds(t, d, i, 7)
		}
	}
}

// dependingOnCaches makes every duration depend on where the operands are and on what else
// runs, as that of a call measured by itself does.
func dependingOnCaches(c *schedule.Costs) *schedule.Costs {
	other := *c
	other.ByClass = nil
	for _, row := range c.ByClass {
		row = slices.Clone(row)
		for d := range row {
			near := row[d].Duration
			row[d].Busy = platform.CacheTimes{Warm: near * 3 / 4, Near: near, Far: 2 * near}
			row[d].Alone = platform.CacheTimes{Warm: near / 2, Near: near * 2 / 3, Far: near}
		}
		other.ByClass = append(other.ByClass, row)
	}
	return &other
}

// compareWorlds compares what nullRun makes of a decision with what the simulator does.
func compareWorlds(t *testing.T, d *schedule.Decision, graph, steps int) {
	t.Helper()
	problem := d.Problem(graph, steps, false)
	var scheduler policy.Scheduler
	if plan := d.Graphs[graph].Plan; plan != nil {
		scheduler = replay(plan)
	} else {
		scheduler = d.Policy.(policy.Online).Start(problem)
	}
	got, err := nullRun(problem, scheduler)
	if err != nil {
		t.Fatal(err)
	}
	compareSchedules(t, problem, got, simulated(t, d, graph, steps))
}

// compareSchedules reports the first span in which two schedules of one problem
// differ, and differences in what follows from the spans.
func compareSchedules(t *testing.T, p *schedule.Problem, got, want *schedule.Schedule) {
	t.Helper()
	if err := audit.Check(got, p); err != nil {
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
