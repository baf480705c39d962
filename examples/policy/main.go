// Policy simulates a training step under a policy of its own: every task goes to the worker with
// the least work, among the workers that can run it.
package main

import (
	"context"
	"fmt"
	"log"
	"time"

	"dahl/dag"
	"dahl/nn/models"
	"dahl/platforms"
	"dahl/schedule"
	"dahl/schedule/policy"
	"dahl/train"
)

// leastWork is the policy.
type leastWork struct{}

func (leastWork) Doc() schedule.Doc { return schedule.Doc{Name: "least-work"} }

// Plan goes through the tasks in the order of the program, in which each task comes after its predecessors.
func (leastWork) Plan(p *schedule.Problem) (*schedule.Plan, error) {
	fit, err := schedule.NewFit(p)
	if err != nil {
		return nil, err
	}
	work := make([]time.Duration, len(p.Platform.Workers))
	plan := &schedule.Plan{Order: make([][]dag.TaskID, len(work))}
	for t := range dag.TaskID(p.Graph.NumTasks()) {
		best := fit.Workers(t)[0]
		for _, w := range fit.Workers(t) {
			if work[w]+fit.Occupies(t, w) < work[best]+fit.Occupies(t, best) {
				best = w
			}
		}
		fit.Give(t, best)
		work[best] += fit.Occupies(t, best)
		plan.Order[best] = append(plan.Order[best], t)
	}
	return plan, nil
}

func main() {
	model := must(models.ByName("digits-cnn"))
	data := must(train.OpenData("digits", 0, 0))
	machine := must(platforms.Load("laptop"))
	for _, policy := range append(policy.All(), schedule.Policy(leastWork{})) {
		w := must(train.New(model, data, machine, train.Options{Policy: policy, OtherMachine: true}))
		predicted := must(w.Predict(context.Background()))
		fmt.Printf("%-13s a step takes %v\n", policy.Doc().Name, predicted.Counted.PerStep())
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return v
}
