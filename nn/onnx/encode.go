package onnx

import (
	"encoding/binary"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
)

// Versions of the operators in files that Encode writes: the first one with Gelu, and the first one with attention.
const (
	GeluOpset      = 20
	AttentionOpset = 23
)

// irVersions are the versions of the format that they came with.
var irVersions = map[int]uint64{GeluOpset: 9, AttentionOpset: 11}

// message is a message in pieces, so that numbers of tensors are written from where they lie.
type message [][]byte

func (m message) size() (n int) {
	for _, piece := range m {
		n += len(piece)
	}
	return n
}

// wholeField is a field with a whole number.
func wholeField(id, v uint64) message {
	return message{binary.AppendUvarint(binary.AppendUvarint(nil, id<<3), v)}
}

// messageField is a field with a message.
func messageField(id uint64, parts ...message) message {
	inner := slices.Concat(parts...)
	return slices.Concat(message{binary.AppendUvarint(binary.AppendUvarint(nil, id<<3|2), uint64(inner.size()))}, inner)
}

// textField is a field with a text.
func textField(id uint64, s string) message { return messageField(id, message{[]byte(s)}) }

// Encode writes a graph as a file. Its nodes have attributes that Decode knows. Its tensors have Raw numbers, and are written in the order of
// their names. An extent of 0 is written as the number of samples. Its Opset is GeluOpset or AttentionOpset.
func Encode(out io.Writer, g *Graph, name string) error {
	var graph []message
	for i := range g.Nodes {
		graph = append(graph, g.Nodes[i].encode())
	}
	graph = append(graph, textField(2, name))
	for _, tensor := range slices.Sorted(maps.Keys(g.Tensors)) {
		graph = append(graph, g.Tensors[tensor].encode())
	}
	for _, v := range g.Inputs {
		graph = append(graph, v.encode(11))
	}
	for _, v := range g.Outputs {
		graph = append(graph, v.encode(12))
	}
	for _, piece := range slices.Concat(wholeField(1, irVersions[g.Opset]), textField(2, "dahl"), messageField(7, graph...), messageField(8, textField(1, ""), wholeField(2, uint64(g.Opset)))) {
		if _, err := out.Write(piece); err != nil {
			return fmt.Errorf("write ONNX: %w", err)
		}
	}
	return nil
}

func (n *Node) encode() message {
	var parts []message
	for _, name := range n.Inputs {
		parts = append(parts, textField(1, name))
	}
	for _, name := range n.Outputs {
		parts = append(parts, textField(2, name))
	}
	parts = append(parts, textField(3, n.Name), textField(4, n.Op))
	for _, name := range slices.Sorted(maps.Keys(n.Attributes)) {
		parts = append(parts, n.Attributes[name].encode(name))
	}
	return messageField(1, parts...)
}

// encode writes an attribute in the field that its name has.
func (a Attribute) encode(name string) message {
	field := namedFields[name]
	parts := []message{textField(1, name)}
	switch field {
	case floatValue:
		parts = append(parts, message{binary.LittleEndian.AppendUint32([]byte{floatValue<<3 | 5}, math.Float32bits(float32(a.Float)))})
	case intValue:
		parts = append(parts, wholeField(field, uint64(a.Int)))
	case textValue:
		parts = append(parts, textField(field, a.Text))
	case intsValue:
		for _, v := range a.Ints {
			parts = append(parts, wholeField(field, uint64(v)))
		}
	default:
		panic("onnx: no operator that is written has the attribute " + name)
	}
	for kind, of := range attributeFields {
		if of == field {
			parts = append(parts, wholeField(20, kind))
		}
	}
	return messageField(5, parts...)
}

func (t *Tensor) encode() message {
	var parts []message
	for _, extent := range t.Shape {
		parts = append(parts, wholeField(1, uint64(extent)))
	}
	return messageField(5, append(parts, wholeField(2, numberOf(t.Type)), textField(8, t.Name), messageField(rawData, message{t.Raw}))...)
}

func (v Value) encode(id uint64) message {
	var extents []message
	for _, extent := range v.Shape {
		if extent == 0 {
			extents = append(extents, messageField(1, textField(2, "N")))
		} else {
			extents = append(extents, messageField(1, wholeField(1, uint64(extent))))
		}
	}
	return messageField(id, textField(1, v.Name), messageField(2, messageField(1, wholeField(1, numberOf(v.Type)), messageField(2, extents...))))
}

// numberOf is the number of a type in a file.
func numberOf(name string) uint64 {
	for number, e := range elementTypes {
		if e.name == name {
			return number
		}
	}
	panic("onnx: no type " + name)
}
