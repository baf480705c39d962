package execute

import (
	"context"
	"math/rand/v2"
	"strings"
	"testing"

	"dahl/dag"
	"dahl/kernels"
	"dahl/must"
	"dahl/platforms/testmachine"
	"dahl/schedule"
	"dahl/schedule/audit"
)

var node = testmachine.Executable

// spreadPlan puts every task on a worker that choose gives for it, what the caller does
// on worker 0, in program order.
func spreadPlan(g *dag.Graph, workers int, choose func(task *dag.Task) int) *schedule.Plan {
	plan := &schedule.Plan{Policy: "test", Order: make([][]dag.TaskID, workers)}
	for t := range g.Tasks {
		w := 0
		if k, err := kernels.KernelByName(g.Tasks[t].Op); err != nil || !k.Host {
			w = choose(&g.Tasks[t])
		}
		plan.Order[w] = append(plan.Order[w], dag.TaskID(t))
	}
	return plan
}

func spreadPlans(prog *dag.Program, workers int, choose func(task *dag.Task) int) []*schedule.Plan {
	var plans []*schedule.Plan
	for _, g := range prog.Graphs {
		plans = append(plans, spreadPlan(g, workers, choose))
	}
	return plans
}

// splits are ways to divide the test network among the workers of a node.
var splits = []struct {
	name string
	of   func(task *dag.Task, workers int) int
}{
	{"all on the last", func(_ *dag.Task, workers int) int { return workers - 1 }},
	{"by samples", func(task *dag.Task, workers int) int { // by the tile in the name
		_, at, ok := strings.Cut(task.Name, "[")
		if !ok {
			return 0
		}
		return int(at[0]-'0') / testTile % workers
	}},
	{"by stages", func(task *dag.Task, workers int) int {
		if strings.Contains(task.Name, "fc1") || strings.Contains(task.Name, "relu1") || strings.HasSuffix(task.Name, "w1") || strings.HasSuffix(task.Name, "b1") {
			return workers - 1
		}
		return min(1, workers-2)
	}},
	{"at random", func(task *dag.Task, workers int) int {
		rng := rand.New(rand.NewPCG(uint64(len(task.Name)), uint64(task.Name[0])))
		return rng.IntN(workers)
	}},
}

// trained runs steps of training, in two runs with an evaluation between them, checks
// the schedules, and returns a digest of the weights.
func trained(t *testing.T, prog *dag.Program, opt how, steps int) string {
	t.Helper()
	opt.Hooks = testHooks(nil)
	r := newRunner(t, prog, opt)
	for _, run := range [][2]int{{0, steps}, {1, 2}, {0, 2}} {
		s := must.Get(r.Run(context.Background(), run[0], run[1], true))(t)
		if err := audit.Check(s, r.Problem(run[0], run[1])); err != nil {
			t.Error(err)
		}
	}
	return weights(r)
}
