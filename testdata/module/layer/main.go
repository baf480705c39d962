// A program of another module trains a network with a layer of its own, and with the kernels of it.
package main

import (
	"context"
	"fmt"
	"log"
	"math"

	"dahl/dag"
	"dahl/execute"
	"dahl/kernels"
	"dahl/nn"
	"dahl/schedule"
	"dahl/train"
)

// softplus is y = log(1 + exp(x)).
type softplus struct{ nn.Elementwise }

func (softplus) Kind() string       { return "softplus" }
func (softplus) Forward(n *nn.Node) { n.Tiles("softplus", nil, n.Output(), n.Input(0)) }
func (softplus) Backward(n *nn.Node) {
	n.Tiles("softplus.dx", nil, n.InputGrad(0), n.OutputGrad(), n.Input(0))
}

func (softplus) Kernels() []kernels.Kernel {
	kernel := func(op string, run32, run64 func(*kernels.Call), operands ...string) kernels.Kernel {
		k := kernels.Kernel{Op: op, PerPoint: 4, Variants: []kernels.Variant{{Name: "ref", Run32: run32, Run64: run64}}}
		for i, name := range operands {
			mode := dag.Read
			if i == 0 {
				mode = dag.Write
			}
			k.Operands = append(k.Operands, kernels.Operand{Name: name, Dims: "...", Modes: []dag.Mode{mode}})
		}
		return k
	}
	return []kernels.Kernel{
		kernel("softplus", value[float32], value[float64], "y", "x"),
		kernel("softplus.dx", slope[float32], slope[float64], "dx", "dy", "x"),
	}
}

func value[T kernels.Float](c *kernels.Call) {
	kernels.EachRun(&c.Args[0], &c.Args[1], &c.Args[1], func(y, x, _ []T) {
		for i, v := range x {
			y[i] = T(math.Log1p(math.Exp(float64(v))))
		}
	})
}

func slope[T kernels.Float](c *kernels.Call) {
	kernels.EachRun(&c.Args[0], &c.Args[1], &c.Args[2], func(dx, dy, x []T) {
		for i, v := range x {
			dx[i] = dy[i] / T(1+math.Exp(-float64(v)))
		}
	})
}

func main() {
	model := must(nn.New("own", []int{1, 8, 8}, nn.Conv2D{Filters: 8, Kernel: 3, Pad: 1}, softplus{}, nn.Conv2D{Filters: 8, Kernel: 3, Pad: 1},
		nn.Of(nn.Add{}, "softplus1", "conv2"), softplus{}, nn.MaxPool{Size: 2}, nn.Flatten{}, nn.Dense{Outputs: 10}))
	model.Defaults.Optimizer = nn.SGD{LearningRate: 0.05, Momentum: 0.9}
	data, ctx := must(train.OpenData("digits", 0, 0)), context.Background()
	for _, name := range []string{"heft", "eager"} {
		w := must(train.New(model, data, must(execute.Detect()), train.Options{Policy: must(schedule.PolicyByName(name)), Seed: 7, Epochs: 2}))
		predicted, run := must(w.Predict(ctx)), must(w.Train(ctx))
		fmt.Printf("%s: step of %.3g ms predicted; test accuracy %.1f %%; weights %.12s\n",
			name, 1e3*predicted.Main.Makespan.Seconds(), 100*run.Epochs[1].TestAccuracy, run.WeightsHash())
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return v
}
