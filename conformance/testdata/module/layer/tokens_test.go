package main

import (
	"context"
	"encoding/binary"
	"math"
	"strings"
	"testing"

	"dahl/dag"
	"dahl/execute/hardware"
	"dahl/nn"
	"dahl/nn/data"
	"dahl/train"
)

// sequences are 6 vectors of 4 tokens from 0 to 2. Token 0 has always the label 0, token 1 the label 0 or 1 in turn, and token 2 three times
// of four the label 1, else 2. Each is there eight times.
func sequences() *data.Dataset {
	d := &data.Dataset{Name: "tokens", Type: dag.Int32, Shape: []int{4}, Positions: []int{4}, Classes: 3, Divisor: 255}
	for i := range 24 {
		token := i * 5 % 3
		d.Samples = binary.LittleEndian.AppendUint32(d.Samples, uint32(token))
		nth := i / 3
		d.Labels = append(d.Labels, [][]int32{{0, 0, 0, 0}, {0, 1, 0, 1}, {1, 1, 2, 1}}[token][nth%4])
	}
	return d
}

// TestTokens trains a table of logits, one row for each token, with a label at each position. The loss is convex, and its least value is the
// entropy of a label whose token is known, the mean of 0, log 2 and H = -(3/4)·log(3/4) - (1/4)·log(1/4). Each of three rows
// has a third of the positions, and the Hessian of its loss is at most 1/2: a rate of 6 is half of what diverges, 2/(1/2·1/3). The loss of
// the rows that tend to infinity falls as 1/(rate/3·steps), below 2e-3 after 400 steps. Then all of token 0, half of token 1 and three quarters of token 2 are right.
func TestTokens(t *testing.T) {
	h := -0.75*math.Log(0.75) - 0.25*math.Log(0.25)
	least := (0 + math.Ln2 + h) / 3
	m := must(nn.New("tagger", []int{4}, embedding{Words: 3, Width: 3}))
	m.Defaults.Optimizer = nn.SGD{LearningRate: 6}
	here := must(hardware.Detect())
	var held string
	for _, o := range []train.Options{{}, {Stream: true}, {Type: dag.Float64}} {
		o.Epochs, o.Batch, o.Seed = 400, 6, 3
		run := must(must(train.New(m, train.Data{Train: sequences()}, here, o)).Train(context.Background()))
		last := run.Epochs[len(run.Epochs)-1]
		if last.Loss < least-1e-6 || last.Loss > least+2e-3 || math.Abs(last.Accuracy-(1+0.5+0.75)/3) > 1e-12 || run.Steps[0].Loss < 0.8 {
			t.Errorf("%+v: the loss went from %v to %v with accuracy %v, and the least is %v", o, run.Steps[0].Loss, last.Loss, last.Accuracy, least)
		}
		if o.Stream && run.WeightsHash() != held {
			t.Error("streamed samples give other weights")
		}
		held = run.WeightsHash()
	}
	small := must(nn.New("tagger", []int{4}, embedding{Words: 2, Width: 3}))
	_, err := must(train.New(small, train.Data{Train: sequences()}, here, train.Options{})).Start()
	if want := "data tokens: a token is 2, and layer embedding1 takes 0 to 1"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want %q", err, want)
	}
}
