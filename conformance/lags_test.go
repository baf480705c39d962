package conformance

import (
	"context"
	"slices"
	"testing"

	"dahl/dag"
	"dahl/execute"
	"dahl/must"
	"dahl/nn"
	"dahl/schedule"
	"dahl/schedule/audit"
	"dahl/schedule/place"
)

// TestLagsAreExecuted trains by a plan whose steps overlap: samples are loaded a step ahead of the other tasks, and metrics are a step behind these. On one to three
// cores the weights and losses are those of the plan without lags, to the bit, and each worker follows its list of periods. A run that ends at the
// first step does all of that step and nothing of the next one.
func TestLagsAreExecuted(t *testing.T) {
	n := newNetwork(t, "digits-cnn", dag.Float32, 2)
	for cores := 1; cores <= 3; cores++ {
		plain := n.execute(t, how{platform: machine(t, cores), policy: "heft"})
		plans := plain.plans()
		for i, g := range n.prog.Graphs {
			if g.Name == nn.GraphTrain {
				plans[i] = lagging(g, plans[i])
			}
		}
		h := how{platform: machine(t, cores), plans: plans, poison: true}
		tr := n.execute(t, h)
		if tr.hash() != plain.hash() || !slices.Equal(tr.losses, plain.losses) {
			t.Errorf("%d cores: weights %.8s and losses %v, want %.8s and %v", cores, tr.hash(), tr.losses, plain.hash(), plain.losses)
		}
		for _, r := range tr.runs {
			must.Do(t, audit.Follows(r.schedule, r.problem, tr.decision.Graphs[r.graph].Plan))
		}
		first := &training{network: n}
		first.open(t, h, map[string]execute.Hook{"feed": first.feed, "fetch": first.fetch})
		first.samples = make([]int32, n.train.Len())
		ended, end := context.WithCancel(context.Background())
		end()
		if s := must.Get(first.runner.RunUntil(context.Background(), ended, 0, 5, true))(t); s.Steps != 1 || len(s.Spans) != n.prog.Graphs[0].NumTasks() || len(first.losses) != 1 {
			t.Errorf("%d cores: %d steps, %d tasks and %d losses of one step", cores, s.Steps, len(s.Spans), len(first.losses))
		}
		first.runner.Close()
	}
}

// lagging is a plan whose tasks run behind those that load samples, with three versions of what a step writes.
func lagging(g *dag.Graph, plain *schedule.Plan) *schedule.Plan {
	plan := *plain
	plan.Lags = make([]int32, g.NumTasks())
	for i := range g.Tasks {
		switch g.Tasks[i].Labels.Phase {
		case "load":
		case "metrics":
			plan.Lags[i] = 2
		default:
			plan.Lags[i] = 1
		}
	}
	for b := range g.Buffers {
		if of := &g.Buffers[b]; g.WrittenStorages()[b] && !g.Carried(dag.BufferID(b)) && of.Home == "" {
			plan.Versions = append(plan.Versions, place.PlannedVersions{Memory: "ram", Buffer: of.Name, Versions: 3})
		}
	}
	return &plan
}
