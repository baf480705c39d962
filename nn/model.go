package nn

import (
	"fmt"
	"math"
	"reflect"
	"slices"

	"dahl/dag"
	"dahl/kernels"
	"dahl/nn/random"
	"dahl/nn/rates"
)

// Model is a network: a graph of layers, in an order in which each one reads layers before it, and
// the shapes between them. [New] builds it; package models has some, and package files reads others. It does not change
// afterwards, but for its Defaults.
type Model struct {
	Name     string
	Input    []int // shape of one sample; an image is C×H×W
	Stages   []Stage
	Defaults Defaults

	// OutputsAt is the file and line where a model file says how many outputs there are; "" of
	// any other model, whose outputs are fitted to the data.
	OutputsAt string

	ONNX  *ONNXFile // with whose weights the model begins. Nil means none.
	Notes []string  // what users should know before they train it

	named        map[string]int // index of each stage
	inputReaders []reader       // of the model's own input
	kernels      *kernels.Table // nil means the table of package kernels
}

// ONNXFile is the ONNX file of a network, and how it calls the operands of the whole.
type ONNXFile struct{ Path, Input, Output string }

// ModelInput stands in Stage.Inputs for the model's own input, and InputName in Named.Inputs.
const (
	ModelInput = -1
	InputName  = "input"
)

// Stage is a layer in its place: its name, what it reads, and the shapes of one sample before and
// after it.
type Stage struct {
	Name   string
	Layer  Layer
	Inputs []int   // indices of the stages that it reads, or ModelInput
	In     [][]int // shapes of these
	Out    []int
	Traits Traits
	Params []Parameter

	// Running are the statistics that the forward pass of a training step carries from batch to batch.
	Running []Parameter

	// StateName begins the names of parameters and running statistics: the layer's name, or [Named.StateName].
	StateName string

	readers []reader // in the order of the model
	learns  bool     // its output depends on parameters
	shares  []string // see Named
	shared  bool     // it has parameters of other layers, or they have its parameters
}

// reader is an input of a stage, as the layer whose output it is sees it.
type reader struct{ stage, input int }

// Parameter is a tensor that training changes.
type Parameter struct {
	Name   string  // the key in PyTorch's state_dict: "conv1.weight"
	Shape  []int   // weights (f,c,k,k) or (out,in), biases (f) or (out)
	FanIn  int     // number of inputs of one output, for PyTorch's initialisation. Zero means all elements begin with First.
	First  float64 // see FanIn
	Counts bool    // an int64, whatever the type of the network

	// Init draws from a normal distribution of mean 0 and this deviation, if it is not zero.
	Deviation float64
	// Axes are the dimensions of the layer behind the dimensions of the parameter. Nil means that rows are outputs, and columns inputs, where there
	// are as many.
	Axes []dag.Dimension

	// Of is the parameter of an earlier layer that this one is. Empty means it is its own. See [Named.Shares].
	Of string

	Values []float64 // with which it begins, as a model file with weights says. Nil means Init draws them.
}

// Elems is the number of elements of the parameter.
func (p *Parameter) Elems() int { return Elems(p.Shape) }

// Type is the type of the elements in a network of some type.
func (p *Parameter) Type(network dag.DType) dag.DType {
	if p.Counts {
		return dag.Int64
	}
	return network.Arithmetic()
}

// bufferShape is the shape of the buffer that holds the parameter: a single number is one of one element.
func (p *Parameter) bufferShape() []int {
	if len(p.Shape) == 0 {
		return []int{1}
	}
	return p.Shape
}

// Init fills dst, which holds the elements of the parameter from one on, with PyTorch's default distribution:
// U(-b, b) with b = 1/√fan_in, for weights and biases, with First or by the parameter's deviation. The numbers depend on the seed and the
// parameter's name only. A parameter of a model file with weights begins with the numbers of the file.
func (p *Parameter) Init(dst []float64, from int, seed uint64) {
	if p.Values != nil {
		copy(dst, p.Values[from:])
		return
	}
	switch {
	case p.Deviation > 0:
		random.InitNormal(dst, from, seed, p.Name, p.Deviation)
		return
	case p.FanIn == 0:
		for i := range dst {
			dst[i] = p.First
		}
		return
	}
	bound := 1 / math.Sqrt(float64(p.FanIn))
	random.InitBetween(dst, from, seed, p.Name, -bound, bound)
}

// Defaults is the way a model is trained. Batch and Optimizer hold for a training that names no others.
type Defaults struct {
	Batch     int
	Optimizer Optimizer
	Schedule  rates.Schedule // of the optimiser's rate
	Loss      Loss
	// ClipNorm is the most that the norm of all gradients together may be, as PyTorch's
	// clip_grad_norm_ has it. Zero means any.
	ClipNorm float64
	// MaskToken stands for tokens of a text that the network is to find; the loss ignores the others. 0 means that it is to find the next tokens.
	MaskToken int
}

// String lists all settings that decide a step, except its batch.
func (d Defaults) String() string {
	text := fmt.Sprintf("%s lr=%v", d.Optimizer.Name(), d.Optimizer.Rate())
	for _, p := range d.Optimizer.params(MostDecayDims) {
		if p.Value != 0 {
			text += fmt.Sprintf(" %s=%v", p.Name, p.Value)
		}
	}
	if a, ok := d.Optimizer.(Adam); ok && a.DecayDims > 0 {
		text += fmt.Sprintf(" decay_dims=%d", a.DecayDims)
	}
	text += fmt.Sprintf("; schedule %s; loss %s", d.Schedule, d.Loss)
	if d.ClipNorm > 0 {
		text += fmt.Sprintf("; clip_norm=%v", d.ClipNorm)
	}
	if d.MaskToken > 0 {
		text += fmt.Sprintf("; mask_token=%d", d.MaskToken)
	}
	return text
}

// New checks that the layers fit together, and names the layers without [Named]:
// kinds are counted from 1, as in conv1, relu1, pool1, conv2, fc1.
func New(name string, input []int, layers ...Layer) (*Model, error) {
	m := &Model{Name: name, Input: slices.Clone(input), Defaults: Defaults{Batch: 32, Optimizer: DefaultSGD()}}
	if err := m.infer(layers); err != nil {
		return nil, fmt.Errorf("model %q: %w", name, err)
	}
	return m, nil
}

// For returns the same layers for images of another shape or another number of classes, as in mlp
// on 8×8 digits. The last layer gets as many outputs where it has a method WithOutputs, as layers.Dense does. If the layers cannot take
// the shape, the error names the layer.
func (m *Model) For(input []int, classes int) (*Model, error) {
	layers := m.layers()
	last := layers[len(layers)-1].(Named)
	if l, ok := last.Layer.(interface{ WithOutputs(n int) Layer }); ok {
		last.Layer = l.WithOutputs(classes)
		layers[len(layers)-1] = last
	}
	other, err := New(m.Name, input, layers...)
	if err != nil {
		return nil, err
	}
	if got := other.Classes(); got != classes {
		return nil, fmt.Errorf("model %q has %d outputs, the data %d classes", m.Name, got, classes)
	}
	other.Defaults = m.Defaults
	for i := range other.Stages {
		to, from := other.Stages[i].state(), m.Stages[i].state()
		for j, p := range to {
			if of := from[j]; slices.Equal(p.Shape, of.Shape) {
				p.Values = of.Values
			} else if of.Values != nil {
				return nil, fmt.Errorf("model %q: parameter %q of the file has shape %v, and %v is wanted", m.Name, p.Name, of.Shape, p.Shape)
			}
		}
	}
	return other, nil
}

// bringer is a layer with operations of its own. All layers of one type bring the same.
type bringer interface{ Kernels() []kernels.Kernel }

// bringKernels makes the table of operations where layers bring some.
func (m *Model) bringKernels() (err error) {
	var own []kernels.Kernel
	seen := map[reflect.Type]bool{}
	for i := range m.Stages {
		layer := m.Stages[i].Layer
		if b, ok := layer.(bringer); ok && !seen[reflect.TypeOf(layer)] {
			seen[reflect.TypeOf(layer)] = true
			own = append(own, b.Kernels()...)
		}
	}
	if own != nil {
		m.kernels, err = kernels.NewTable(own...)
	}
	return err
}

// Kernels is the table of operations of the model's tasks: the operations of package kernels, and others that layers
// bring. Nil means that they bring none. What runs the tasks needs it, as
// hardware.Target.Kernels.
func (m *Model) Kernels() *kernels.Table { return m.kernels }

// state is the parameters and running statistics of the stage.
func (s *Stage) state() (all []*Parameter) {
	for _, list := range [][]Parameter{s.Params, s.Running} {
		for i := range list {
			all = append(all, &list[i])
		}
	}
	return all
}

// inElems is the number of elements of one sample of all inputs.
func (s *Stage) inElems() int {
	n := 0
	for _, in := range s.In {
		n += Elems(in)
	}
	return n
}

// layers lists the layers, each [Named], with the names of its inputs.
func (m *Model) layers() []Layer {
	all := make([]Layer, len(m.Stages))
	for i, s := range m.Stages {
		n := Named{Name: s.Name, Layer: s.Layer, StateName: s.StateName, Shares: s.shares}
		for _, from := range s.Inputs {
			name := InputName
			if from != ModelInput {
				name = m.Stages[from].Name
			}
			n.Inputs = append(n.Inputs, name)
		}
		all[i] = n
	}
	return all
}

// Classes is the number of outputs at each position.
func (m *Model) Classes() int {
	classes, _ := m.outputs()
	return classes
}

// Positions is the shape of the labels of one sample. Empty means one label.
func (m *Model) Positions() []int {
	_, positions := m.outputs()
	return positions
}

// outputs are the classes, which are the channels of an image or the last dimension of any other output, and the other
// dimensions.
func (m *Model) outputs() (classes int, positions []int) {
	out := m.Stages[len(m.Stages)-1].Out
	if len(out) == 3 {
		return out[0], out[1:]
	}
	return out[len(out)-1], out[:len(out)-1]
}

// State lists all that a training begins with and ends with, in the order of the layers: PyTorch's state_dict. A
// parameter of several layers is there once, under the name that the first of them gives it.
func (m *Model) State() (all []Parameter) {
	for i := range m.Stages {
		for _, p := range m.Stages[i].state() {
			if p.Of == "" {
				all = append(all, *p)
			}
		}
	}
	return all
}

// Parameters lists the parameters that have gradients, in the order of the layers, as State does.
func (m *Model) Parameters() (all []Parameter) {
	for i := range m.Stages {
		for _, p := range m.Stages[i].Params {
			if p.Of == "" {
				all = append(all, p)
			}
		}
	}
	return all
}

// NumWeights is the number of trained numbers.
func (m *Model) NumWeights() int {
	n := 0
	for _, p := range m.Parameters() {
		n += p.Elems()
	}
	return n
}

// Perplexity is exp of a loss: of how many tokens, all equally likely, the next one would be chosen. It is known if the model takes
// tokens and its loss is their cross entropy.
func (m *Model) Perplexity(loss float64) (p float64, known bool) {
	return math.Exp(loss), m.Vocabulary() > 0 && m.Defaults.Loss.name() == crossEntropy && m.Defaults.Loss.LabelSmoothing == 0
}

// Vocabulary is the number of tokens that the model takes. Zero means that its input is numbers.
func (m *Model) Vocabulary() (tokens int) {
	for _, r := range m.inputReaders {
		if l, ok := m.Stages[r.stage].Layer.(interface{ Vocabulary() int }); ok && (tokens == 0 || l.Vocabulary() < tokens) {
			tokens = l.Vocabulary()
		}
	}
	return tokens
}

// Elems is the number of elements of a shape.
func Elems(shape []int) int {
	n := 1
	for _, e := range shape {
		n *= e
	}
	return n
}

// BusiestLayer is the layer with the most weights times positions, which is the most work;
// empty where no layer has weights.
func (m *Model) BusiestLayer() string {
	name, most := "", 0
	for i := range m.Stages {
		s := &m.Stages[i]
		if !s.Traits.Weight {
			continue
		}
		work := s.Params[0].Elems() * (Elems(s.Out) / Channels(s.Out))
		if work > most {
			name, most = s.Name, work
		}
	}
	return name
}
