package peer

import (
	"context"
	"fmt"
	"math"
	"slices"

	"dahl/dag"
	"dahl/kernels"
	"dahl/nn"
	"dahl/train"
)

// LossSteps is how many losses are compared with dahl's.
const LossSteps = 6

// LossBound is how far the losses of the first steps may differ, as a fraction: by rounding alone, which
// training magnifies from step to step. TF32 has 13 bits less than float32, and float64 has 29 more.
func LossBound(o *train.Options) float64 {
	switch {
	case o.Precision == kernels.TF32Precision:
		return 3e-2
	case o.Type == dag.Float64:
		return 1e-10
	default:
		return 1e-3
	}
}

// LossError is the largest difference between dahl's losses and those of another program, as a
// fraction; an error where it is more than rounding explains.
func LossError(label string, want, got []float64, bound float64) (worst float64, err error) {
	if len(got) != len(want) {
		return 0, fmt.Errorf("%s gave %d losses of %d steps", label, len(got), len(want))
	}
	for i := range want {
		off := math.Abs(got[i]-want[i]) / math.Max(math.Abs(want[i]), 1e-3)
		if !(off <= bound) {
			return 0, fmt.Errorf("step %d: the loss is %.8g, and %.8g by %s: not the same network", i+1, want[i], got[i], label)
		}
		worst = max(worst, off)
	}
	return worst, nil
}

// ours is what dahl has of a training before another program has it: the first weights, and the losses
// of the first steps of whole batches in the order of the first epoch.
type ours struct {
	weights []nn.Array
	losses  []float64
}

func oursOf(ctx context.Context, w *train.Workload) (o ours, err error) {
	t, err := w.Start()
	if err != nil {
		return o, err
	}
	defer t.Close()
	for _, a := range t.Weights() {
		a.Data = slices.Clone(a.Data) // steps change them
		o.weights = append(o.weights, a)
	}
	order := orderOf(w, w.Data.Train.Len(), 0)
	steps := min(LossSteps, len(order)/w.Options.Batch)
	graph := slices.IndexFunc(w.Program.Graphs, func(g *dag.Graph) bool { return g.Name == nn.GraphTrain })
	if _, err := t.RunSteps(ctx, graph, steps, order[:steps*w.Options.Batch], true); err != nil {
		return o, fmt.Errorf("the first steps by dahl: %w", err)
	}
	for _, r := range t.Results() {
		o.losses = append(o.losses, r.Loss)
	}
	return o, nil
}
