package train

import (
	"context"
	"encoding/binary"
	"math"
	"slices"

	"dahl/dag"
	"dahl/nn"
	"dahl/nn/data"
	"dahl/nn/random"
)

// Sampling says how the next token is drawn from the outputs of a network.
type Sampling struct {
	Temperature float64 // by which outputs are divided before the softmax. Zero takes the greatest one.
	TopK        int     // tokens with greater outputs than all others, which alone are drawn. Zero means all.
	Seed        uint64
	Tokens      int // The first ones alone are drawn. Zero means all.
}

// PromptData is one sample of some tokens, for [Trainer.Generate].
func PromptData(positions, classes int) Data {
	d := &data.Dataset{
		Name: "prompt", Type: dag.Int32, Shape: []int{positions}, Positions: []int{positions}, Classes: classes,
		Samples: make([]byte, 4*positions), Labels: make([]int32, positions), Divisor: 1,
	}
	return Data{Train: d, Test: d}
}

// Generate hands say the tokens that follow a prompt, one after the other. Each is drawn from the output for the token before it. The
// network sees that one and others before it, as many as it has positions, and an output may not depend on tokens behind its own.
// The workload of the trainer has the options Evaluate and Outputs, a batch of one sample and [PromptData]. A token is a function of the
// seed, its number and the tokens before.
func (t *Trainer) Generate(ctx context.Context, prompt []int32, n int, s Sampling, say func(token int32) error) error {
	d, draws := t.Workload.Data.Test, random.NewStream(s.Seed, "generate")
	length, tokens := d.Shape[0], slices.Clone(prompt)
	if len(prompt) == 0 {
		return inputErrorf("a prompt of no tokens; give at least one, since each token follows others")
	}
	if err := t.prepare(ctx); err != nil {
		return err
	}
	for i := range n {
		if len(tokens) > length {
			tokens = tokens[:copy(tokens, tokens[len(tokens)-length:])]
		}
		setPrompt(d, tokens)
		if _, err := t.RunSteps(ctx, 0, 1, []int32{0}, false); err != nil {
			return err
		}
		z := t.Outputs()
		row := make([]float64, z.Shape[len(z.Shape)-1])
		z.Fill(row, (len(tokens)-1)*len(row))
		if s.Tokens > 0 {
			row = row[:min(len(row), s.Tokens)]
		}
		token := s.draw(row, draws.Float64(uint64(i)))
		tokens = append(tokens, token)
		if err := say(token); err != nil {
			return err
		}
	}
	return nil
}

// prepare runs the graphs that come before the first step of an inference.
func (t *Trainer) prepare(ctx context.Context) error {
	for _, s := range t.Workload.Program.Order {
		if nn.BatchOf(t.Workload.Program.Graphs[s.Graph]) > 0 {
			break
		}
		if _, err := t.RunSteps(ctx, s.Graph, s.Steps, nil, false); err != nil {
			return err
		}
	}
	return nil
}

// setPrompt writes tokens to the start of the sample of [PromptData].
func setPrompt(d *data.Dataset, tokens []int32) {
	clear(d.Samples)
	for k, token := range tokens {
		binary.LittleEndian.PutUint32(d.Samples[4*k:], uint32(token))
	}
}

// draw chooses a token by its output, with a number from 0 to 1.
func (s *Sampling) draw(z []float64, at float64) int32 {
	most := slices.Max(z)
	if s.Temperature == 0 {
		return int32(slices.Index(z, most))
	}
	least := math.Inf(-1)
	if s.TopK > 0 && s.TopK < len(z) {
		least = slices.Sorted(slices.Values(z))[len(z)-s.TopK]
	}
	sum, sums, last := 0.0, make([]float64, len(z)), 0
	for i, v := range z {
		if v >= least {
			sum += math.Exp((v - most) / s.Temperature)
			last = i
		}
		sums[i] = sum
	}
	for i := range sums {
		if sums[i] > at*sum {
			return int32(i)
		}
	}
	return int32(last) // where at·sum is rounded up to the sum
}
