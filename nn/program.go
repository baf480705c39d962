package nn

import (
	"cmp"
	"fmt"
	"slices"

	"dahl/dag"
)

// The names of a program's graphs.
const (
	GraphTrain     = "train"      // a training step
	GraphTrainTail = "train.tail" // the last, shorter batch of an epoch
	GraphEval      = "eval"       // a batch of the test set, without gradients
	GraphEvalTail  = "eval.tail"  // the last, shorter batch of the test set
	GraphPrepare   = "prepare"    // what parameters alone decide, once before the steps of an inference
)

// ProgramOptions say how a model is trained.
type ProgramOptions struct {
	Batch        int // Zero means the model's default.
	TrainSamples int // Zero means no training.
	TestSamples  int // Zero means no evaluation.
	Epochs       int // Zero means one.
	Type         dag.DType
	Lowering     dag.Lowering
	Optimizer    Optimizer // Nil means the model's default.
	SampleType   dag.DType // of the data, see LowerOptions
	Divisor      float64   // of pixels. Zero means 255.
	// After is called for each graph after each pass of its lowering. Nil means that nobody asks.
	After func(pass string, l *Lowered)

	Stream bool                       // the samples are handed to every step, see LowerOptions
	HostOf func(device string) string // likewise

	Outputs bool // of evaluations are handed over, see LowerOptions

	// FirstStep leaves out everything behind the first step.
	FirstStep bool
}

// NewProgram lowers the graphs of a training run and orders them: in each epoch the training
// steps, the short last batch, and the evaluation. An epoch uses every sample once. Batches
// larger than the data set are cut to it. A program without training is an inference: what parameters alone decide runs
// first, in a graph of its own. The short last batch is one step, and so keeps that in its graph. The micro-batches of the short last batch have as many samples as in the other
// steps.
func NewProgram(m *Model, opt ProgramOptions) (*dag.Program, error) {
	if opt.Batch == 0 {
		opt.Batch = m.Defaults.Batch
	}
	if opt.Epochs == 0 {
		opt.Epochs = 1
	}
	if opt.Batch < 1 || opt.Epochs < 1 || opt.TrainSamples < 0 || opt.TestSamples < 0 || opt.TrainSamples+opt.TestSamples == 0 {
		return nil, fmt.Errorf("model %q: batch %d, %d epochs, %d training and %d test samples; want at least 1, and samples of one kind at least",
			m.Name, opt.Batch, opt.Epochs, opt.TrainSamples, opt.TestSamples)
	}
	p := &dag.Program{Name: m.Name}
	var epoch []dag.Segment
	var prepare *dag.Graph
	for _, part := range []struct {
		name, tail     string
		train          bool
		samples, batch int
	}{
		{GraphTrain, GraphTrainTail, true, opt.TrainSamples, min(opt.Batch, opt.TrainSamples)},
		{GraphEval, GraphEvalTail, false, opt.TestSamples, min(opt.Batch, opt.TestSamples)},
	} {
		if part.samples == 0 {
			continue
		}
		for _, run := range []struct {
			name         string
			batch, steps int
		}{{part.name, part.batch, part.samples / part.batch}, {part.tail, part.samples % part.batch, 1}} {
			if run.batch == 0 {
				continue
			}
			g, once, err := m.lower(LowerOptions{
				Name: run.name, Batch: run.batch, FullBatch: part.batch, Type: opt.Type, Lowering: opt.Lowering, Train: part.train,
				Optimizer: opt.Optimizer, Samples: part.samples, SampleType: opt.SampleType, Divisor: opt.Divisor, Stream: opt.Stream, HostOf: opt.HostOf, Outputs: opt.Outputs, After: opt.After,
				Prepared: run.name == GraphEval && opt.TrainSamples == 0,
			})
			if err != nil {
				return nil, err
			}
			epoch = append(epoch, dag.Segment{Graph: len(p.Graphs), Steps: run.steps})
			p.Graphs = append(p.Graphs, g)
			prepare = cmp.Or(once, prepare)
			if opt.FirstStep {
				p.Order = []dag.Segment{{Steps: 1}}
				return p, p.Check()
			}
		}
	}
	if prepare != nil {
		epoch = slices.Insert(epoch, 0, dag.Segment{Graph: len(p.Graphs), Steps: 1})
		p.Graphs = append(p.Graphs, prepare)
	}
	for range opt.Epochs {
		p.Order = append(p.Order, epoch...)
	}
	return p, p.Check()
}

// IsTraining tells a training step from an evaluation.
func IsTraining(g *dag.Graph) bool { return g.Name == GraphTrain || g.Name == GraphTrainTail }

// BatchOf is the number of samples of one step, 0 for a graph that no model made, whatever its buffers are called.
func BatchOf(g *dag.Graph) int {
	b, ok := g.BufferByName("step.index")
	if !ok || len(g.Buffers[b].Shape) != 1 {
		return 0
	}
	return g.Buffers[b].Shape[0]
}
