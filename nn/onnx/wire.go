package onnx

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// An ONNX file is one message in the wire format of protocol buffers: fields, each with its number
// and one of four encodings of its value. The few that are read need no more of it.

var errShort = errors.New("the file ends within a field")

// field is a field of a message. Numbers of all encodings are in number, texts and messages in
// bytes.
type field struct {
	id     uint64
	number uint64
	bytes  []byte
	packed bool // bytes is the value
}

// fields visits the fields of a message.
func fields(message []byte, visit func(f field) error) error {
	for len(message) > 0 {
		key, n := binary.Uvarint(message)
		if n <= 0 {
			return errShort
		}
		message = message[n:]
		f, size := field{id: key >> 3}, 0
		switch key & 7 {
		case 0:
			f.number, size = binary.Uvarint(message)
		case 1:
			if size = 8; len(message) >= size {
				f.number = binary.LittleEndian.Uint64(message)
			}
		case 2:
			length, n := binary.Uvarint(message)
			if n <= 0 || length > uint64(len(message)-n) {
				return errShort
			}
			f.bytes, f.packed, size = message[n:n+int(length)], true, n+int(length)
		case 5:
			if size = 4; len(message) >= size {
				f.number = uint64(binary.LittleEndian.Uint32(message))
			}
		default:
			return fmt.Errorf("a field has the encoding %d; this is not an ONNX file", key&7)
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

// fixed visits the bits of numbers of a fixed size in a repeated field. The field holds one number, or all of them packed. A rest that is
// no number is left out.
func (f *field) fixed(size int, visit func(bits uint64)) {
	if !f.packed {
		visit(f.number)
		return
	}
	for raw := f.bytes; len(raw) >= size; raw = raw[size:] {
		var word [8]byte
		copy(word[:], raw[:size])
		visit(binary.LittleEndian.Uint64(word[:]))
	}
}

// integers is the numbers of a repeated field, of which this is one or all.
func (f *field) integers() (all []int64, err error) {
	if !f.packed {
		return []int64{int64(f.number)}, nil
	}
	for rest := f.bytes; len(rest) > 0; {
		v, n := binary.Uvarint(rest)
		if n <= 0 {
			return nil, errShort
		}
		all, rest = append(all, int64(v)), rest[n:]
	}
	return all, nil
}
