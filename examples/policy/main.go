// Policy simulates a training step under a scheduler of its own: every task goes to the
// worker that has got the fewest so far.
package main

import (
	"context"
	"fmt"
	"log"

	"dahl/dag"
	"dahl/nn"
	"dahl/platform"
	"dahl/platforms"
	"dahl/schedule"
	"dahl/train"
)

// fewest keeps a queue for each worker, and how many tasks it has got.
type fewest struct {
	queues [][]dag.Instance
	got    []int
}

func (f *fewest) Ready(v *schedule.View, i dag.Instance) platform.WorkerID {
	best := v.Workers(i.Task)[0]
	for _, w := range v.Workers(i.Task) {
		if f.got[w] < f.got[best] {
			best = w
		}
	}
	f.got[best]++
	f.queues[best] = append(f.queues[best], i)
	return best
}

func (f *fewest) Next(_ *schedule.View, w platform.WorkerID) (next dag.Instance, ok bool) {
	if ok = len(f.queues[w]) > 0; ok {
		next, f.queues[w] = f.queues[w][0], f.queues[w][1:]
	}
	return next, ok
}

func main() {
	model := must(nn.ModelByName("digits-cnn"))
	data := must(train.OpenData("digits", 0, 0))
	machine := must(platforms.Load("laptop"))
	own := schedule.PolicyInfo{Name: "fewest", Dynamic: func(p *schedule.Problem) schedule.Policy {
		n := len(p.Platform.Workers)
		return &fewest{make([][]dag.Instance, n), make([]int, n)}
	}}
	for _, policy := range append(schedule.Policies(), own) {
		if policy.Static == nil && policy.Dynamic == nil {
			continue // replay, which needs a plan
		}
		w := must(train.New(model, data, machine, train.Options{Policy: policy, Elsewhere: true}))
		predicted := must(w.Predict(context.Background()))
		fmt.Printf("%-13s a step takes %v\n", policy.Name, predicted.Counted.PerStep())
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return v
}
