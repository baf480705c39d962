package files

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"dahl/naming"
	"dahl/nn"
	"dahl/nn/onnx"
)

// maxONNXBytes bounds a file, such as a device without end.
const maxONNXBytes = 1 << 31

// loadONNX reads a network with its weights from an ONNX file.
func loadONNX(path string) (*nn.Model, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read model: %w", err)
	}
	defer f.Close()
	src, err := io.ReadAll(io.LimitReader(f, maxONNXBytes))
	if err != nil {
		return nil, fmt.Errorf("read model: %w", err)
	}
	return ParseONNX(src, path)
}

// ParseONNX reads a network with its weights. Each operator is a layer, and the output is the logits:
// the loss is not part of the file. A layer whose weight is called "conv1.weight" is called conv1, as
// PyTorch exports them, and other layers have automatic names. So have those whose name dahl uses itself, as "input" of
// "input.weight", but their parameters keep the names of the file. Whatever else a file holds is refused in
// one line, which names the operator. The file's name is for errors.
func ParseONNX(src []byte, file string) (*nn.Model, error) {
	g, err := onnx.Decode(src)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return modelOfONNX(g, file)
}

func modelOfONNX(g *onnx.Graph, file string) (*nn.Model, error) {
	r := newONNXReader(g)
	input, err := r.input()
	if err == nil {
		err = r.constants()
	}
	for i := 0; err == nil && i < len(g.Nodes); i++ {
		err = atOperator(&g.Nodes[i], r.node(&g.Nodes[i]))
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if len(g.Outputs) != 1 || r.layerOf[g.Outputs[0].Name] != r.last {
		return nil, fmt.Errorf("%s: the output is not that of the last operator alone", file)
	}
	name := strings.TrimSuffix(file[strings.LastIndexAny(file, `/\`)+1:], ".onnx")
	m, err := nn.New(name, input, r.layers...)
	if err == nil {
		err = setWeights(m, r.weights)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	m.ONNX, m.Notes = &nn.ONNXFile{Path: file, Input: r.inputName, Output: g.Outputs[0].Name}, r.notes()
	return m, nil
}

// atOperator says at which operator a mistake is.
func atOperator(n *onnx.Node, err error) error {
	if err != nil {
		err = fmt.Errorf("operator %s (node %q): %w", n.Op, n.Name, err)
	}
	return err
}

// setWeights gives parameters the values of a file.
func setWeights(m *nn.Model, weights map[string]*onnx.Tensor) error {
	for i := range m.Stages {
		for _, list := range [][]nn.Parameter{m.Stages[i].Params, m.Stages[i].Running} {
			for j := range list {
				if err := setWeight(&list[j], weights[list[j].Name]); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func setWeight(p *nn.Parameter, t *onnx.Tensor) error {
	if t == nil && (p.Counts || p.Of != "") {
		return nil // no part of the format, or a parameter of another layer
	}
	var shape []int
	if t != nil {
		shape = t.Shape
	}
	if !slices.Equal(shape, p.Shape) {
		return fmt.Errorf("parameter %q is to have shape %v, and the file has %v", p.Name, p.Shape, shape)
	}
	p.Values = t.Floats
	return nil
}

// onnxReader is a file while its operators become layers.
type onnxReader struct {
	graph     *onnx.Graph
	inputName string
	batch     int // that the file's input has. Zero means any.
	layers    []nn.Layer
	last      string                  // name of the last layer
	layerOf   map[string]string       // by name of an operand: the layer that makes it, or "input"
	shapes    map[string][]int        // of the samples that layers give; nil where a layer is wrong, as New then says
	taken     map[string]bool         // names of layers, and of their parameters
	weights   map[string]*onnx.Tensor // by name of the parameter

	readers map[string][]*onnx.Node // by operand
	biases  map[*onnx.Node]bool     // sums that are the bias of the layer before them
	vectors map[string][]int64      // shapes that operators compute

	trained map[*onnx.Tensor]*onnxUse // initializers that are trained parameters
	kept    map[*onnx.Tensor]bool     // those that are running statistics
	apart   map[string]bool           // names of initializers of which each layer has its own copy
	widened map[string]bool           // types of weights of fewer bits than a float32
	renamed []string                  // parameters with a name of PyTorch's that no layer may have, and their names here
}

// onnxUse is where an initializer is a parameter.
type onnxUse struct {
	param  string // the name of the parameter in the first layer
	kind   string // "weight" or "bias"
	turned bool
	layers []string
}

func newONNXReader(g *onnx.Graph) *onnxReader {
	r := &onnxReader{graph: g, layerOf: map[string]string{}, shapes: map[string][]int{}, taken: map[string]bool{}, weights: map[string]*onnx.Tensor{},
		readers: map[string][]*onnx.Node{}, biases: map[*onnx.Node]bool{}, vectors: map[string][]int64{},
		trained: map[*onnx.Tensor]*onnxUse{}, kept: map[*onnx.Tensor]bool{}, apart: map[string]bool{}, widened: map[string]bool{}}
	for i := range g.Nodes {
		for _, operand := range g.Nodes[i].Inputs {
			r.readers[operand] = append(r.readers[operand], &g.Nodes[i])
		}
	}
	return r
}

// input finds the operand that is no weight, and its shape without the batch.
func (r *onnxReader) input() ([]int, error) {
	var shape []int
	for _, v := range r.graph.Inputs {
		if r.graph.Tensors[v.Name] != nil {
			continue
		}
		if shape != nil {
			return nil, fmt.Errorf("it has several inputs; want one, images or features")
		}
		if len(v.Shape) != 2 && len(v.Shape) != 4 || slices.Contains(v.Shape[1:], 0) {
			return nil, fmt.Errorf("input %q has shape %v; want a batch of C×H×W or of features, whose extents are known", v.Name, v.Shape)
		}
		shape, r.layerOf[v.Name] = v.Shape[1:], nn.InputName
		r.inputName, r.batch, r.shapes[nn.InputName] = v.Name, v.Shape[0], shape
	}
	if shape == nil {
		return nil, fmt.Errorf("it has no input")
	}
	return shape, nil
}

// node makes a layer of an operator.
func (r *onnxReader) node(n *onnx.Node) error {
	if done, err := r.withoutLayer(n); done || err != nil {
		return err
	}
	layerOf, known := onnxOperators()[n.Op]
	if !known {
		return fmt.Errorf("dahl has no layer for it; it reads %s", strings.Join(slices.Sorted(maps.Keys(onnxOperators())), ", "))
	}
	if n.Op == "BatchNormalization" || n.Op == "Dropout" {
		n.Outputs = n.Outputs[:min(len(n.Outputs), 1)] // others are statistics and a mask, which no layer reads
	}
	if len(n.Inputs) == 0 || len(n.Outputs) != 1 {
		return fmt.Errorf("%d operands and %d results; want one result", len(n.Inputs), len(n.Outputs))
	}
	o := onnxNode{Node: n, reader: r, operands: n.Inputs}
	layer := layerOf(&o)
	for _, name := range slices.Sorted(maps.Keys(n.Attributes)) {
		o.fail("attribute %s: dahl does not know it", name)
	}
	if o.err != nil {
		return o.err
	}
	of := nn.Named{Layer: layer}
	var in [][]int
	for _, operand := range o.operands {
		from, made := r.layerOf[operand]
		if !made && r.graph.Tensors[operand] != nil {
			return fmt.Errorf("operand %q is a constant of the file; dahl reads a constant only as a weight, or in a sum as the bias of a Conv, Gemm or MatMul that has none and whose result nothing else reads", operand)
		}
		if !made {
			return fmt.Errorf("operand %q is not the output of an operator before it", operand)
		}
		of.Inputs, in = append(of.Inputs, from), append(in, r.shapes[from])
	}
	if layer == nil { // the operator changes nothing
		r.layerOf[n.Outputs[0]] = of.Inputs[0]
		return nil
	}
	of.Name, of.StateName = r.newName(layer, o.params)
	if err := r.keep(&of, o.params); err != nil {
		return err
	}
	r.layers, r.last, r.layerOf[n.Outputs[0]] = append(r.layers, of), of.Name, of.Name
	if !slices.ContainsFunc(in, func(shape []int) bool { return shape == nil }) {
		if shape, err := layer.Output(in); err == nil {
			r.shapes[of.Name] = shape
		}
	}
	return nil
}

// newName names a layer after its weight or its bias, or else by an automatic name that no weight has. The second is how the names
// of its parameters begin, where that is not the first.
func (r *onnxReader) newName(layer nn.Layer, params []onnxParam) (name, state string) {
	for _, p := range params {
		of, ok := strings.CutSuffix(p.name, "."+p.kind)
		if ok && state == "" && !r.taken[of] && nn.IsStateName(of) {
			state = of
		}
	}
	if state != "" && nn.CheckName(state) == nil {
		r.taken[state] = true
		return state, ""
	}
	for i := 1; ; i++ {
		name = fmt.Sprintf("%s%d", nn.PrefixOf(layer), i)
		if _, other := r.graph.Tensors[name+".weight"]; !other && !r.taken[name] {
			break
		}
	}
	r.taken[name] = true
	if state != "" {
		r.taken[state] = true
	}
	return name, state
}

// keep notes the values of the parameters of a layer, and which of them earlier layers have.
func (r *onnxReader) keep(of *nn.Named, params []onnxParam) error {
	for _, p := range params {
		name := cmp.Or(of.StateName, of.Name) + "." + p.kind
		if slices.Contains([]string{"float16", "bfloat16"}, p.t.Type) {
			r.widened[p.t.Type] = true
		}
		before := r.trained[p.from]
		switch isRunning := strings.HasPrefix(p.kind, "running"); {
		case isRunning && (before != nil || r.kept[p.from]):
			r.apart[p.from.Name] = true
			r.kept[p.from] = true
		case isRunning:
			r.kept[p.from] = true
		case before == nil:
			if r.kept[p.from] {
				r.apart[p.from.Name] = true
			}
			r.trained[p.from] = &onnxUse{param: name, kind: p.kind, turned: p.turned, layers: []string{of.Name}}
		case before.kind != p.kind || before.turned != p.turned:
			how := map[bool]string{true: ", turned"}
			return fmt.Errorf("initializer %q is the %s of layer %s%s and the %s of layer %s%s, which dahl does not train as one parameter; write it twice, under two names",
				p.from.Name, before.kind, before.layers[0], how[before.turned], p.kind, of.Name, how[p.turned])
		default:
			before.layers = append(before.layers, of.Name)
			of.Shares = append(of.Shares, before.param)
			continue // it has its values
		}
		r.weights[name] = p.t
		if p.name != name && strings.HasSuffix(p.name, "."+p.kind) {
			r.renamed = append(r.renamed, fmt.Sprintf("%s (%s)", p.name, name))
		}
	}
	return nil
}

// notes tell users what differs from the file when they train the network.
func (r *onnxReader) notes() (all []string) {
	if types := slices.Sorted(maps.Keys(r.widened)); len(types) > 0 {
		all = append(all, fmt.Sprintf("weights of type %s are widened to the type of the training", strings.Join(types, " and ")))
	}
	var shared []string
	for from, use := range r.trained {
		if len(use.layers) > 1 {
			shared = append(shared, fmt.Sprintf("%s (%s)", from.Name, strings.Join(use.layers, ", ")))
		}
	}
	if slices.Sort(shared); len(shared) > 0 {
		all = append(all, "each of these is one parameter of several layers, trained by the sum of its gradients, also where the program that wrote the file only found equal numbers: "+naming.FirstFew(shared))
	}
	if len(r.renamed) > 0 {
		all = append(all, "each of these has another name here, also in files of weights, since names of layers are letters, digits, '_', '-' and '.', and each layer has one: "+naming.FirstFew(r.renamed))
	}
	if apart := slices.Sorted(maps.Keys(r.apart)); len(apart) > 0 {
		all = append(all, "each of these is running statistics and something else, of which each layer has its own copy: "+naming.FirstFew(apart))
	}
	return all
}
