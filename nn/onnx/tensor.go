package onnx

import (
	"cmp"
	"fmt"
	"math"

	"dahl/wire"
)

// elementType is how numbers of a type lie in a file: in the field of their own, or as bytes in raw_data.
type elementType struct {
	name  string
	field uint64
	size  int                     // bytes in raw_data
	float func(uint64) float64    // from the bits of a number
	whole func(bits uint64) int64 // likewise. Nil means they are floats.
}

// Fields of a tensor that hold numbers.
const (
	floatData  = 4
	int32Data  = 5
	stringData = 6
	int64Data  = 7
	rawData    = 9
	doubleData = 10
	uint64Data = 11
)

var fieldNames = map[uint64]string{
	floatData: "float_data", int32Data: "int32_data", stringData: "string_data", int64Data: "int64_data",
	rawData: "raw_data", doubleData: "double_data", uint64Data: "uint64_data",
}

// elementTypes are those whose numbers are read, by their number in the file.
var elementTypes = map[uint64]elementType{
	1:  {name: "float32", field: floatData, size: 4, float: func(b uint64) float64 { return float64(math.Float32frombits(uint32(b))) }},
	6:  {name: "int32", field: int32Data, size: 4, whole: func(b uint64) int64 { return int64(int32(b)) }},
	7:  {name: "int64", field: int64Data, size: 8, whole: func(b uint64) int64 { return int64(b) }},
	9:  {name: "bool", field: int32Data, size: 1, whole: func(b uint64) int64 { return int64(b & 1) }},
	10: {name: "float16", field: int32Data, size: 2, float: func(b uint64) float64 { return float16(uint16(b)) }},
	11: {name: "float64", field: doubleData, size: 8, float: math.Float64frombits},
	16: {name: "bfloat16", field: int32Data, size: 2, float: func(b uint64) float64 { return float64(math.Float32frombits(uint32(b) << 16)) }},
}

// otherTypes are the names of those whose numbers are left out.
var otherTypes = map[uint64]string{2: "uint8", 3: "int8", 4: "uint16", 5: "int16", 8: "string", 12: "uint32", 13: "uint64", 14: "complex64", 15: "complex128"}

// float16 is a number of 1 sign bit, 5 bits of exponent and 10 of fraction (IEEE 754 binary16).
func float16(bits uint16) float64 {
	sign := 1 - 2*float64(bits>>15)
	exponent, fraction := int(bits>>10&31), float64(bits&1023)
	switch {
	case exponent == 0: // no leading 1
		return sign * math.Ldexp(fraction, -24)
	case exponent == 31 && fraction > 0:
		return math.NaN()
	case exponent == 31:
		return sign * math.Inf(1)
	}
	return sign * math.Ldexp(1024+fraction, exponent-25)
}

// tensorOf reads a tensor. Its numbers lie in one field, which follows from their type, and are as many as its shape says.
func tensorOf(message []byte) (*Tensor, error) {
	t, kind, external := &Tensor{}, uint64(0), false
	elems := int64(1)
	data := map[uint64][]wire.Field{} // numbers, by field
	err := wire.Fields(message, func(f wire.Field) error {
		switch f.ID {
		case 1:
			shape, err := f.Integers()
			for _, e := range shape {
				if e < 0 || e > 0 && elems > maxElems/e {
					return fmt.Errorf("tensor %q has an extent of %d", t.Name, e)
				}
				elems *= e
				t.Shape = append(t.Shape, int(e))
			}
			return err
		case 2:
			kind = f.Number
		case 8:
			t.Name = string(f.Bytes)
		case 13, 14: // where it lies, and 1 for another file
			external = external || f.ID == 13 || f.Number == 1
		case floatData, int32Data, stringData, int64Data, rawData, doubleData, uint64Data:
			if !f.Packed || len(f.Bytes) > 0 {
				data[f.ID] = append(data[f.ID], f)
			}
		}
		return nil
	})
	if err == nil && external {
		err = fmt.Errorf("tensor %q is in another file; write all weights into the .onnx file, in PyTorch by external_data=False", t.Name)
	}
	if err != nil {
		return nil, err
	}
	t.Type = typeName(kind)
	if e, known := elementTypes[kind]; known {
		return t, t.readFields(&e, elems, data)
	}
	return t, nil
}

// typeName is the name of a type by its number in a file.
func typeName(number uint64) string {
	if e, known := elementTypes[number]; known {
		return e.name
	}
	return cmp.Or(otherTypes[number], fmt.Sprint("number ", number))
}

// readFields takes the numbers of a tensor out of the fields that hold any.
func (t *Tensor) readFields(e *elementType, elems int64, data map[uint64][]wire.Field) error {
	for _, id := range []uint64{floatData, int32Data, stringData, int64Data, doubleData, uint64Data} {
		switch {
		case data[id] == nil:
		case id != e.field:
			return fmt.Errorf("tensor %q is of type %s and has numbers in %s; write them into %s or raw_data", t.Name, e.name, fieldNames[id], fieldNames[e.field])
		case data[rawData] != nil:
			return fmt.Errorf("tensor %q has numbers in %s and in raw_data; write them once", t.Name, fieldNames[id])
		}
	}
	add := func(bits uint64) {
		if e.whole != nil {
			t.Ints = append(t.Ints, e.whole(bits))
		} else {
			t.Floats = append(t.Floats, e.float(bits))
		}
	}
	for _, f := range data[e.field] {
		switch e.field {
		case floatData:
			f.Fixed(4, add)
		case doubleData:
			f.Fixed(8, add)
		default:
			numbers, err := f.Integers()
			if err != nil {
				return err
			}
			for _, v := range numbers {
				add(uint64(v))
			}
		}
	}
	if raw := data[rawData]; raw != nil {
		last := raw[len(raw)-1] // as protocol buffers have it
		if int64(len(last.Bytes)) != elems*int64(e.size) {
			return fmt.Errorf("tensor %q of shape %v and type %s has %d bytes in raw_data; want %d", t.Name, t.Shape, e.name, len(last.Bytes), elems*int64(e.size))
		}
		last.Fixed(e.size, add)
	}
	if n := int64(len(t.Floats) + len(t.Ints)); n != elems {
		return fmt.Errorf("tensor %q of shape %v has %d elements", t.Name, t.Shape, n)
	}
	return nil
}
