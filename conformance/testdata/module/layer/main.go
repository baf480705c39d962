// A program of another module trains a network with layers of its own, and with the kernels of these.
package main

import (
	"context"
	"fmt"
	"log"
	"math"

	"dahl/dag"
	"dahl/execute/hardware"
	"dahl/kernels"
	"dahl/kernels/calls"
	"dahl/nn"
	"dahl/nn/layers"
	"dahl/plan/best"
	"dahl/plan/problem"
	"dahl/schedule/policy"
	"dahl/train"
)

// softplus is y = log(1 + exp(x)).
type softplus struct{ layers.Elementwise }

func (softplus) Kind() string       { return "softplus" }
func (softplus) Forward(n *nn.Node) { n.Tiles("softplus", nil, n.Output(), n.Input(0)) }
func (softplus) Backward(n *nn.Node) {
	n.Tiles("softplus.dx", nil, n.InputGrad(0), n.OutputGrad(), n.Input(0))
}

func (softplus) Kernels() []kernels.Kernel {
	return []kernels.Kernel{
		{Op: "softplus", PerPoint: 4, Variants: ref(value[float32], value[float64]), Operands: []kernels.Operand{writes("y", "..."), reads("x", "...")}},
		{Op: "softplus.dx", PerPoint: 4, Variants: ref(slope[float32], slope[float64]), Operands: []kernels.Operand{
			writes("dx", "..."), reads("dy", "..."), reads("x", "...")}},
	}
}

func value[T calls.Float](c *calls.Call) {
	calls.EachRun(&c.Args[0], &c.Args[1], &c.Args[1], func(y, x, _ []T) {
		for i, v := range x {
			y[i] = T(math.Log1p(math.Exp(float64(v))))
		}
	})
}

func slope[T calls.Float](c *calls.Call) {
	calls.EachRun(&c.Args[0], &c.Args[1], &c.Args[2], func(dx, dy, x []T) {
		for i, v := range x {
			dx[i] = dy[i] / T(1+math.Exp(-float64(v)))
		}
	})
}

// network has a convolution, whose output is normalised by channels, beside an embedding of the greys of pixels, each
// vector of which is normalised by itself.
func network() *nn.Model {
	m := must(nn.New("own", []int{1, 8, 8},
		layers.Conv2D{Filters: 8, Kernel: 3, Pad: 1}, batchNorm{}, softplus{}, layers.MaxPool{Size: 2}, layers.Flatten{},
		nn.Named{Name: "pixels", Layer: layers.Flatten{}, Inputs: []string{"input"}}, grey{Of: 16}, embedding{Words: 16, Width: 8}, layerNorm{}, layers.Flatten{},
		nn.Of(layers.Concat{}, "flatten1", "flatten3"), layers.Dense{Outputs: 10}))
	m.Defaults.Optimizer = nn.SGD{LearningRate: 0.05, Momentum: 0.9}
	return m
}

// cut cuts every pass of every layer along samples, and sums each gradient of a parameter in two accumulators.
func cut(l *dag.Lowering, batch int) {
	for name, ll := range l.Layers {
		ll.Forward.Samples, ll.InputGradient.Samples = batch/4, batch/4
		ll.WeightGradient.Samples, ll.WeightGradient.Accumulators = batch/4, 2
		l.Layers[name] = ll
	}
}

func main() {
	model, data, ctx := network(), must(train.OpenData("digits", 0, 0)), context.Background()
	machine := must(hardware.Detect())
	for _, name := range []string{"heft", "eager", "cut", "planned"} {
		o := train.Options{Seed: 7, Epochs: 2}
		switch name {
		case "heft", "eager":
			o.Policy = must(policy.ByName(name))
		case "cut":
			l := train.DefaultLowering(model, machine, model.Defaults.Batch, dag.Float32)
			cut(&l, model.Defaults.Batch)
			o.Lowering = &l
		}
		w := must(train.New(model, data, machine, o))
		if name == "planned" {
			w = planned(ctx, w)
		}
		predicted, run := must(w.Predict(ctx)), must(w.Train(ctx))
		fmt.Printf("%s: step of %.3g ms predicted; test accuracy %.1f %%; weights %.12s\n",
			name, 1e3*predicted.Main.Makespan.Seconds(), 100*run.Epochs[1].TestAccuracy, run.WeightsHash())
	}
}

// planned is the workload by the best plan that a short search finds for the machine.
func planned(ctx context.Context, w *train.Workload) *train.Workload {
	s := must(w.Space(w.Platform, ""))
	found := must(best.Find(ctx, &s.Space, best.Options{Aim: problem.Aim{Steady: true}, Nodes: 1000, Brief: true}))
	chosen := must(s.At(found.Choice))
	chosen.Options.Plan = found.Plan
	for _, step := range []func() error{chosen.Lower, chosen.Choose} {
		if err := step(); err != nil {
			log.Fatal(err)
		}
	}
	return chosen
}

func must[T any](v T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return v
}
