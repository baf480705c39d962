// A program of another module predicts, trains and compares, by HEFT and by its own policy.
package main

import (
	"context"
	"fmt"
	"log"
	"math/rand/v2"

	"dahl/dag"
	"dahl/execute/hardware"
	"dahl/nn/models"
	"dahl/plan"
	"dahl/platform"
	"dahl/schedule"
	"dahl/schedule/policy"
	"dahl/train"
)

// random gives every task to a worker that can run it, whichever.
type random struct {
	*rand.Rand
	queue map[platform.WorkerID][]dag.Instance
}

func (r *random) Ready(v *policy.View, i dag.Instance) platform.WorkerID {
	w := v.Workers(i.Task)[r.IntN(len(v.Workers(i.Task)))]
	r.queue[w] = append(r.queue[w], i)
	return w
}

func (r *random) Next(_ *policy.View, w platform.WorkerID) (next dag.Instance, ok bool) {
	if ok = len(r.queue[w]) > 0; ok {
		next, r.queue[w] = r.queue[w][0], r.queue[w][1:]
	}
	return next, ok
}

func main() {
	ctx := context.Background()
	model, data := must(models.ByName("digits-cnn")), must(train.OpenData("digits", 0, 0))
	own := policy.NewOnline(schedule.Doc{Name: "random"}, func(p *schedule.Problem) policy.Scheduler {
		return &random{rand.New(rand.NewPCG(p.Seed, 0)), map[platform.WorkerID][]dag.Instance{}}
	})
	for _, policy := range []schedule.Policy{nil, own} { // nil means HEFT
		w := must(train.New(model, data, must(hardware.Detect()), train.Options{Policy: policy, Seed: 7}))
		predicted, run := must(w.Predict(ctx)), must(w.Train(ctx))
		c := must(plan.Compare(ctx, w.Decision, predicted.Main, run.Measured.Main))
		fmt.Printf("%s: step of %.3g ms predicted, %.3g ms measured; test accuracy %.1f %%; weights %.12s\n",
			run.Measured.Main.Policy, 1e3*c.Step.Predicted, 1e3*c.Step.Measured, 100*run.Epochs[0].TestAccuracy, run.WeightsHash())
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return v
}
