package npz

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"dahl/dag"
	"dahl/naming"
)

// The header of an .npy array (NEP 1): the magic, a version, a length, then a
// Python literal such as
//
//	{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }
//
// padded by spaces and ended by a newline, so that the data begin at a multiple
// of 64 bytes.
const npyMagic = "\x93NUMPY"

// maxNPYHeader is far more than a shape needs.
const maxNPYHeader = 1 << 16

// maxNPYRank is numpy's limit.
const maxNPYRank = 32

var npyTypes = [...]struct {
	descr string
	dtype dag.DType
}{
	{"<f4", dag.Float32}, {"<f8", dag.Float64}, {"<i4", dag.Int32}, {"<i8", dag.Int64}, {"|u1", dag.Uint8},
}

func encodeNPYHeader(a *Array) []byte {
	descr := ""
	for _, t := range npyTypes {
		if t.dtype == a.Type {
			descr = t.descr
		}
	}
	shape := naming.JoinInts(a.Shape, ", ")
	if len(a.Shape) == 1 {
		shape += "," // a tuple of one
	}
	literal := fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': (%s), }", descr, shape)
	const fixed = len(npyMagic) + 4 // version and length
	pad := (64 - (fixed+len(literal)+1)%64) % 64
	literal += strings.Repeat(" ", pad) + "\n"
	header := append([]byte(npyMagic), 1, 0)
	header = binary.LittleEndian.AppendUint16(header, uint16(len(literal)))
	return append(header, literal...)
}

// decodeNPYHeader reads the header: an array of that type and shape, without data.
func decodeNPYHeader(r io.Reader) (Array, error) {
	h, err := ReadHeader(r)
	if err != nil {
		return Array{}, err
	}
	for _, t := range npyTypes {
		if t.descr == h.Descr {
			return Array{Type: t.dtype, Shape: h.Shape}, nil
		}
	}
	return Array{}, fmt.Errorf("element type '%.40s'; little-endian f4, f8, i4, i8 and u1 are read: convert with astype", h.Descr)
}

// Header is the beginning of an .npy file.
type Header struct {
	Descr string // the type of its elements, such as <f4
	Shape []int
	Bytes int64 // of the header itself
}

// ReadHeader reads the header of an .npy file of any type of elements.
func ReadHeader(r io.Reader) (Header, error) {
	start, err := ReadBytes(r, int64(len(npyMagic)+2))
	if err != nil {
		return Header{}, err
	}
	if string(start[:len(npyMagic)]) != npyMagic {
		return Header{}, errors.New("does not begin as an .npy array")
	}
	version := start[len(npyMagic)]
	if version != 1 && version != 2 {
		return Header{}, fmt.Errorf("version %d of the .npy format; versions 1 and 2 are read", version)
	}
	b, err := ReadBytes(r, 2*int64(version)) // the length, of 2 or 4 bytes
	if err != nil {
		return Header{}, err
	}
	begin := int64(len(start) + len(b))
	length := int64(binary.LittleEndian.Uint32(append(b, 0, 0)))
	if length > maxNPYHeader {
		return Header{}, fmt.Errorf("a header of %d bytes; the longest read is %d", length, maxNPYHeader)
	}
	literal, err := ReadBytes(r, length)
	if err != nil {
		return Header{}, err
	}
	h, err := parseNPYLiteral(string(literal))
	h.Bytes = begin + length
	return h, err
}

// parseNPYLiteral reads the dictionary. Its three keys may come in any order.
func parseNPYLiteral(text string) (Header, error) {
	var h Header
	body, ok := strings.CutPrefix(strings.TrimSpace(text), "{")
	if ok {
		body, ok = strings.CutSuffix(body, "}")
	}
	if !ok {
		return h, fmt.Errorf("header %.80q is no dictionary", text)
	}
	seen := map[string]bool{}
	for body = strings.TrimSpace(body); body != ""; {
		key, value, rest, err := cutNPYItem(body)
		if err != nil {
			return h, err
		}
		if seen[key] {
			return h, fmt.Errorf("header key %s is there twice", key)
		}
		seen[key] = true
		if err := h.setNPYItem(key, value); err != nil {
			return h, err
		}
		body = strings.TrimSpace(strings.TrimPrefix(rest, ","))
	}
	for _, key := range []string{"descr", "fortran_order", "shape"} {
		if !seen[key] {
			return h, fmt.Errorf("header has no %s", key)
		}
	}
	return h, nil
}

// cutNPYItem splits 'key': value off; the value is a tuple, a string or a word.
func cutNPYItem(body string) (key, value, rest string, err error) {
	key, rest, ok := strings.Cut(body, ":")
	value = strings.TrimSpace(rest)
	end := strings.IndexByte(value, ',')
	if strings.HasPrefix(value, "(") {
		end = strings.IndexByte(value, ')') + 1
		ok = ok && end > 0
	} else if end < 0 {
		end = len(value)
	}
	if !ok {
		return "", "", "", fmt.Errorf("header item %.80q is not understood", body)
	}
	key = strings.Trim(strings.TrimSpace(key), `'"`)
	return key, strings.TrimSpace(value[:end]), strings.TrimSpace(value[end:]), nil
}

func (h *Header) setNPYItem(key, value string) error {
	switch key {
	case "descr":
		h.Descr = strings.Trim(value, `'"`)
		return nil
	case "fortran_order":
		switch value {
		case "False":
			return nil
		case "True":
			return errors.New("is in Fortran order; save numpy.ascontiguousarray of it")
		}
		return fmt.Errorf("fortran_order is %.40q, not True or False", value)
	case "shape":
		return h.setNPYShape(value)
	}
	return fmt.Errorf("header key %.40q is unknown", key)
}

func (h *Header) setNPYShape(tuple string) error {
	inner := strings.TrimSuffix(strings.TrimPrefix(tuple, "("), ")")
	inner = strings.TrimSuffix(strings.TrimSpace(inner), ",")
	if len(inner)+2 > len(tuple) {
		return fmt.Errorf("shape %.80q is no tuple", tuple)
	}
	if inner == "" {
		return nil
	}
	words := strings.Split(inner, ",")
	if len(words) > maxNPYRank {
		return fmt.Errorf("rank %d; the largest is %d", len(words), maxNPYRank)
	}
	for _, word := range words {
		n, err := strconv.ParseInt(strings.TrimSpace(word), 10, 64)
		if err != nil || n < 0 {
			return fmt.Errorf("shape %.80q: %.40q is no extent", tuple, word)
		}
		h.Shape = append(h.Shape, int(n))
	}
	return nil
}
