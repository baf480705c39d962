package nn_test

import (
	"slices"
	"testing"

	"dahl/dag"
	"dahl/must"
	"dahl/nn"
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
		batch, train, test int
		epoch              []step
	}{
		{5, 23, 13, []step{{"train", 4}, {"train.tail", 1}, {"eval", 2}, {"eval.tail", 1}}},
		{5, 20, 10, []step{{"train", 4}, {"eval", 2}}},
		{5, 23, 0, []step{{"train", 4}, {"train.tail", 1}}},
		{29, 23, 3, []step{{"train", 1}, {"eval", 1}}},
		{0, 10, 0, []step{{"train", 1}}}, // the model's default, 10
		{5, 0, 13, []step{{"prepare", 1}, {"eval", 2}, {"eval.tail", 1}}},
	} {
		p := must.Get(nn.NewProgram(m, nn.ProgramOptions{
			Batch: c.batch, TrainSamples: c.train, TestSamples: c.test, Epochs: 3, Type: dag.Float32,
		}))(t)
		first := must.Get(nn.NewProgram(m, nn.ProgramOptions{
			Batch: c.batch, TrainSamples: c.train, TestSamples: c.test, Epochs: 3, Type: dag.Float32, FirstStep: true,
		}))(t)
		if len(first.Graphs) != 1 || first.Graphs[0].Hash() != p.Graphs[0].Hash() || !slices.Equal(first.Order, []dag.Segment{{Graph: 0, Steps: 1}}) {
			t.Errorf("batch %d of %d: the first step is %d graphs in the order %v", c.batch, c.train, len(first.Graphs), first.Order)
		}
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
			kind := "eval"
			if g.Name == "train" || g.Name == "train.tail" {
				kind = "train"
			}
			samples[kind] += s.Steps * nn.BatchOf(g)
		}
		if samples["train"] != 3*c.train || samples["eval"] != 3*c.test {
			t.Errorf("batch %d: %v samples in 3 epochs, want %d and %d", c.batch, samples, 3*c.train, 3*c.test)
		}
	}
	if _, err := nn.NewProgram(m, nn.ProgramOptions{Batch: -1, TrainSamples: 3, Type: dag.Float32}); err == nil {
		t.Error("a batch of -1 is accepted")
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

// TestPrepare: the graph before an inference and its step have the tasks of an evaluation, no task of the former waits for samples, and what it leaves
// out of the step is what the step has to do with parameters: folding of normalisations, and weights in another layout.
func TestPrepare(t *testing.T) {
	m, _ := models.ByName("resnet18")
	opt := nn.ProgramOptions{Batch: 5, TestSamples: 5, Type: dag.Float32}
	p := must.Get(nn.NewProgram(m, opt))(t)
	opt.TrainSamples = 5
	eval := must.Get(nn.NewProgram(m, opt))(t).Graphs[1]
	step, prepare := p.Graphs[0], p.Graphs[1]
	if step.NumTasks()+prepare.NumTasks() != eval.NumTasks() || prepare.Hash() == eval.Hash() {
		t.Errorf("%d and %d tasks of %d", step.NumTasks(), prepare.NumTasks(), eval.NumTasks())
	}
	const convolutions = 20
	ops := map[string]int{}
	for _, g := range p.Graphs {
		for i := range g.Tasks {
			if _, ok := eval.TaskByName(g.Tasks[i].Name); !ok {
				t.Errorf("the evaluation has no task %s", g.Tasks[i].Name)
			}
			if g == prepare {
				ops[g.Tasks[i].Op]++
			}
		}
	}
	if _, samples := prepare.BufferByName("step.index"); samples || len(ops) == 0 || prepare.NumTasks() < convolutions {
		t.Errorf("the graph before the steps has tasks %v", ops)
	}
	for i := range step.Tasks {
		if op := step.Tasks[i].Op; ops[op] > 0 {
			t.Errorf("%s (%s) is in the step", step.Tasks[i].Name, op)
		}
	}
}
