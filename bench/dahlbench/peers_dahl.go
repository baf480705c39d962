package main

import (
	"context"
	"path/filepath"
	"time"

	"dahl/cmd/cli"
	"dahl/dag"
	"dahl/kernels"
	"dahl/nn"
	"dahl/platform"
	"dahl/train"
)

// peerSamples is the number of images in memory, a multiple of every usual batch.
const peerSamples = 1024

// ourSide is dahl's trainer of one cell.
type ourSide struct {
	ctx context.Context
	w   *train.Workload
	t   *train.Trainer

	data *nn.Dataset // trained on and evaluated
	unit peerUnit
}

// newOurSide makes everything as `dahl execute` does; a GPU is the first one. Its variants
// are our own kernels, or where a platform file says what they take, the fastest.
func newOurSide(ctx context.Context, p *peersOptions, model string, batch int, u peerUnit) (*ourSide, error) {
	o := train.Options{Batch: batch, Seed: 1}
	m, data, err := network(model, peerSamples)
	if err != nil {
		return nil, err
	}
	machine, err := p.machine(u)
	if err != nil {
		return nil, err
	}
	if u.Precision == precisionTF32 {
		o.Precision = kernels.TF32Precision
		if len(machine.Models) == 0 {
			o.Variant = kernels.TF32Precision // where no times choose, our own kernels
		}
	}
	w, err := train.New(m, train.Data{Train: data.Train, Test: data.Train}, machine, o)
	if err != nil {
		return nil, err
	}
	t, err := w.Start()
	if err != nil {
		return nil, err
	}
	return &ourSide{ctx: ctx, w: w, t: t, data: data.Train, unit: u}, nil
}

// machine is the unit on this machine.
func (p *peersOptions) machine(u peerUnit) (*platform.Platform, error) {
	devices := ""
	if u.Device == deviceCUDA {
		devices = "gpu0"
	}
	machine, err := cli.Machine(p.platform, devices, false)
	if err != nil {
		return nil, err
	}
	if devices != "" {
		machine, err = machine.Select(devices)
		return machine, cli.AsInput(err)
	}
	return cli.WithWorkers(machine, u.Threads)
}

func (s *ourSide) close() { s.t.Close() }

// export writes the weights and the images for the twins in other programs.
func (s *ourSide) export(dir string) (torchRequest, error) {
	r, err := twinRequest(s.w.Model)
	if err != nil {
		return r, err
	}
	r.Threads, r.Batch, r.Divisor = s.unit.Threads, s.w.Options.Batch, s.data.Divisor
	r.Device, r.TF32 = s.unit.Device, s.unit.Precision == precisionTF32
	r.Weights, r.Data = filepath.Join(dir, "weights.npz"), filepath.Join(dir, "data.npz")
	if err := nn.WriteNPZ(r.Weights, s.t.Weights()); err != nil {
		return r, err
	}
	labels := make([]float64, s.data.Len())
	for i, l := range s.data.Labels {
		labels[i] = float64(l)
	}
	shape := append([]int{s.data.Len()}, s.data.Shape[:]...)
	return r, nn.WriteNPZ(r.Data, []nn.Array{
		{Name: "images", Type: dag.Uint8, Shape: shape, Data: s.data.Images},
		nn.NewArray("labels", dag.Float64, []int{s.data.Len()}, labels),
	})
}

// contestant runs the training steps or the evaluation.
func (s *ourSide) contestant(mode string) *contestant {
	graph, order := s.graph(mode), train.InTurn
	if mode == modeTrain {
		order = func(size, n int) []int32 { return train.Shuffled(size, n, s.w.Options.Seed) }
	}
	return &contestant{
		label: "dahl", mode: mode,
		losses: func(steps int) ([]float64, error) {
			if err := s.t.SetWeights(); err != nil {
				return nil, err
			}
			// The twins go through the images as they lie.
			if _, err := s.steps(graph, steps, train.InTurn); err != nil {
				return nil, err
			}
			var losses []float64
			for _, r := range s.t.Results() {
				losses = append(losses, r.Loss)
			}
			return losses, nil
		},
		run: func(warmup, steps int) (time.Duration, error) {
			if mode == modeTrain {
				if err := s.t.SetWeights(); err != nil {
					return 0, err
				}
			}
			if warmup > 0 {
				if _, err := s.steps(graph, warmup, order); err != nil {
					return 0, err
				}
			}
			return s.steps(graph, steps, order)
		},
	}
}

// graph finds the graph of whole batches.
func (s *ourSide) graph(mode string) int {
	name := nn.GraphTrain
	if mode != modeTrain {
		name = nn.GraphEval
	}
	for i, g := range s.w.Program.Graphs {
		if g.Name == name {
			return i
		}
	}
	panic("dahl: the program has no graph " + name)
}

// steps runs so many steps over images in some order of a data set, and returns the
// time of all.
func (s *ourSide) steps(graph, steps int, order func(size, n int) []int32) (time.Duration, error) {
	batch := nn.BatchOf(s.w.Program.Graphs[graph])
	images := order(s.data.Len(), batch*steps)
	start := time.Now()
	// Timing every task on a GPU would put two events around each.
	_, err := s.t.RunSteps(s.ctx, graph, steps, images, s.unit.Device != deviceCUDA)
	return time.Since(start), err
}
