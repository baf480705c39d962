// Package wire reads messages in the wire format of protocol buffers without the code of a schema: field by field, each with its number in
// the schema and its value. ONNX files and Chakra's traces are such messages.
package wire

import (
	"encoding/binary"
	"errors"
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
)

var errShort = errors.New("the file ends within a field")

// Field is a field of a message. Numbers of all encodings are in Number, texts and messages in
// Bytes.
type Field struct {
	ID     uint64
	Number uint64
	Bytes  []byte
	Packed bool // Bytes is the value
}

// Fields visits the fields of a message. Groups, which ended with version 2 of the format, are refused.
func Fields(message []byte, visit func(f Field) error) error {
	for len(message) > 0 {
		id, encoding, n := protowire.ConsumeTag(message)
		if n < 0 {
			return errShort
		}
		message = message[n:]
		f := Field{ID: uint64(id)}
		switch encoding {
		case protowire.VarintType:
			f.Number, n = protowire.ConsumeVarint(message)
		case protowire.Fixed64Type:
			f.Number, n = protowire.ConsumeFixed64(message)
		case protowire.BytesType:
			f.Bytes, n = protowire.ConsumeBytes(message)
			f.Packed = true
		case protowire.Fixed32Type:
			var word uint32
			word, n = protowire.ConsumeFixed32(message)
			f.Number = uint64(word)
		default:
			return fmt.Errorf("a field has the encoding %d, which this format does not use", encoding)
		}
		if n < 0 {
			return errShort
		}
		message = message[n:]
		if err := visit(f); err != nil {
			return err
		}
	}
	return nil
}

// Messages visits messages in a row, each behind its length.
func Messages(file []byte, visit func(message []byte) error) error {
	for len(file) > 0 {
		message, n := protowire.ConsumeBytes(file)
		if n < 0 {
			return errShort
		}
		if err := visit(message); err != nil {
			return err
		}
		file = file[n:]
	}
	return nil
}

// Fixed visits the bits of numbers of a fixed size in a repeated field. The field holds one number, or all of them packed. A rest that is
// no number is left out.
func (f *Field) Fixed(size int, visit func(bits uint64)) {
	if !f.Packed {
		visit(f.Number)
		return
	}
	for raw := f.Bytes; len(raw) >= size; raw = raw[size:] {
		var word [8]byte
		copy(word[:], raw[:size])
		visit(binary.LittleEndian.Uint64(word[:]))
	}
}

// Integers is the numbers of a repeated field, of which this is one or all.
func (f *Field) Integers() (all []int64, err error) {
	if !f.Packed {
		return []int64{int64(f.Number)}, nil
	}
	for rest := f.Bytes; len(rest) > 0; {
		v, n := protowire.ConsumeVarint(rest)
		if n < 0 {
			return nil, errShort
		}
		all, rest = append(all, int64(v)), rest[n:]
	}
	return all, nil
}
