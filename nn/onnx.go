package nn

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"dahl/nn/onnx"
)

// maxONNXBytes bounds a file, such as a device without end.
const maxONNXBytes = 1 << 31

// loadONNX reads a network with its weights from an ONNX file.
func loadONNX(path string) (*Model, error) {
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
// PyTorch exports them, and other layers have automatic names. Whatever else a file holds is refused in
// one line, which names the operator. The file's name is for errors.
func ParseONNX(src []byte, file string) (*Model, error) {
	g, err := onnx.Decode(src)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return modelOfONNX(g, file)
}

func modelOfONNX(g *onnx.Graph, file string) (*Model, error) {
	r := &onnxReader{graph: g, layerOf: map[string]string{}, taken: map[string]bool{}, weights: map[string]*onnx.Tensor{}, features: map[string]int{}}
	input, err := r.input()
	for i := 0; err == nil && i < len(g.Nodes); i++ {
		if err = r.node(&g.Nodes[i]); err != nil {
			err = fmt.Errorf("operator %s (node %q): %w", g.Nodes[i].Op, g.Nodes[i].Name, err)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if len(g.Outputs) != 1 || r.layerOf[g.Outputs[0].Name] != r.last {
		return nil, fmt.Errorf("%s: the output is not that of the last operator alone", file)
	}
	name := strings.TrimSuffix(file[strings.LastIndexAny(file, `/\`)+1:], ".onnx")
	m, err := New(name, input, r.layers...)
	if err == nil {
		err = cmp.Or(m.setWeights(r.weights), r.checkFeatures(m))
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	m.OutputsAt = file
	return m, nil
}

// setWeights gives parameters the values of a file.
func (m *Model) setWeights(weights map[string]*onnx.Tensor) error {
	for i := range m.Stages {
		for _, p := range m.Stages[i].state() {
			t := weights[p.Name]
			if p.Counts && t == nil {
				continue // no part of the format
			}
			var shape []int
			if t != nil {
				shape = t.Shape
			}
			if !slices.Equal(shape, p.Shape) {
				return fmt.Errorf("parameter %q is to have shape %v, and the file has %v", p.Name, p.Shape, shape)
			}
			p.values = t.Floats
		}
	}
	return nil
}

// checkFeatures compares the features that the file gives a flatten with those that it has.
func (r *onnxReader) checkFeatures(m *Model) error {
	for i := range m.Stages {
		s := &m.Stages[i]
		if want, given := r.features[s.Name]; given && want != s.Out[0] {
			return fmt.Errorf("layer %q has %d features and the file %d; dahl keeps the batch as it is", s.Name, s.Out[0], want)
		}
	}
	return nil
}

// onnxReader is a file while its operators become layers.
type onnxReader struct {
	graph   *onnx.Graph
	layers  []Layer
	last    string                  // name of the last layer
	layerOf map[string]string       // by name of an operand: the layer that makes it, or "input"
	taken   map[string]bool         // names of layers
	weights map[string]*onnx.Tensor // by name of the parameter

	features map[string]int // of a flatten, where the file says them
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
		shape, r.layerOf[v.Name] = v.Shape[1:], inputName
	}
	if shape == nil {
		return nil, fmt.Errorf("it has no input")
	}
	return shape, nil
}

// node makes a layer of an operator.
func (r *onnxReader) node(n *onnx.Node) error {
	layerOf, known := onnxOperators()[n.Op]
	if !known {
		return fmt.Errorf("dahl has no layer for it; it reads %s", strings.Join(slices.Sorted(maps.Keys(onnxOperators())), ", "))
	}
	if n.Op == "BatchNormalization" || n.Op == "Dropout" {
		n.Outputs = n.Outputs[:min(len(n.Outputs), 1)] // others are statistics and a mask, which no layer reads
	}
	if len(n.Inputs) == 0 && n.Op != "Constant" || len(n.Outputs) != 1 {
		return fmt.Errorf("%d operands and %d results; want one result", len(n.Inputs), len(n.Outputs))
	}
	o := onnxNode{Node: n, reader: r, operands: n.Inputs, params: map[string]*onnx.Tensor{}}
	layer := layerOf(&o)
	for name := range maps.Keys(n.Attributes) {
		o.fail("attribute %s: dahl does not know it", name)
	}
	if o.err != nil || layer == nil {
		return o.err
	}
	name := Named{Layer: layer, Name: r.newName(layer, o.weight)}
	for _, operand := range o.operands {
		from, made := r.layerOf[operand]
		if !made {
			return fmt.Errorf("operand %q is not the output of an operator before it", operand)
		}
		name.Inputs = append(name.Inputs, from)
	}
	for suffix, t := range o.params {
		r.weights[name.Name+"."+suffix] = t
	}
	if o.features > 0 {
		r.features[name.Name] = o.features
	}
	r.layers, r.last, r.layerOf[n.Outputs[0]] = append(r.layers, name), name.Name, name.Name
	return nil
}

// newName is the name of a layer: that of its weight, or one that no weight has.
func (r *onnxReader) newName(layer Layer, weight string) string {
	name, ok := strings.CutSuffix(weight, ".weight")
	if !ok || r.taken[name] || checkName(name) != nil {
		kind, err := LayerByName(layer.Kind())
		if err != nil {
			panic("nn: " + err.Error())
		}
		for i := 1; ok || i == 1; i++ {
			name = fmt.Sprintf("%s%d", kind.Prefix, i)
			_, ok = r.graph.Tensors[name+".weight"]
			ok = ok || r.taken[name]
		}
	}
	r.taken[name] = true
	return name
}
