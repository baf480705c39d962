package nn

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// Model is a network: layers in order, and the shapes between them. The loss is softmax
// cross-entropy, the mean over the batch. [New], [ModelByName] and [ParseModel] build it. It does
// not change afterwards.
type Model struct {
	Name     string
	Input    []int // shape of one sample, C×H×W or a number of features
	Stages   []Stage
	Defaults Defaults

	// OutputsAt is the file and line where a model file says how many outputs there are; "" of
	// any other model, whose outputs are fitted to the data.
	OutputsAt string
}

// Stage is a layer in its place: its name and the shapes of one sample before
// and after it.
type Stage struct {
	Name   string
	Layer  Layer
	In     []int
	Out    []int
	Params []Parameter
}

// Parameter is a tensor that training changes.
type Parameter struct {
	Name  string // the key in PyTorch's state_dict: "conv1.weight"
	Shape []int  // weights (f,c,k,k) or (out,in), biases (f) or (out)
	FanIn int    // number of inputs of one output, for PyTorch's initialisation
}

// Elems is the number of elements of the parameter.
func (p *Parameter) Elems() int { return elems(p.Shape) }

// Init fills dst, which holds the parameter, with PyTorch's default distribution: U(-b, b) with b
// = 1/√fan_in, for weights and biases. The numbers depend on the seed and the parameter's name
// only.
func (p *Parameter) Init(dst []float64, seed uint64) {
	bound := 1 / math.Sqrt(float64(p.FanIn))
	InitBetween(dst, seed, p.Name, -bound, bound)
}

// Defaults is the way a model is trained if the user says nothing.
type Defaults struct {
	Batch     int
	Optimizer Optimizer
}

// reserved are the first parts of names that buffers and tasks use, so that no layer may.
var reserved = []string{"correct", "data", "feed", "fetch", "grad", "input", "labels", "loss", "metrics", "state", "step"}

// New checks that the layers fit together and names those that are not [Named]:
// kinds are counted from 1, as in conv1, relu1, pool1, conv2, fc1.
func New(name string, input []int, layers ...Layer) (*Model, error) {
	m := &Model{Name: name, Input: slices.Clone(input), Defaults: Defaults{Batch: 32, Optimizer: DefaultSGD()}}
	if err := m.infer(layers); err != nil {
		return nil, fmt.Errorf("model %q: %w", name, err)
	}
	return m, nil
}

// For returns the same layers for images of another shape or another number of classes, as in mlp
// on 8×8 digits. The last layer, if it is dense, gets as many outputs. If the layers cannot take
// the shape, the error names the layer.
func (m *Model) For(input []int, classes int) (*Model, error) {
	layers := make([]Layer, len(m.Stages))
	for i, s := range m.Stages {
		layers[i] = Named{s.Name, s.Layer}
	}
	if d, ok := m.Stages[len(layers)-1].Layer.(Dense); ok {
		d.Outputs = classes
		layers[len(layers)-1] = Named{m.Stages[len(layers)-1].Name, d}
	}
	other, err := New(m.Name, input, layers...)
	if err != nil {
		return nil, err
	}
	if got := other.Classes(); got != classes {
		return nil, fmt.Errorf("model %q has %d outputs, the data %d classes", m.Name, got, classes)
	}
	other.Defaults = m.Defaults
	return other, nil
}

// maxSampleElems bounds one sample at any layer, so that byte counts cannot overflow.
const maxSampleElems = 1 << 32

func (m *Model) infer(layers []Layer) error {
	if err := checkShape(m.Input); err != nil {
		return fmt.Errorf("input: %w", err)
	}
	if len(layers) == 0 {
		return fmt.Errorf("it has no layers")
	}
	count := map[string]int{}
	taken := map[string]bool{}
	shape := m.Input
	for _, layer := range layers {
		kind, err := LayerByName(layer.Kind())
		if err != nil {
			return err
		}
		prefix := kind.Prefix
		count[prefix]++
		name := fmt.Sprintf("%s%d", prefix, count[prefix])
		if n, ok := layer.(Named); ok {
			name, layer = n.Name, n.Layer
		}
		if err := checkName(name); err != nil {
			return err
		}
		if taken[name] {
			return fmt.Errorf("layer %q: the name is taken by an earlier layer", name)
		}
		taken[name] = true
		out, err := layer.Output(shape)
		if err == nil {
			err = checkShape(out)
		}
		if err != nil {
			return fmt.Errorf("layer %q (%s) of input %s: %w", name, layer.Kind(), shapeText(shape), err)
		}
		s := Stage{Name: name, Layer: layer, In: shape, Out: out, Params: layer.Params(shape)}
		for i := range s.Params {
			s.Params[i].Name = name + "." + s.Params[i].Name
			if err := checkExtents(s.Params[i].Shape); err != nil {
				return fmt.Errorf("parameter %q: %w", s.Params[i].Name, err)
			}
		}
		m.Stages = append(m.Stages, s)
		shape = out
	}
	if len(shape) != 1 {
		return fmt.Errorf("the last layer gives %s; the loss needs one number per class (end with flatten and dense)", shapeText(shape))
	}
	return nil
}

func checkShape(shape []int) error {
	if len(shape) != 1 && len(shape) != 3 {
		return fmt.Errorf("shape %s; want C×H×W or a number of features", shapeText(shape))
	}
	return checkExtents(shape)
}

func checkExtents(shape []int) error {
	n := 1
	for _, e := range shape {
		if e < 1 {
			return fmt.Errorf("shape %s; every extent is at least 1", shapeText(shape))
		}
		if n > maxSampleElems/e {
			return fmt.Errorf("shape %s has more than %d elements", shapeText(shape), int64(maxSampleElems))
		}
		n *= e
	}
	return nil
}

func checkName(name string) error {
	if first, _, _ := strings.Cut(name, "."); slices.Contains(reserved, first) {
		return fmt.Errorf("layer %q: names beginning with %q are for dahl's own buffers; choose another", name, first)
	}
	for i, c := range name {
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_'
		other := c >= '0' && c <= '9' || c == '.' || c == '-'
		if !letter && (i == 0 || !other) {
			return fmt.Errorf("layer %q: a name is a letter followed by letters, digits, '_', '-' and '.'", name)
		}
	}
	if name == "" {
		return fmt.Errorf("a layer's name is empty")
	}
	return nil
}

// Classes is the number of outputs.
func (m *Model) Classes() int { return m.Stages[len(m.Stages)-1].Out[0] }

// Parameters lists all parameters in the order of the layers, like PyTorch's state_dict.
func (m *Model) Parameters() []Parameter {
	var all []Parameter
	for i := range m.Stages {
		all = append(all, m.Stages[i].Params...)
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

func elems(shape []int) int {
	n := 1
	for _, e := range shape {
		n *= e
	}
	return n
}

func shapeText(shape []int) string { return joinInts(shape, "×") }

// BusiestLayer is the layer with the most weights times positions, which is the most work;
// empty where no layer has weights.
func (m *Model) BusiestLayer() string {
	name, most := "", 0
	for i := range m.Stages {
		s := &m.Stages[i]
		if len(s.Params) == 0 {
			continue
		}
		work := s.Params[0].Elems()
		for _, extent := range s.Out[1:] {
			work *= extent
		}
		if work > most {
			name, most = s.Name, work
		}
	}
	return name
}
