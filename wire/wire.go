// Package wire reads messages in the wire format of protocol buffers without the code of a schema: field by field, each with its number in
// the schema and its value. ONNX files and Chakra's traces are such messages. The code of protobuf for Go opens a file before main
// begins, which ends with a trace where a process may open few.
package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
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
		key, n := binary.Uvarint(message)
		if n <= 0 {
			return errShort
		}
		message = message[n:]
		f, size := Field{ID: key >> 3}, 0
		switch key & 7 {
		case 0:
			f.Number, size = binary.Uvarint(message)
		case 1:
			if size = 8; len(message) >= size {
				f.Number = binary.LittleEndian.Uint64(message)
			}
		case 2:
			f.Bytes, size = lengthed(message)
			f.Packed = true
		case 5:
			if size = 4; len(message) >= size {
				f.Number = uint64(binary.LittleEndian.Uint32(message))
			}
		default:
			return fmt.Errorf("a field has the encoding %d, which this format does not use", key&7)
		}
		if size <= 0 || size > len(message) {
			return errShort
		}
		message = message[size:]
		if err := visit(f); err != nil {
			return err
		}
	}
	return nil
}

// Messages visits messages in a row, each behind its length.
func Messages(file []byte, visit func(message []byte) error) error {
	for len(file) > 0 {
		message, size := lengthed(file)
		if size <= 0 {
			return errShort
		}
		if err := visit(message); err != nil {
			return err
		}
		file = file[size:]
	}
	return nil
}

// lengthed reads bytes behind their length, and returns how many bytes both take; 0 means that some are missing.
func lengthed(raw []byte) (bytes []byte, size int) {
	length, n := binary.Uvarint(raw)
	if n <= 0 || length > uint64(len(raw)-n) {
		return nil, 0
	}
	size = n + int(length)
	return raw[n:size], size
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
		v, n := binary.Uvarint(rest)
		if n <= 0 {
			return nil, errShort
		}
		all, rest = append(all, int64(v)), rest[n:]
	}
	return all, nil
}
