package onnx

import (
	"encoding/binary"
	"fmt"
	"math"
)

// Graph is the operators of a network in an order in which each one follows those that it reads.
type Graph struct {
	Nodes   []Node
	Tensors map[string]*Tensor // weights and constants, by name
	Inputs  []Value            // weights may be among them
	Outputs []Value
}

// Node is one operator, its operands by name.
type Node struct {
	Name, Op        string
	Inputs, Outputs []string
	Attributes      map[string]Attribute
}

// Attribute is a setting of an operator, in the field of its type.
type Attribute struct {
	Float  float64
	Int    int64
	Text   string
	Ints   []int64
	Tensor *Tensor
}

// Tensor is constant numbers: floats of 4 or 8 bytes, or integers of 8. Others are left out.
type Tensor struct {
	Name   string
	Shape  []int
	Floats []float64
	Ints   []int64
}

// Value is an operand of the whole graph. An extent that the file leaves open is 0.
type Value struct {
	Name  string
	Shape []int
}

// Element types of tensors in the file.
const (
	typeFloat  = 1
	typeInt64  = 7
	typeDouble = 11
)

// maxElems bounds the elements of a tensor, so that sizes cannot overflow.
const maxElems = 1 << 31

// Decode reads the graph of a file.
func Decode(file []byte) (*Graph, error) {
	var g *Graph
	err := fields(file, func(f field) (err error) {
		if f.id == 7 && f.packed {
			g, err = graphOf(f.bytes)
		}
		return err
	})
	if err == nil && g == nil {
		err = fmt.Errorf("it holds no graph; this is not an ONNX file")
	}
	return g, err
}

func graphOf(message []byte) (*Graph, error) {
	g := &Graph{Tensors: map[string]*Tensor{}}
	err := fields(message, func(f field) error {
		switch f.id {
		case 1:
			n, err := nodeOf(f.bytes)
			g.Nodes = append(g.Nodes, n)
			return err
		case 5:
			t, err := tensorOf(f.bytes)
			if err == nil {
				g.Tensors[t.Name] = t
			}
			return err
		case 11, 12:
			v, err := valueOf(f.bytes)
			if f.id == 11 {
				g.Inputs = append(g.Inputs, v)
			} else {
				g.Outputs = append(g.Outputs, v)
			}
			return err
		}
		return nil
	})
	return g, err
}

func nodeOf(message []byte) (Node, error) {
	n := Node{Attributes: map[string]Attribute{}}
	err := fields(message, func(f field) error {
		switch f.id {
		case 1:
			n.Inputs = append(n.Inputs, string(f.bytes))
		case 2:
			n.Outputs = append(n.Outputs, string(f.bytes))
		case 3:
			n.Name = string(f.bytes)
		case 4:
			n.Op = string(f.bytes)
		case 5:
			name, a, err := attributeOf(f.bytes)
			n.Attributes[name] = a
			return err
		case 7:
			if domain := string(f.bytes); domain != "" && domain != "ai.onnx" {
				n.Op = domain + "." + n.Op
			}
		}
		return nil
	})
	return n, err
}

func attributeOf(message []byte) (name string, a Attribute, err error) {
	err = fields(message, func(f field) (err error) {
		switch f.id {
		case 1:
			name = string(f.bytes)
		case 2:
			a.Float = float64(math.Float32frombits(uint32(f.number)))
		case 3:
			a.Int = int64(f.number)
		case 4:
			a.Text = string(f.bytes)
		case 5:
			a.Tensor, err = tensorOf(f.bytes)
		case 8:
			var more []int64
			more, err = f.integers()
			a.Ints = append(a.Ints, more...)
		}
		return err
	})
	return name, a, err
}

func valueOf(message []byte) (v Value, err error) {
	// The shape is nested: value 2 → type 1 → tensor 2 → shape 1 → extent.
	path := []uint64{2, 1, 2}
	var walk func(message []byte, depth int) error
	walk = func(message []byte, depth int) error {
		return fields(message, func(f field) error {
			switch {
			case depth == 0 && f.id == 1:
				v.Name = string(f.bytes)
			case depth < len(path) && f.id == path[depth]:
				return walk(f.bytes, depth+1)
			case depth == len(path) && f.id == 1:
				extent := 0
				err := fields(f.bytes, func(f field) error {
					if f.id == 1 && f.number <= maxElems {
						extent = int(f.number)
					}
					return nil
				})
				v.Shape = append(v.Shape, extent)
				return err
			}
			return nil
		})
	}
	return v, walk(message, 0)
}

func tensorOf(message []byte) (*Tensor, error) {
	t, kind, external := &Tensor{}, uint64(0), false
	var raw []byte
	elems := int64(1)
	err := fields(message, func(f field) error {
		switch f.id {
		case 1:
			shape, err := f.integers()
			for _, e := range shape {
				if e < 0 || e > 0 && elems > maxElems/e {
					return fmt.Errorf("tensor %q has an extent of %d", t.Name, e)
				}
				elems *= e
				t.Shape = append(t.Shape, int(e))
			}
			return err
		case 2:
			kind = f.number
		case 4:
			t.Floats = append(t.Floats, floatsOf(f.bytes, 4)...)
			if !f.packed {
				t.Floats = append(t.Floats, float64(math.Float32frombits(uint32(f.number))))
			}
		case 7:
			more, err := f.integers()
			t.Ints = append(t.Ints, more...)
			return err
		case 8:
			t.Name = string(f.bytes)
		case 9:
			raw = f.bytes
		case 10:
			t.Floats = append(t.Floats, floatsOf(f.bytes, 8)...)
			if !f.packed {
				t.Floats = append(t.Floats, math.Float64frombits(f.number))
			}
		case 13:
			external = true
		}
		return nil
	})
	switch {
	case err != nil:
		return nil, err
	case external:
		return nil, fmt.Errorf("tensor %q is in another file; write all weights into the .onnx file, in PyTorch by external_data=False", t.Name)
	case raw != nil && kind == typeFloat:
		t.Floats = floatsOf(raw, 4)
	case raw != nil && kind == typeDouble:
		t.Floats = floatsOf(raw, 8)
	case raw != nil && kind == typeInt64:
		for ; len(raw) >= 8; raw = raw[8:] {
			t.Ints = append(t.Ints, int64(binary.LittleEndian.Uint64(raw)))
		}
	}
	if kind != typeFloat && kind != typeDouble && kind != typeInt64 {
		t.Floats, t.Ints = nil, nil
	} else if n := int64(len(t.Floats) + len(t.Ints)); n != elems {
		return nil, fmt.Errorf("tensor %q of shape %v has %d elements", t.Name, t.Shape, n)
	}
	return t, nil
}

// floatsOf is numbers of 4 or 8 bytes.
func floatsOf(raw []byte, size int) (values []float64) {
	for ; len(raw) >= size; raw = raw[size:] {
		if size == 4 {
			values = append(values, float64(math.Float32frombits(binary.LittleEndian.Uint32(raw))))
		} else {
			values = append(values, math.Float64frombits(binary.LittleEndian.Uint64(raw)))
		}
	}
	return values
}
