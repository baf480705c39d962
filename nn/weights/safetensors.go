package weights

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"dahl/dag"
	"dahl/naming"
	"dahl/nn/npz"
)

// A file of safetensors is the length of its header in 8 bytes, little-endian, the header, and the numbers of all tensors. The header
// is JSON, an object with the type, the shape and the place of each tensor by its name:
//
//	{"__metadata__":{"format":"pt"},"fc1.bias":{"dtype":"F32","shape":[10],"data_offsets":[0,40]}}
//
// Places count from the end of the header. They follow each other without gaps, and fill the file.
const (
	metadataKey     = "__metadata__"
	mostHeaderBytes = 100_000_000 // as in Hugging Face's own reader
	headerAlignment = 8
	mostTensorRank  = 32 // as of an .npz file
	headerFormat    = "pt"
)

// tensorType is a type of elements: its name in the header, and what it is in memory. One with a function has 16 bits in
// the file.
type tensorType struct {
	name  string
	dtype dag.DType
	widen func(uint16) float32
}

var tensorTypes = [...]tensorType{
	{"F64", dag.Float64, nil}, {"F32", dag.Float32, nil}, {"I64", dag.Int64, nil}, {"I32", dag.Int32, nil}, {"U8", dag.Uint8, nil},
	{"F16", dag.Float32, fromHalf}, {"BF16", dag.Float32, fromBfloat},
}

// tensor is an entry of the header.
type tensor struct {
	DType string   `json:"dtype"`
	Shape []int    `json:"shape"`
	Place [2]int64 `json:"data_offsets"`

	name string
}

// fromBfloat is the number of a bfloat16, the upper half of a float32.
func fromBfloat(b uint16) float32 { return math.Float32frombits(uint32(b) << 16) }

// fromHalf is the number of a float16 of IEEE 754: a sign, 5 bits of exponent and 10 of fraction.
func fromHalf(b uint16) float32 {
	sign, exponent, fraction := uint32(b>>15)<<31, uint32(b>>10)&0x1f, uint32(b)&0x3ff
	switch exponent {
	case 0: // a multiple of 2^-24
		return math.Float32frombits(sign | math.Float32bits(float32(fraction)*0x1p-24))
	case 0x1f: // infinite or NaN
		return math.Float32frombits(sign | 0xff<<23 | fraction<<13)
	}
	return math.Float32frombits(sign | (exponent+127-15)<<23 | fraction<<13)
}

func decodeSafetensors(r io.ReaderAt, size int64, check func(*npz.Array) error) ([]npz.Array, error) {
	all, begin, err := readHeader(r, size)
	if err != nil {
		return nil, fmt.Errorf("no safetensors file: %w", err)
	}
	if err := checkPlaces(all, size-begin); err != nil {
		return nil, err
	}
	var arrays []npz.Array
	for i := range all {
		a, err := all[i].read(r, begin, check)
		if errors.Is(err, npz.ErrSkip) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("tensor %q: %w", all[i].name, err)
		}
		arrays = append(arrays, a)
	}
	return arrays, nil
}

// readHeader reads the entries of the header, and where the numbers begin.
func readHeader(r io.ReaderAt, size int64) (all []tensor, begin int64, err error) {
	in := io.NewSectionReader(r, 0, size)
	length, err := npz.ReadBytes(in, 8)
	if err != nil {
		return nil, 0, err
	}
	n := binary.LittleEndian.Uint64(length)
	if n > mostHeaderBytes {
		return nil, 0, fmt.Errorf("a header of %d bytes; the longest read is %d", n, mostHeaderBytes)
	}
	text, err := npz.ReadBytes(in, int64(n))
	if err != nil {
		return nil, 0, err
	}
	all, err = parseHeader(text)
	if err != nil {
		err = fmt.Errorf("its header: %w", err)
	}
	return all, 8 + int64(n), err
}

// parseHeader reads the entries in their order.
func parseHeader(text []byte) (all []tensor, err error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil, errors.New("no object begins it")
	}
	seen := map[string]bool{}
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return nil, err
		}
		name, _ := t.(string)
		if seen[name] {
			return nil, fmt.Errorf("%q is there twice", name)
		}
		seen[name] = true
		if name == metadataKey {
			err = d.Decode(&map[string]string{})
		} else {
			all = append(all, tensor{name: name})
			err = d.Decode(&all[len(all)-1])
		}
		if err != nil {
			return nil, fmt.Errorf("%q: %w", name, err)
		}
	}
	if _, err := d.Token(); err != nil { // the closing brace
		return nil, err
	}
	if rest := bytes.TrimLeft(text[d.InputOffset():], " "); len(rest) > 0 {
		return nil, fmt.Errorf("%.20q behind the object", rest)
	}
	return all, nil
}

// checkPlaces refuses tensors that do not follow each other without gaps, from the first byte of a length to the last.
func checkPlaces(all []tensor, length int64) error {
	order := make([]*tensor, len(all))
	for i := range all {
		order[i] = &all[i]
	}
	slices.SortFunc(order, func(a, b *tensor) int { return slices.Compare(a.Place[:], b.Place[:]) })
	at := int64(0)
	for _, t := range order {
		if t.Place[0] != at || t.Place[1] < at {
			return fmt.Errorf("tensor %q lies at %d to %d, and one has to begin at %d; write the file again", t.name, t.Place[0], t.Place[1], at)
		}
		at = t.Place[1]
	}
	switch {
	case at > length:
		return npz.Truncated(length, at)
	case at < length:
		return npz.ErrMore
	}
	return nil
}

// read reads the numbers of a tensor that check takes.
func (t *tensor) read(r io.ReaderAt, begin int64, check func(*npz.Array) error) (npz.Array, error) {
	a := npz.Array{Name: t.name, Shape: t.Shape}
	of := slices.IndexFunc(tensorTypes[:], func(known tensorType) bool { return known.name == t.DType })
	if of < 0 && check != nil && errors.Is(check(&a), npz.ErrSkip) {
		return a, npz.ErrSkip
	}
	if of < 0 {
		return a, fmt.Errorf("element type %.20q; want one of %s", t.DType, naming.OneOf(naming.List(tensorTypes[:], func(k tensorType) string { return k.name })))
	}
	if len(t.Shape) > mostTensorRank {
		return a, fmt.Errorf("rank %d; the largest is %d", len(t.Shape), mostTensorRank)
	}
	a.Type = tensorTypes[of].dtype
	bytes, err := npz.SizeOf(a.Type, a.Shape)
	if err != nil {
		return a, err
	}
	widen := tensorTypes[of].widen
	if widen != nil {
		bytes /= 2
	}
	if length := t.Place[1] - t.Place[0]; length != bytes {
		return a, fmt.Errorf("%d bytes, and shape %v of %s has %d", length, t.Shape, t.DType, bytes)
	}
	if check != nil {
		if err := check(&a); err != nil {
			return a, err
		}
	}
	a.Data, err = npz.ReadBytes(io.NewSectionReader(r, begin+t.Place[0], bytes), bytes)
	if err == nil && widen != nil {
		a.Data = widened(a.Data, widen)
	}
	return a, err
}

// widened are numbers of 16 bits as float32.
func widened(data []byte, widen func(uint16) float32) []byte {
	wide := make([]byte, 0, 2*len(data))
	for ; len(data) > 0; data = data[2:] {
		wide = binary.LittleEndian.AppendUint32(wide, math.Float32bits(widen(binary.LittleEndian.Uint16(data))))
	}
	return wide
}

// encodeSafetensors writes the tensors, longer elements first, so that all are aligned, and else in their order. The
// header names PyTorch's layout, for which Hugging Face's transformers ask.
func encodeSafetensors(w io.Writer, arrays []npz.Array) error {
	arrays = slices.Clone(arrays)
	slices.SortStableFunc(arrays, func(a, b npz.Array) int { return int(b.Type.SizeBytes() - a.Type.SizeBytes()) })
	header := []byte(`{"` + metadataKey + `":{"format":"` + headerFormat + `"}`)
	seen, at := map[string]bool{metadataKey: true, "": true}, int64(0)
	for i := range arrays {
		a := &arrays[i]
		if seen[a.Name] || !utf8.ValidString(a.Name) {
			return fmt.Errorf("array name %q is empty, reserved, no UTF-8, or there twice", a.Name)
		}
		seen[a.Name] = true
		n, err := npz.SizeOf(a.Type, a.Shape)
		if err == nil && n != int64(len(a.Data)) {
			err = fmt.Errorf("%d bytes do not fill shape %v of %v", len(a.Data), a.Shape, a.Type)
		}
		if err != nil {
			return fmt.Errorf("array %q: %w", a.Name, err)
		}
		entry := tensor{DType: nameOf(a.Type), Shape: append([]int{}, a.Shape...), Place: [2]int64{at, at + n}}
		at += n
		if header, err = appendEntry(header, a.Name, &entry); err != nil {
			return err
		}
	}
	header = append(header, '}')
	header = append(header, strings.Repeat(" ", -len(header)&(headerAlignment-1))...)
	_, err := w.Write(append(binary.LittleEndian.AppendUint64(nil, uint64(len(header))), header...))
	for i := 0; i < len(arrays) && err == nil; i++ {
		_, err = w.Write(arrays[i].Data)
	}
	return err
}

// nameOf is the first name of a type of elements.
func nameOf(t dag.DType) string {
	for _, known := range tensorTypes {
		if known.dtype == t {
			return known.name
		}
	}
	panic("weights: no tensors of " + t.String())
}

// appendEntry adds an entry to the header.
func appendEntry(header []byte, name string, t *tensor) ([]byte, error) {
	key, err := json.Marshal(name)
	value, valueErr := json.Marshal(t)
	header = append(append(header, ','), key...)
	return append(append(header, ':'), value...), errors.Join(err, valueErr)
}
