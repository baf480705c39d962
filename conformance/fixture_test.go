// Package conformance holds the tests of the whole: what is trained, planned, predicted and executed must agree, whatever runs it.
package conformance

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"math"
	"slices"
	"testing"

	"dahl/dag"
	"dahl/execute"
	"dahl/execute/hardware"
	"dahl/kernels/calls"
	"dahl/must"
	"dahl/nn"
	"dahl/nn/data"
	"dahl/nn/layers"
	"dahl/nn/models"
	"dahl/nn/npz"
	"dahl/platform"
	"dahl/platforms"
	"dahl/platforms/testmachine"
	"dahl/schedule"
	"dahl/schedule/audit"
	"dahl/schedule/policy"
	"dahl/simulate"
)

// network is a small training run: in each epoch two training steps and a short
// last batch, two evaluation steps and a short last batch.
type network struct {
	model       *nn.Model
	prog        *dag.Program
	dtype       dag.DType
	train, test *data.Dataset
	epochs      int
	optimizer   nn.Optimizer // nil: the model's default
	lowering    dag.Lowering
}

// 2·5 + 3 training samples and 2·5 + 2 test samples; see fixtureLowering for the tiles.
const (
	fixtureBatch = 5
	fixtureTrain = 13
	fixtureTest  = 12
	epochSteps   = 6 // 2 + 1 of training, 2 + 1 of evaluation
)

// fixtureLowering splits every layer, and sums five tiles of each weight gradient
// in three accumulators, so that there is much that could be done in another order.
func fixtureLowering() dag.Lowering {
	return dag.Lowering{Default: dag.LayerLowering{Forward: dag.Cut{Samples: 2, Outputs: 11}, WeightGradient: dag.Cut{Samples: 1, Outputs: 13, Accumulators: 3}}}
}

// mixedLowering cuts each layer, its input gradient and its weight gradient in thirds along other dimensions: samples,
// outputs, inputs, rows and columns in turn, with two accumulators for each sum. Every third layer is recomputed, and a
// step has two micro-batches.
func (n *network) mixedLowering() dag.Lowering {
	l := fixtureLowering()
	l.MicroBatches = 2
	l.Default.Forward.Samples, l.Default.Forward.Outputs = 1, 3 // of no layer here, but of deviceSplits
	l.Layers = map[string]dag.LayerLowering{}
	for i, s := range n.model.Stages {
		image := append(slices.Clone(s.Out), 1, 1)
		var ll dag.LayerLowering
		for k, cut := range []*dag.Cut{&ll.Forward, &ll.InputGradient, &ll.WeightGradient} {
			d := dag.Dimension((i + 2*k + 3) % int(dag.NumDimensions))
			extent := [dag.NumDimensions]int{fixtureBatch, s.Out[0], s.In[0][0], image[1], image[2]}[d]
			*cut.Of(d), cut.Accumulators = (extent+2)/3, 2
		}
		ll.Recompute = i%3 == 0
		l.Layers[s.Name] = ll
	}
	return l
}

// newNetwork lowers a built-in model.
func newNetwork(t testing.TB, model string, dtype dag.DType, epochs int) *network {
	t.Helper()
	m, err := models.ByName(model)
	switch model {
	case branching:
		m, err = branchingNetwork()
	case normalised:
		m, err = normalisedNetwork()
	case sentences:
		m, err = sentencesNetwork()
	}
	if err != nil {
		t.Fatal(err)
	}
	source := "digits"
	switch {
	case model == sentences:
		source = "tokens:7:97:13"
	case !slices.Equal(m.Input, []int{1, 8, 8}):
		source = "synthetic:1x28x28:13:10"
	}
	n := &network{model: m, dtype: dtype, epochs: epochs}
	for _, split := range []struct {
		name  string
		limit int
		to    **data.Dataset
	}{{data.Train, fixtureTrain, &n.train}, {data.Test, fixtureTest, &n.test}} {
		*split.to = must.Get(data.Open(source, data.Options{Split: split.name, Limit: split.limit}))(t)
	}
	n.lower(t, fixtureLowering())
	return n
}

// sentences is a GPT with one block for 7 tokens.
const sentences = "sentences"

func sentencesNetwork() (*nn.Model, error) {
	m, err := nn.New(sentences, []int{7},
		layers.Embedding{Tokens: 13, Width: 10}, layers.Positions{}, layers.LayerNorm{}, layers.Dense{Outputs: 30}, nn.Named{Name: "attention", Layer: layers.Attention{Heads: 5, Causal: true}},
		layers.Dense{Outputs: 10}, nn.Of(layers.Add{}, "positions1", "fc2"), layers.LayerNorm{}, layers.Dense{Outputs: 17}, layers.Activation{Function: "gelu_tanh"},
		layers.Dense{Outputs: 10}, nn.Of(layers.Add{}, "add1", "fc4"), layers.LayerNorm{}, layers.Dense{Outputs: 13})
	if err == nil {
		m.Defaults.Optimizer, m.Defaults.ClipNorm = nn.DefaultAdam(), 1
	}
	return m, err
}

// branching is a network with two residual blocks and a concatenation, with values that two and
// three layers read.
const branching = "branching"

func branchingNetwork() (*nn.Model, error) {
	conv := func(filters int) nn.Layer { return layers.Conv2D{Filters: filters, Kernel: 3, Pad: 1} }
	m, err := nn.New(branching, []int{1, 8, 8},
		conv(5), layers.ReLU{}, conv(5), layers.ReLU{}, conv(5), nn.Of(layers.Add{}, "relu1", "conv3"), layers.Activation{Function: "gelu"},
		conv(7), layers.ReLU{}, nn.Of(conv(7), "gelu1"), nn.Of(layers.Add{}, "relu3", "conv5"), nn.Of(layers.Concat{}, "gelu1", "add2"),
		layers.GlobalAvgPool{}, layers.Flatten{}, nn.Of(layers.MaxPool{Size: 4}, "concat1"), layers.Flatten{}, layers.Dense{Outputs: 13}, layers.ReLU{},
		nn.Of(layers.Concat{}, "flatten1", "relu4"), layers.Dense{Outputs: 10})
	if err == nil {
		m.Defaults.Optimizer = nn.SGD{LearningRate: 0.05, Momentum: 0.9}
	}
	return m, err
}

// normalised is a network with two residual blocks, the second with a convolution on the way around, whose convolutions are
// followed by batch normalisations, and with dropout of maps and of features.
const normalised = "normalised"

func normalisedNetwork() (*nn.Model, error) {
	conv := func(filters, stride int) nn.Layer {
		return layers.Conv2D{Filters: filters, Kernel: 3, Pad: 1, Stride: stride, NoBias: true}
	}
	m, err := nn.New(normalised, []int{1, 8, 8},
		conv(5, 1), layers.BatchNorm{}, layers.ReLU{}, conv(5, 1), layers.BatchNorm{}, nn.Of(layers.Add{}, "bn2", "relu1"), layers.ReLU{},
		conv(7, 2), layers.BatchNorm{}, nn.Of(conv(7, 2), "relu2"), layers.BatchNorm{}, nn.Of(layers.Add{}, "bn3", "bn4"), layers.ReLU{},
		layers.Dropout{P: 0.25}, conv(11, 1), layers.BatchNorm{}, layers.ReLU{}, layers.GlobalAvgPool{}, layers.Flatten{}, layers.Dropout{P: 0.5}, layers.Dense{Outputs: 10})
	if err == nil {
		m.Defaults.Optimizer = nn.SGD{LearningRate: 0.05, Momentum: 0.9}
	}
	return m, err
}

func (n *network) lower(t testing.TB, l dag.Lowering) {
	t.Helper()
	n.lowering = l
	n.prog = must.Get(nn.NewProgram(n.model, nn.ProgramOptions{Batch: fixtureBatch, TrainSamples: n.train.Len(), TestSamples: n.test.Len(),
		Epochs: n.epochs, Type: n.dtype, Lowering: l, Optimizer: n.optimizer, Divisor: n.train.Divisor}))(t)
}

// how says by what a program is decided: by plans, or else by a policy, heft if there is
// none. The last two are for what is executed.
type how struct {
	platform *platform.Platform
	policy   string
	plans    []*schedule.Plan
	variant  string
	poison   bool
}

// decide is what is decided for a target.
func (h how) decide(t testing.TB, prog *dag.Program, target schedule.Target) *schedule.Decision {
	t.Helper()
	choice := schedule.Choice{Policy: policy.HEFT, Plans: h.plans}
	priced, err := schedule.Price(prog, h.platform, target)
	if err == nil && (h.policy != "" || h.plans == nil) {
		choice.Policy, err = policy.ByName(cmp.Or(h.policy, "heft"))
	}
	if err != nil {
		t.Fatal(err)
	}
	return must.Get(priced.Decide(choice))(t)
}

// decided is a decision to simulate.
func decided(t testing.TB, prog *dag.Program, h how) *schedule.Decision {
	t.Helper()
	return h.decide(t, prog, hardware.Target{})
}

// simulated runs one graph in the simulator and holds the schedule to Check.
func simulated(t testing.TB, d *schedule.Decision, graph, steps int) *schedule.Schedule {
	t.Helper()
	s := must.Get(simulate.Run(context.Background(), d, graph, steps, simulate.Options{}))(t)
	must.Do(t, audit.Check(s, d.Problem(graph, steps, false)))
	return s
}

// training is a network on a runner, its data and weights in place.
type training struct {
	*network
	decision *schedule.Decision
	runner   *execute.Runner
	samples  []int32 // of the running segment
	done     int     // training steps so far
	losses   []float64
	runs     []run
}

// run is one executed segment.
type run struct {
	graph    int
	problem  *schedule.Problem
	schedule *schedule.Schedule
}

// execute runs the whole program and holds the schedule of every segment to
// Schedule.Check. The runner is closed; its memory stays readable.
func (n *network) execute(t testing.TB, h how) *training {
	t.Helper()
	tr := &training{network: n}
	tr.open(t, h, map[string]execute.Hook{"feed": tr.feed, "fetch": tr.fetch})
	defer tr.runner.Close()
	for _, seg := range n.prog.Order {
		tr.segment(t, seg)
	}
	return tr
}

// open decides the program for this machine and puts it on a runner, with data and initial
// weights in place.
func (tr *training) open(t testing.TB, h how, hooks map[string]execute.Hook) {
	t.Helper()
	h.platform = must.Get(execute.Runnable(h.platform))(t)
	tr.decision = h.decide(t, tr.prog, hardware.Target{Variant: h.variant, ThisMachine: true})
	tr.runner = must.Get(execute.New(tr.decision, execute.Options{Hooks: hooks, Poison: h.poison}))(t)
	tr.fill()
}

// fill puts data and initial weights in place.
func (tr *training) fill() {
	for prefix, d := range map[string]*data.Dataset{"data.train": tr.train, "data.test": tr.test} {
		if err := d.Fill(tr.runner.Bytes(prefix + ".images")); err != nil {
			panic(err)
		}
		copy(tr.runner.Int32s(prefix+".labels"), d.Labels)
	}
	for _, p := range tr.model.State() {
		values := make([]float64, p.Elems())
		p.Init(values, 0, 5)
		first := npz.NewArray(p.Name, p.Type(tr.dtype), p.Shape, values)
		copy(tr.runner.Bytes(p.Name), first.Data)
	}
	for _, g := range tr.prog.Graphs {
		for i := range g.Buffers {
			if of, older := nn.OlderVersion(g.Buffers[i].Name); older {
				copy(tr.runner.Bytes(g.Buffers[i].Name), tr.runner.Bytes(of))
			}
		}
	}
	copy(tr.runner.Bytes(nn.DropoutSeed), []byte{3, 1, 4, 1, 5, 9, 2, 6})
}

// segment runs one segment. Training images are visited in another order in every
// epoch, test samples in their own.
func (tr *training) segment(t testing.TB, seg dag.Segment) {
	t.Helper()
	g := tr.prog.Graphs[seg.Graph]
	before := tr.hash()
	epoch := len(tr.runs) * tr.epochs / len(tr.prog.Order)
	training := g.Name == nn.GraphTrain || g.Name == nn.GraphTrainTail
	split := tr.test
	if training {
		split = tr.train
	}
	tr.samples = make([]int32, split.Len())
	data.InOrder(tr.samples)
	if training {
		data.Shuffle(tr.samples, 3, epoch)
	}
	if g.Name == nn.GraphTrainTail || g.Name == nn.GraphEvalTail {
		tr.samples = tr.samples[split.Len()/fixtureBatch*fixtureBatch:]
	}
	s := must.Get(tr.runner.Run(context.Background(), seg.Graph, seg.Steps, true))(t)
	problem := tr.decision.Problem(seg.Graph, seg.Steps, false)
	if err := audit.Check(s, problem); err != nil {
		t.Error(err)
	}
	if trained := tr.hash() != before; trained != training {
		t.Errorf("graph %q: weights changed: %v, want %v", g.Name, trained, training)
	}
	if training {
		tr.done += seg.Steps
	}
	tr.runs = append(tr.runs, run{seg.Graph, problem, s})
}

func (tr *training) feed(step int, call *calls.Call) error {
	index := calls.Data[int32](&call.Args[0])
	copy(index, data.Batch(tr.samples, len(index), step))
	if len(call.Args) > 1 {
		copy(calls.Data[float64](&call.Args[1]), []float64{tr.rate(), float64(tr.done + step + 1)})
	}
	return nil
}

// rate is the learning rate.
func (n *network) rate() float64 {
	if n.optimizer != nil {
		return n.optimizer.Rate()
	}
	return n.model.Defaults.Optimizer.Rate()
}

func (tr *training) fetch(_ int, call *calls.Call) error {
	if tr.dtype == dag.Float64 {
		tr.losses = append(tr.losses, calls.Data[float64](&call.Args[0])[0])
	} else {
		tr.losses = append(tr.losses, float64(calls.Data[float32](&call.Args[0])[0]))
	}
	return nil
}

// hash is the SHA-256 of all parameters and running statistics.
func (tr *training) hash() string {
	h := sha256.New()
	for _, p := range tr.model.State() {
		h.Write(tr.runner.Bytes(p.Name))
	}
	return hex.EncodeToString(h.Sum(nil))
}

// plans writes down what the runs decided, one plan for each graph.
func (tr *training) plans() []*schedule.Plan {
	plans := make([]*schedule.Plan, len(tr.prog.Graphs))
	for _, r := range tr.runs {
		plans[r.graph] = schedule.PlanFrom(r.schedule, "replay", r.problem.Graph)
	}
	return plans
}

func finite(values []float64) bool {
	return !slices.ContainsFunc(values, func(x float64) bool { return math.IsNaN(x) || math.IsInf(x, 0) })
}

// machine is a platform of cores that share one memory.
func machine(t testing.TB, cores int) *platform.Platform {
	t.Helper()
	p := testmachine.Node(t, testmachine.CPU(cores))
	p.Memories[0].BandwidthBytesPerSec, p.Devices[0].FlopsPerSec = 1e10, map[string]float64{"float32": 4e9, "float64": 2e9}
	must.Do(t, p.Complete())
	return p
}

// shipped is a platform of the directory platforms.
func shipped(t testing.TB, name string) *platform.Platform {
	t.Helper()
	return must.Get(platforms.Load(name))(t)
}

// trainingStep lowers a training step as the program does by default.
func trainingStep(t testing.TB, model string, batch int, p *platform.Platform) *dag.Graph {
	t.Helper()
	m := must.Get(models.ByName(model))(t)
	g := must.Get(m.Lower(nn.LowerOptions{Batch: batch, Type: dag.Float32, Train: true, Samples: batch,
		Lowering: nn.DefaultLowering(m, batch, int(p.Devices[0].L2Bytes), dag.Float32)}))(t)
	return g
}

// program is one graph as a program.
func program(g *dag.Graph) *dag.Program {
	return &dag.Program{Name: g.Name, Graphs: []*dag.Graph{g}, Order: []dag.Segment{{Graph: 0, Steps: 1}}}
}
