package main

import (
	"context"
	"slices"
	"time"

	"dahl/dag"
	"dahl/kernels/calls"
	"dahl/nn"
	"dahl/platform"
	"dahl/train"
	"dahl/train/peer"
)

// peerSamples is the number of samples in memory, a multiple of every usual batch.
const peerSamples = 1024

// ourSide is dahl's trainer of one cell. It trains and evaluates on the same samples.
type ourSide struct {
	*train.Trainer
	ctx  context.Context
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
	devices, workers := "", u.Threads
	if u.Device == platform.CUDA {
		devices, workers = "gpu0", 0
	}
	on, err := machine(p.platform, devices, workers)
	if err != nil {
		return nil, err
	}
	if u.Precision == calls.TF32Precision {
		o.Precision = calls.TF32Precision
		if len(on.Models) == 0 {
			o.Variant = calls.TF32Precision // where no times choose, our own kernels
		}
	}
	w, err := train.New(m, train.Data{Train: data.Train, Test: data.Train}, on, o)
	if err != nil {
		return nil, err
	}
	t, err := w.Start()
	return &ourSide{t, ctx, u}, err
}

// sameLosses compares the losses of first steps with another program's. Evaluations do not magnify rounding.
func (s *ourSide) sameLosses(mode string) func(label string, want, got []float64) (float64, error) {
	w := s.Workload
	var known []float64
	return func(label string, want, got []float64) (float64, error) {
		return peer.SameLosses(label, want, got, peer.LossBound(&w.Options), func() (bounds []float64, err error) {
			if mode != peer.ModeTrain {
				return slices.Repeat([]float64{peer.LossBound(&w.Options)}, len(want)), nil
			}
			if known == nil { // the same steps for every setting
				known, err = peer.LossBounds(s.ctx, w, train.InTurn(w.Data.Train.Len(), w.Options.Batch*len(want)), want)
			}
			return known, err
		})
	}
}

// contestant runs the training steps or the evaluation.
func (s *ourSide) contestant(mode string) *contestant {
	graph := s.graph(mode)
	batch := nn.BatchOf(s.Workload.Program.Graphs[graph])
	return &contestant{
		label: "dahl", mode: mode,
		losses: func(steps int) (losses []float64, err error) {
			if err := s.SetWeights(); err != nil {
				return nil, err
			}
			// The twins go through the samples as they lie.
			if _, err := s.steps(graph, steps, train.InTurn(s.Workload.Data.Train.Len(), batch*steps)); err != nil {
				return nil, err
			}
			for _, r := range s.Results() {
				losses = append(losses, r.Loss)
			}
			return losses, nil
		},
		run: func(warmup, steps int) (took time.Duration, err error) {
			if mode == peer.ModeTrain {
				err = s.SetWeights()
			}
			for _, n := range []int{warmup, steps} {
				if err == nil && n > 0 {
					took, err = s.steps(graph, n, s.Samples(graph, n))
				}
			}
			return took, err
		},
	}
}

// graph finds the graph of whole batches.
func (s *ourSide) graph(mode string) int {
	name := nn.GraphTrain
	if mode != peer.ModeTrain {
		name = nn.GraphEval
	}
	return slices.IndexFunc(s.Workload.Program.Graphs, func(g *dag.Graph) bool { return g.Name == name })
}

// steps runs a number of steps over samples of a data set, and returns their total time.
func (s *ourSide) steps(graph, steps int, samples []int32) (time.Duration, error) {
	start := time.Now()
	// Timing every task on a GPU would put two events around each.
	_, err := s.RunSteps(s.ctx, graph, steps, samples, s.unit.Device != platform.CUDA)
	return time.Since(start), err
}
