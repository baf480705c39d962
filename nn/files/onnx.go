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
	"dahl/nn/layers"
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
	if err := r.output(); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	name := strings.TrimSuffix(file[strings.LastIndexAny(file, `/\`)+1:], ".onnx")
	m, err := nn.New(name, input, r.layers...)
	if err == nil && r.tokens != (m.Vocabulary() > 0) {
		err = fmt.Errorf("input %q is of tokens where an embedding reads it, and nowhere else", r.inputName)
	}
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
	batch     int  // that the file's input has. Zero means any.
	tokens    bool // whether the input is whole numbers
	layers    []nn.Layer
	last      string                  // name of the last layer
	values    map[string]*onnxValue   // by name of an operand that depends on samples
	shapes    map[string][]int        // of the samples that layers give; nil where a layer is wrong, as New then says
	computed  int                     // elements of constants that were computed
	taken     map[string]bool         // names of layers, and of their parameters
	weights   map[string]*onnx.Tensor // by name of the parameter

	readers map[string][]*onnx.Node // by operand
	biases  map[*onnx.Node]bool     // sums that are the bias of the layer before them

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
	table  bool // of an embedding
	layers []string
}

func newONNXReader(g *onnx.Graph) *onnxReader {
	r := &onnxReader{graph: g, values: map[string]*onnxValue{}, shapes: map[string][]int{}, taken: map[string]bool{}, weights: map[string]*onnx.Tensor{},
		readers: map[string][]*onnx.Node{}, biases: map[*onnx.Node]bool{},
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
			return nil, fmt.Errorf("it has several inputs; want one, images, features or tokens")
		}
		if len(v.Shape) < 2 || len(v.Shape) > 4 || slices.Contains(v.Shape[1:], 0) {
			return nil, fmt.Errorf("input %q has shape %v; want a batch of C×H×W, of T×C, of features or of tokens, whose extents are known", v.Name, v.Shape)
		}
		shape = v.Shape[1:]
		r.inputName, r.batch, r.tokens, r.shapes[nn.InputName] = v.Name, v.Shape[0], v.Type == "int64" || v.Type == "int32", shape
		r.values[v.Name] = &onnxValue{layer: nn.InputName, view: r.samplesOf(shape)}
	}
	if shape == nil {
		return nil, fmt.Errorf("it has no input")
	}
	return shape, nil
}

// output refuses a file if its output is not the last layer's alone.
func (r *onnxReader) output() error {
	if len(r.graph.Outputs) == 1 {
		name := r.graph.Outputs[0].Name
		if r.values[name] != nil || r.graph.Tensors[name] != nil {
			last, lead, err := r.layerOf(name)
			if err != nil {
				return err
			}
			if shape := r.shapes[last]; last == r.last && (len(shape) != 2 || sameDims(lead, r.samplesOf(shape).dims[:2])) {
				return nil
			}
		}
	}
	return fmt.Errorf("the output is not that of the last operator alone")
}

// node reads an operator: as a constant, as a part of attention, as a view, as a part of a function, or as a layer.
func (r *onnxReader) node(n *onnx.Node) error {
	if done, err := r.withoutLayer(n); done || err != nil {
		return err
	}
	if len(n.Inputs) == 0 || len(n.Outputs) == 0 {
		return fmt.Errorf("%d operands and %d results; want at least one", len(n.Inputs), len(n.Outputs))
	}
	for _, read := range []func(*onnx.Node) (bool, error){r.attention, r.move, r.function} {
		if done, err := read(n); done || err != nil {
			return err
		}
	}
	layerOf, known := onnxOperators()[n.Op]
	if !known {
		return fmt.Errorf("dahl has no layer for it; it reads %s", strings.Join(slices.Sorted(maps.Keys(onnxOperators())), ", "))
	}
	if n.Op == "BatchNormalization" || n.Op == "Dropout" {
		n.Outputs = n.Outputs[:1] // others are statistics and a mask, which no layer reads
	}
	if len(n.Outputs) != 1 {
		return fmt.Errorf("%d results; want one", len(n.Outputs))
	}
	o := onnxNode{Node: n, reader: r, operands: n.Inputs}
	v, err := r.layer(&o, layerOf(&o))
	r.values[n.Outputs[0]] = v
	return err
}

// layer adds the layer of an operator.
func (r *onnxReader) layer(o *onnxNode, layer nn.Layer) (*onnxValue, error) {
	if o.finish(); o.err != nil {
		return nil, o.err
	}
	var in []*onnxValue
	for _, operand := range o.operands {
		if _, _, err := r.layerOf(operand); err != nil {
			return nil, err
		}
		in = append(in, r.values[operand])
	}
	return r.layerBehind(o, layer, in)
}

// layerBehind adds a layer with parameters behind layers. A layer of sequences has their dimensions in the order of its operands.
func (r *onnxReader) layerBehind(o *onnxNode, layer nn.Layer, from []*onnxValue) (*onnxValue, error) {
	if o.err != nil {
		return nil, o.err
	}
	of := nn.Named{Layer: layer}
	var in [][]int
	for _, v := range from {
		if len(r.shapes[v.layer]) == 2 && !sameDims(v.lead(), from[0].lead()) {
			return nil, fmt.Errorf("its operands have samples and positions in different order")
		}
		of.Inputs, in = append(of.Inputs, v.layer), append(in, r.shapes[v.layer])
	}
	of.Name, of.StateName = r.newName(layer, o.params)
	if err := r.keep(&of, o.params); err != nil {
		return nil, err
	}
	v := r.add(of, in)
	if out := r.shapes[v.layer]; len(out) == 2 && len(in) > 0 && len(in[0]) == 2 && in[0][0] == out[0] {
		v.dims = append(slices.Clone(from[0].lead()), dimension(factor{featureAxis, out[1], 1}))
	}
	return v, nil
}

// add adds a layer with inputs of shapes.
func (r *onnxReader) add(of nn.Named, in [][]int) *onnxValue {
	if of.Name == "" {
		of.Name, of.StateName = r.newName(of.Layer, nil)
	}
	r.layers, r.last = append(r.layers, of), of.Name
	v := &onnxValue{layer: of.Name}
	if !slices.ContainsFunc(in, func(shape []int) bool { return shape == nil }) {
		if shape, err := of.Output(in); err == nil {
			r.shapes[of.Name], v.view = shape, r.samplesOf(shape)
		}
	}
	return v
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

// keep notes the values of the parameters of a layer, and which of them earlier layers have. A bias or a weight of one dimension is shared
// along with a matrix alone: before a training programs write the equal numbers of all normalisations once.
func (r *onnxReader) keep(of *nn.Named, params []onnxParam) error {
	_, isTable := of.Layer.(layers.Embedding)
	sharesMatrix := false
	for _, p := range params {
		name := cmp.Or(of.StateName, of.Name) + "." + p.kind
		if slices.Contains([]string{"float16", "bfloat16"}, p.t.Type) {
			r.widened[p.t.Type] = true
		}
		before, isRunning := r.trained[p.from], strings.HasPrefix(p.kind, "running")
		if before == nil {
			before = r.table(&p)
		}
		isMatrix := len(p.t.Shape) > 1
		if before != nil && !isRunning && (isMatrix || sharesMatrix) {
			if err := before.fits(&p, of.Name); err != nil {
				return err
			}
			sharesMatrix = sharesMatrix || isMatrix
			before.layers = append(before.layers, of.Name)
			of.Shares = append(of.Shares, before.param)
			continue // it has its values
		}
		if before != nil || r.kept[p.from] {
			r.apart[p.from.Name] = true
		}
		if isRunning {
			r.kept[p.from] = true
		} else if before == nil {
			r.trained[p.from] = &onnxUse{param: name, kind: p.kind, turned: p.turned, table: isTable, layers: []string{of.Name}}
		}
		r.weights[name] = p.t
		if p.name != name && strings.HasSuffix(p.name, "."+p.kind) {
			r.renamed = append(r.renamed, fmt.Sprintf("%s (%s)", p.name, name))
		}
	}
	return nil
}

// table is the table of an embedding with the numbers of the weight of a dense layer: programs turn a weight that both have, and write it twice.
func (r *onnxReader) table(p *onnxParam) *onnxUse {
	for from, use := range r.trained {
		if use.table && p.turned && slices.Equal(from.Shape, p.t.Shape) && slices.Equal(from.Floats, p.t.Floats) {
			return use
		}
	}
	return nil
}

// fits refuses a parameter of another kind than the earlier layer's.
func (u *onnxUse) fits(p *onnxParam, layer string) error {
	if u.kind == p.kind && (u.turned == p.turned || u.table) {
		return nil
	}
	how := map[bool]string{true: ", turned"}
	return fmt.Errorf("initializer %q is the %s of layer %s%s and the %s of layer %s%s, which dahl does not train as one parameter; write it twice, under two names",
		p.from.Name, u.kind, u.layers[0], how[u.turned], p.kind, layer, how[p.turned])
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
		all = append(all, "each of these is in several layers, each of which has its own copy: "+naming.FirstFew(apart))
	}
	return all
}
