package nn_test

import (
	"slices"
	"testing"

	"dahl/dag"
	"dahl/must"
	"dahl/nn"
	"dahl/nn/layers"
	"dahl/nn/models"
)

// TestProgramOrder checks graphs and order for a training set and a test set that
// the batch divides or not: 23 = 4·5 + 3 and 13 = 2·5 + 3.
func TestProgramOrder(t *testing.T) {
	m, _ := models.ByName("dahl-cnn")
	type step struct {
		graph string
		steps int
	}
	for _, c := range []struct {
		batch, evalBatch, train, test int
		epoch                         []step
	}{
		{5, 0, 23, 13, []step{{"train", 4}, {"train.tail", 1}, {"eval", 2}, {"eval.tail", 1}}},
		{5, 0, 20, 10, []step{{"train", 4}, {"eval", 2}}},
		{5, 7, 23, 13, []step{{"train", 4}, {"train.tail", 1}, {"eval", 1}, {"eval.tail", 1}}},
		{5, 0, 23, 0, []step{{"train", 4}, {"train.tail", 1}}},
		{29, 0, 23, 3, []step{{"train", 1}, {"eval", 1}}},
		{0, 0, 10, 0, []step{{"train", 1}}}, // the model's default, 10
	} {
		p := must.Get(nn.NewProgram(m, nn.ProgramOptions{
			Batch: c.batch, EvalBatch: c.evalBatch, TrainSamples: c.train, TestSamples: c.test, Epochs: 3, Type: dag.Float32,
		}))(t)
		var got []step
		for _, s := range p.Order {
			got = append(got, step{p.Graphs[s.Graph].Name, s.Steps})
		}
		if want := slices.Repeat(c.epoch, 3); !slices.Equal(got, want) {
			t.Errorf("batch %d of %d, test %d: order %v, want %v", c.batch, c.train, c.test, got, want)
		}
		samples := map[string]int{}
		for _, s := range p.Order {
			g := p.Graphs[s.Graph]
			id, _ := g.BufferByName("step.index")
			kind := "eval"
			if g.Name == "train" || g.Name == "train.tail" {
				kind = "train"
			}
			samples[kind] += s.Steps * g.Buffers[id].Shape[0]
		}
		if samples["train"] != 3*c.train || samples["eval"] != 3*c.test {
			t.Errorf("batch %d: %v samples in 3 epochs, want %d and %d", c.batch, samples, 3*c.train, 3*c.test)
		}
	}
	if _, err := nn.NewProgram(m, nn.ProgramOptions{Batch: -1, TrainSamples: 3, Type: dag.Float32}); err == nil {
		t.Error("a batch of -1 is accepted")
	}
}

// TestProgramLearns trains a small network for some epochs through the graphs of its
// program, short batches included, and evaluates: the loss falls, the training set is
// learned, and evaluating changes no weight. The classes are told apart by which half
// of the features is bright, so a dense layer can learn them.
func TestProgramLearns(t *testing.T) {
	const train, test, features, batch, epochs = 23, 13, 6, 5, 40
	m := mustNew(t, "halves", []int{features}, layers.Dense{Outputs: 7}, layers.ReLU{}, layers.Dense{Outputs: 2})
	p := must.Get(nn.NewProgram(m, nn.ProgramOptions{
		Batch: batch, TrainSamples: train, TestSamples: test, Epochs: epochs, Type: dag.Float64,
		Optimizer: nn.SGD{LearningRate: 0.5, Momentum: 0.5}, Lowering: dag.Lowering{Default: dag.LayerLowering{Forward: dag.Cut{Samples: 2}}},
	}))(t)
	shared := map[string][]uint64{}
	var runs []*interpreter
	for _, g := range p.Graphs {
		own := map[string][]uint64{}
		for name, s := range shared {
			if id, ok := g.BufferByName(name); ok && g.Buffers[id].Role != dag.Activation && g.Buffers[id].Role != dag.Gradient && name[:4] != "step" {
				own[name] = s
			}
		}
		in := newInterpreter(t, g, own)
		for name, s := range own {
			shared[name] = s
		}
		runs = append(runs, in)
	}
	runs[0].fill(m, "train", 4)
	for _, split := range []struct {
		in *interpreter
		s  string
		n  int
	}{{runs[0], "train", train}, {runs[2], "test", test}} {
		samples, labels := split.in.bytes("data."+split.s+".images"), split.in.ints("data."+split.s+".labels")
		for i := range split.n {
			labels[i] = int32(i % 2)
			for j := range features {
				samples[i*features+j] = byte(40*j%70 + 150*((j/(features/2)+i)%2))
			}
		}
	}
	var losses []float64
	correct, at, step := 0, 0, 0
	for _, s := range p.Order {
		in := runs[s.Graph]
		size := len(in.ints("step.index"))
		isTrain := s.Graph < 2
		before := runs[0].floats("fc1.weight")
		for k := range s.Steps {
			if s.Graph%2 == 0 && k == 0 {
				at = 0
			}
			if isTrain {
				step++
			}
			in.step(indices(at, size), 0.5, step)
			at += size
			if s.Graph == 1 {
				losses = append(losses, in.floats("loss")[0])
			}
			if !isTrain && len(losses) == epochs {
				correct += int(in.ints("correct")[0])
			}
		}
		if !isTrain && !slices.Equal(before, runs[0].floats("fc1.weight")) {
			t.Fatal("an evaluation changed a weight")
		}
	}
	if correct != test {
		t.Errorf("%d of %d test samples are right after %d epochs", correct, test, epochs)
	}
	if !(losses[epochs-1] < losses[0]/4) {
		t.Errorf("loss went from %g to %g", losses[0], losses[epochs-1])
	}
}

// TestBatchOf: a graph file may have a buffer called as the index of a step. One that is no list of indices is no batch.
func TestBatchOf(t *testing.T) {
	for _, c := range []struct {
		shape []int
		want  int
	}{{nil, 0}, {[]int{}, 0}, {[]int{3, 4}, 0}, {[]int{7}, 7}} {
		b := dag.NewBuilder("g")
		index := b.Buffer(dag.Buffer{Name: "step.index", Shape: c.shape, Type: dag.Int32})
		b.Task(dag.Task{Name: "a", Accesses: []dag.Access{{Region: dag.Region{Buffer: index}, Mode: dag.Write}}})
		g := must.Get(b.Build())(t)
		if got := nn.BatchOf(g); got != c.want {
			t.Errorf("shape %v: a batch of %d, want %d", c.shape, got, c.want)
		}
	}
}
