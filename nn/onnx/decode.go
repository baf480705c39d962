package onnx

import (
	"cmp"
	"fmt"
	"math"

	"dahl/wire"
)

// Graph is the operators of a network, each behind the operators that it reads.
type Graph struct {
	Nodes   []Node
	Tensors map[string]*Tensor // weights and constants, by name
	Inputs  []Value            // weights may be among them
	Outputs []Value
	Opset   int // of the file that Encode writes; Decode leaves it out
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
	Floats []float64
	Ints   []int64
	Tensor *Tensor
}

// Tensor is constant numbers: floats, or integers. Attributes of other types are left out.
type Tensor struct {
	Name   string
	Type   string // of the elements in the file, as "float16"
	Shape  []int
	Floats []float64
	Ints   []int64
	Raw    []byte // the numbers as [Encode] writes them, little-endian; Decode leaves them out
}

// Value is an operand of the whole graph. An extent that the file leaves open is 0.
type Value struct {
	Name  string
	Type  string // of the elements, as of a Tensor
	Shape []int
}

// maxElems bounds the elements of a tensor, so that sizes cannot overflow.
const maxElems = 1 << 31

// Decode reads the graph of a file.
func Decode(file []byte) (*Graph, error) {
	var g *Graph
	err := wire.Fields(file, func(f wire.Field) (err error) {
		if f.ID == 7 && f.Packed && g == nil {
			g, err = graphOf(f.Bytes)
		} else if f.ID == 7 {
			err = fmt.Errorf("it holds two graphs")
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
	err := wire.Fields(message, func(f wire.Field) error {
		switch f.ID {
		case 1:
			n, err := nodeOf(f.Bytes)
			g.Nodes = append(g.Nodes, n)
			return err
		case 5:
			t, err := tensorOf(f.Bytes)
			if err == nil && g.Tensors[t.Name] != nil {
				err = fmt.Errorf("initializer %q is there twice", t.Name)
			}
			if err == nil {
				g.Tensors[t.Name] = t
			}
			return err
		case 11, 12:
			v, err := valueOf(f.Bytes)
			if f.ID == 11 {
				g.Inputs = append(g.Inputs, v)
			} else {
				g.Outputs = append(g.Outputs, v)
			}
			return err
		}
		return nil
	})
	if err == nil {
		err = g.checkNames()
	}
	return g, err
}

// checkNames refuses two results of one name: the file does not say which is meant.
func (g *Graph) checkNames() error {
	made, isInput := map[string]bool{}, map[string]bool{}
	for _, v := range g.Inputs {
		isInput[v.Name] = true
	}
	for _, n := range g.Nodes {
		for _, name := range n.Outputs {
			switch {
			case name == "": // an output that is left out
				continue
			case made[name]:
				return fmt.Errorf("operator %s (node %q): its output %q is that of an operator before it, too", n.Op, n.Name, name)
			case g.Tensors[name] != nil || isInput[name]:
				return fmt.Errorf("operator %s (node %q): its output %q is an input or an initializer, too", n.Op, n.Name, name)
			}
			made[name] = true
		}
	}
	return nil
}

func nodeOf(message []byte) (Node, error) {
	n := Node{Attributes: map[string]Attribute{}}
	err := wire.Fields(message, func(f wire.Field) error {
		switch f.ID {
		case 1:
			n.Inputs = append(n.Inputs, string(f.Bytes))
		case 2:
			n.Outputs = append(n.Outputs, string(f.Bytes))
		case 3:
			n.Name = string(f.Bytes)
		case 4:
			n.Op = string(f.Bytes)
		case 5:
			name, a, err := attributeOf(f.Bytes)
			if _, twice := n.Attributes[name]; twice && err == nil {
				err = fmt.Errorf("operator %s (node %q): attribute %s is there twice", n.Op, n.Name, name)
			}
			n.Attributes[name] = a
			return err
		case 7:
			if domain := string(f.Bytes); domain != "" && domain != "ai.onnx" {
				n.Op = domain + "." + n.Op
			}
		}
		return nil
	})
	return n, err
}

// Fields of an attribute that hold its value.
const (
	floatValue  = 2
	intValue    = 3
	textValue   = 4
	tensorValue = 5
	floatsValue = 7
	intsValue   = 8
)

// attributeFields are the fields of values by the type that an attribute says.
var attributeFields = map[uint64]uint64{1: floatValue, 2: intValue, 3: textValue, 4: tensorValue, 6: floatsValue, 7: intsValue}

// namedFields are the fields of the attributes that dahl reads. A value elsewhere would be taken for none.
var namedFields = map[string]uint64{
	"alpha": floatValue, "beta": floatValue, "epsilon": floatValue, "momentum": floatValue, "ratio": floatValue,
	"allowzero": intValue, "axis": intValue, "ceil_mode": intValue, "count_include_pad": intValue, "end": intValue, "group": intValue, "spatial": intValue,
	"is_causal": intValue, "keepdims": intValue, "noop_with_empty_axes": intValue, "kv_num_heads": intValue, "num_outputs": intValue, "q_num_heads": intValue, "qk_matmul_output_mode": intValue, "softmax_precision": intValue, "stash_type": intValue, "upper": intValue,
	"scale": floatValue, "softcap": floatValue, "perm": intsValue, "split": intsValue,
	"start": intValue, "storage_order": intValue, "to": intValue, "training_mode": intValue, "transA": intValue, "transB": intValue,
	"approximate": textValue, "auto_pad": textValue, "value": tensorValue,
	"axes": intsValue, "dilations": intsValue, "ends": intsValue, "kernel_shape": intsValue, "pads": intsValue, "starts": intsValue, "strides": intsValue,
	"value_float": floatValue, "value_floats": floatsValue, "value_int": intValue, "value_ints": intsValue,
}

func attributeOf(message []byte) (name string, a Attribute, err error) {
	kind, has := uint64(0), uint64(0) // has: a field with a value
	err = wire.Fields(message, func(f wire.Field) (err error) {
		switch f.ID {
		case 1:
			name = string(f.Bytes)
		case floatValue:
			a.Float = float64(math.Float32frombits(uint32(f.Number)))
		case intValue:
			a.Int = int64(f.Number)
		case textValue:
			a.Text = string(f.Bytes)
		case tensorValue:
			a.Tensor, err = tensorOf(f.Bytes)
		case floatsValue:
			f.Fixed(4, func(bits uint64) { a.Floats = append(a.Floats, float64(math.Float32frombits(uint32(bits)))) })
		case intsValue:
			var more []int64
			more, err = f.Integers()
			a.Ints = append(a.Ints, more...)
		case 20:
			kind = f.Number
			return nil
		default:
			return nil
		}
		if f.ID > 1 {
			if has != 0 && has != f.ID {
				return fmt.Errorf("attribute %s has values of two types", name)
			}
			has = f.ID
		}
		return err
	})
	if field := attributeFields[kind]; err == nil && field != 0 && has != 0 && field != has {
		err = fmt.Errorf("attribute %s has a value of another type than it says", name)
	}
	if want, known := namedFields[name]; err == nil && known && cmp.Or(has, attributeFields[kind]) != want {
		err = fmt.Errorf("attribute %s has no value of the type that ONNX gives it", name)
	}
	return name, a, err
}

func valueOf(message []byte) (v Value, err error) {
	// Type and shape are nested: value 2 → type 1 → tensor 1 → elements, tensor 2 → shape 1 → extent.
	path := []uint64{2, 1, 2}
	var walk func(message []byte, depth int) error
	walk = func(message []byte, depth int) error {
		return wire.Fields(message, func(f wire.Field) error {
			switch {
			case depth == 0 && f.ID == 1:
				v.Name = string(f.Bytes)
			case depth == 2 && f.ID == 1:
				v.Type = typeName(f.Number)
			case depth < len(path) && f.ID == path[depth]:
				return walk(f.Bytes, depth+1)
			case depth == len(path) && f.ID == 1:
				extent := 0
				err := wire.Fields(f.Bytes, func(f wire.Field) error {
					if f.ID == 1 && f.Number <= maxElems {
						extent = int(f.Number)
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
