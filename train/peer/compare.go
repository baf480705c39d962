package peer

import (
	"context"
	"fmt"
	"math"
	"slices"

	"dahl/dag"
	"dahl/kernels/calls"
	"dahl/nn"
	"dahl/nn/npz"
	"dahl/train"
)

// LossSteps is how many losses are compared with dahl's.
const LossSteps = 6

// LossBound is how far the losses of the first steps may differ, as a fraction: by rounding alone, which
// training magnifies from step to step. TF32 has 13 bits less than float32, and float64 has 29 more.
func LossBound(o *train.Options) float64 {
	switch {
	case o.Precision == calls.TF32Precision:
		return 3e-2
	case o.Type == dag.Float64:
		return 1e-10
	default:
		return 1e-3
	}
}

// LossError is the largest difference between losses of dahl and of another program, as a
// fraction; an error where one is above its bound.
func LossError(label string, want, got, bounds []float64) (worst float64, err error) {
	if len(got) != len(want) {
		return 0, fmt.Errorf("%s gave %d losses of %d steps", label, len(got), len(want))
	}
	for i := range want {
		off := relativeError(want[i], got[i])
		if !(off <= bounds[i]) {
			return 0, fmt.Errorf("step %d: the loss is %.8g, and %.8g by %s: not the same network", i+1, want[i], got[i], label)
		}
		worst = max(worst, off)
	}
	return worst, nil
}

func relativeError(want, got float64) float64 {
	return math.Abs(got-want) / math.Max(math.Abs(want), 1e-3)
}

// roundings is how many times as far as dahl's losses are from those in float64 another program's may
// be from dahl's. Both round, and some sums of the others are longer: of resnet18 with 64 samples PyTorch's fourth
// loss is 4.3 times as far.
const roundings = 10

// LossBounds is the bound of each loss of a training on the first samples in order. It is [LossBound], or some times
// the distance until then of dahl's losses from the losses of the same steps in float64. This distance is larger in a
// network that magnifies rounding faster, as deep ones with a large learning rate do. To find that out it trains these
// steps.
func LossBounds(ctx context.Context, w *train.Workload, order []int32, losses []float64) (bounds []float64, err error) {
	bounds = slices.Repeat([]float64{LossBound(&w.Options)}, len(losses))
	if w.Options.Type == dag.Float64 {
		return bounds, nil
	}
	o := w.Options
	o.Type, o.Variant, o.Precision = dag.Float64, "", ""
	exact, err := train.New(w.Model, w.Data, w.Platform, o)
	if err != nil {
		return nil, fmt.Errorf("the first steps in float64: %w", err)
	}
	of, err := oursOf(ctx, exact, order)
	if err != nil {
		return nil, fmt.Errorf("in float64: %w", err)
	}
	rounding := 0.0
	for i := range bounds {
		rounding = max(rounding, relativeError(of.losses[i], losses[i]))
		bounds[i] = max(bounds[i], roundings*rounding)
	}
	return bounds, nil
}

// SameLosses is [LossError] within [LossBound], and where a loss is above it, within [LossBounds].
func SameLosses(label string, want, got []float64, bound float64, bounds func() ([]float64, error)) (worst float64, err error) {
	worst, err = LossError(label, want, got, slices.Repeat([]float64{bound}, len(want)))
	if err == nil || len(want) != len(got) {
		return worst, err
	}
	wider, err := bounds()
	if err != nil {
		return 0, err
	}
	return LossError(label, want, got, wider)
}

// ours is a training as dahl prepares it for another program: the first weights, and the losses
// of the first steps of whole batches in an order.
type ours struct {
	weights []npz.Array
	losses  []float64
}

func oursOf(ctx context.Context, w *train.Workload, order []int32) (o ours, err error) {
	t, err := w.Start()
	if err != nil {
		return o, err
	}
	defer t.Close()
	for _, a := range t.Weights() {
		a.Data = slices.Clone(a.Data) // steps change them
		o.weights = append(o.weights, a)
	}
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
