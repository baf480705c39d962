package npz

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"slices"
	"strings"

	"dahl/dag"
	"dahl/rundir/durable"
)

// Array is a named array of an .npz file.
type Array struct {
	Name  string
	Type  dag.DType
	Shape []int  // empty: a single number
	Data  []byte // little-endian, row-major
}

// NewArray makes an array of float64 numbers. It stores them in that type: rounded as
// float32, or as whole numbers.
func NewArray(name string, t dag.DType, shape []int, values []float64) Array {
	a := Array{Name: name, Type: t, Shape: slices.Clone(shape)}
	if n, err := SizeOf(t, shape); err != nil || n != int64(len(values))*t.SizeBytes() {
		panic(fmt.Sprintf("npz: array %q of shape %v made of %d numbers", name, shape, len(values)))
	}
	a.Data = make([]byte, 0, int64(len(values))*t.SizeBytes())
	a.Append(values)
	return a
}

// Append adds elements to the data, as NewArray stores them. An array of a large parameter grows in pieces
// where it is to lie, so that its numbers are nowhere else.
func (a *Array) Append(values []float64) {
	for _, v := range values {
		switch a.Type {
		case dag.Float32:
			a.Data = binary.LittleEndian.AppendUint32(a.Data, math.Float32bits(float32(v)))
		case dag.Float64:
			a.Data = binary.LittleEndian.AppendUint64(a.Data, math.Float64bits(v))
		case dag.Int64:
			a.Data = binary.LittleEndian.AppendUint64(a.Data, uint64(int64(v)))
		default:
			panic("npz: NewArray makes float32, float64 or int64, not " + a.Type.String())
		}
	}
}

// Len is the number of elements.
func (a *Array) Len() int { return len(a.Data) / int(a.Type.SizeBytes()) }

// Float64s returns the elements. An int64 beyond 2^53 is rounded.
func (a *Array) Float64s() []float64 {
	values := make([]float64, a.Len())
	a.Fill(values, 0)
	return values
}

// Fill puts the elements from one on into values, as Float64s gives them.
func (a *Array) Fill(values []float64, from int) {
	data := a.Data[from*int(a.Type.SizeBytes()):]
	for i := range values {
		switch a.Type {
		case dag.Uint8:
			values[i] = float64(data[i])
		case dag.Int32:
			values[i] = float64(int32(binary.LittleEndian.Uint32(data[4*i:])))
		case dag.Int64:
			values[i] = float64(int64(binary.LittleEndian.Uint64(data[8*i:])))
		case dag.Float32:
			values[i] = float64(math.Float32frombits(binary.LittleEndian.Uint32(data[4*i:])))
		case dag.Float64:
			values[i] = math.Float64frombits(binary.LittleEndian.Uint64(data[8*i:]))
		}
	}
}

// exponents32 and exponents64 are the bits of a float that are all set where it is NaN or infinite.
const exponents32, exponents64 = 0xff << 23, 0x7ff << 52

// IsFinite reports whether no element is NaN or infinite. It allocates nothing.
func (a *Array) IsFinite() bool {
	switch a.Type {
	case dag.Float32:
		for i := 0; i+4 <= len(a.Data); i += 4 {
			if binary.LittleEndian.Uint32(a.Data[i:])&exponents32 == exponents32 {
				return false
			}
		}
	case dag.Float64:
		for i := 0; i+8 <= len(a.Data); i += 8 {
			if binary.LittleEndian.Uint64(a.Data[i:])&exponents64 == exponents64 {
				return false
			}
		}
	}
	return true
}

// SizeOf is the size of an array in bytes. It refuses absurd sizes.
func SizeOf(t dag.DType, shape []int) (int64, error) {
	n := t.SizeBytes()
	for _, e := range shape {
		if e < 0 {
			return 0, fmt.Errorf("extent %d in shape %v", e, shape)
		}
		if e > 0 && n > MaxBytes/int64(e) {
			return 0, fmt.Errorf("shape %v is more than %d GiB", shape, MaxBytes>>30)
		}
		n *= int64(e)
	}
	return n, nil
}

// ErrSkip is the error of a check that leaves an array out.
var ErrSkip = errors.New("the array is not wanted")

// Read reads all arrays of a file that numpy.savez or savez_compressed wrote,
// in the order of the file. Types are f4, f8, i4, i8 and u1. An array whose name, type or shape
// check refuses is not decoded. Nil means that all are wanted.
func Read(path string, check func(a *Array) error) ([]Array, error) {
	return ReadAs(path, check, Decode)
}

// ReadAs reads a file of arrays in another format, which decode reads.
func ReadAs(path string, check func(a *Array) error, decode func(r io.ReaderAt, size int64, check func(a *Array) error) ([]Array, error)) ([]Array, error) {
	f, err := durable.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	arrays, err := decode(f, info.Size(), check)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return arrays, nil
}

// Decode reads the arrays of an .npz file of that size, as Read does.
func Decode(r io.ReaderAt, size int64, check func(a *Array) error) ([]Array, error) {
	z, err := zip.NewReader(r, size)
	if err != nil {
		return nil, fmt.Errorf("no .npz file: %w; write it with numpy.savez", err)
	}
	var arrays []Array
	seen := map[string]bool{}
	for _, entry := range z.File {
		a, err := decodeEntry(entry, check)
		if errors.Is(err, ErrSkip) {
			continue
		}
		if err == nil && seen[a.Name] {
			err = errors.New("the name is there twice")
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", entry.Name, err)
		}
		seen[a.Name] = true
		arrays = append(arrays, a)
	}
	return arrays, nil
}

func decodeEntry(entry *zip.File, check func(a *Array) error) (Array, error) {
	name, ok := strings.CutSuffix(entry.Name, ".npy")
	if !ok {
		return Array{}, errors.New("not an .npy array; an .npz file holds nothing else")
	}
	r, err := entry.Open()
	if err != nil {
		return Array{}, err
	}
	defer r.Close()
	return decodeNPY(r, name, check)
}

// decodeNPY reads one array (numpy.lib.format, versions 1.0 and 2.0).
func decodeNPY(r io.Reader, name string, check func(a *Array) error) (Array, error) {
	a, err := decodeNPYHeader(r)
	if a.Name = name; err == nil && check != nil {
		err = check(&a)
	}
	if err != nil {
		return a, err
	}
	n, err := SizeOf(a.Type, a.Shape)
	if err != nil {
		return a, err
	}
	if a.Data, err = ReadBytes(r, n); err != nil {
		return a, err
	}
	return a, AtEnd(r)
}

// Write writes the arrays, uncompressed and in their order. So the bytes depend on nothing
// else. It replaces an existing file once the new one is whole.
func Write(path string, arrays []Array) error {
	return durable.Write(path, func(w io.Writer) error { return Encode(w, arrays) })
}

// Encode writes an .npz file.
func Encode(w io.Writer, arrays []Array) error {
	z := zip.NewWriter(w)
	seen := map[string]bool{}
	for i := range arrays {
		a := &arrays[i]
		n, err := SizeOf(a.Type, a.Shape)
		if err != nil {
			return fmt.Errorf("array %q: %w", a.Name, err)
		}
		if n != int64(len(a.Data)) {
			return fmt.Errorf("array %q: %d bytes do not fill shape %v of %v", a.Name, len(a.Data), a.Shape, a.Type)
		}
		if a.Name == "" || seen[a.Name] {
			return fmt.Errorf("array name %q is empty or there twice", a.Name)
		}
		seen[a.Name] = true
		if err := encodeEntry(z, a); err != nil {
			return fmt.Errorf("array %q: %w", a.Name, err)
		}
	}
	return z.Close()
}

// encodeEntry writes the sizes and checksum before the data, as numpy does, but no time.
func encodeEntry(z *zip.Writer, a *Array) error {
	header := encodeNPYHeader(a)
	sum := crc32.Update(crc32.ChecksumIEEE(header), crc32.IEEETable, a.Data)
	size := uint64(len(header) + len(a.Data))
	w, err := z.CreateRaw(&zip.FileHeader{
		Name: a.Name + ".npy", Method: zip.Store, CRC32: sum,
		CompressedSize64: size, UncompressedSize64: size,
	})
	if err != nil {
		return err
	}
	_, err = io.Copy(w, io.MultiReader(bytes.NewReader(header), bytes.NewReader(a.Data)))
	return err
}
