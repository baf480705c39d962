package weights

import (
	"bytes"
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"dahl/dag"
	"dahl/must"
	"dahl/nn/npz"
)

// TestDecodeSafetensors: what testdata/safetensors_fixture.py writes by the Python package. The numbers of 16 bits follow from the
// formats: a float16 has 10 bits of fraction and exponents from -14 to 15, a bfloat16 has 7 bits of fraction and those of a float32.
func TestDecodeSafetensors(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	want := map[string]struct {
		dtype  dag.DType
		shape  []int
		values []float64
	}{
		"f64": {dag.Float64, []int{1, 3}, []float64{0.1, -2.5, 1e300}},
		"f32": {dag.Float32, []int{2, 1}, []float64{float64(float32(0.1)), -2.5}},
		"i64": {dag.Int64, nil, []float64{-3}},
		"i32": {dag.Int32, []int{2}, []float64{7, -7}},
		"u8":  {dag.Uint8, []int{3}, []float64{0, 255, 3}},
		"f16": {dag.Float32, []int{11}, []float64{0, math.Copysign(0, -1), 0x1p-24, 1023 * 0x1p-24, 0x1p-14, 1, -1.5, 65504, inf, -inf, nan}},
		"bf16": {dag.Float32, []int{10}, []float64{0, math.Copysign(0, -1), 0x1p-133, 0x1p-126, 1, -1.5, (2 - 0x1p-7) * 0x1p127,
			inf, -inf, nan}},
		"größe.\"weight\"": {dag.Float32, []int{0, 3}, nil},
	}
	arrays := must.Get(Read("testdata/python.safetensors", nil))(t)
	if len(arrays) != len(want) {
		t.Errorf("%d tensors, want %d", len(arrays), len(want))
	}
	same := func(a, b float64) bool { // to the sign of zero
		return math.Float64bits(a) == math.Float64bits(b) || math.IsNaN(a) && math.IsNaN(b)
	}
	for _, a := range arrays {
		w := want[a.Name]
		if a.Type != w.dtype || !slices.Equal(a.Shape, w.shape) || !slices.EqualFunc(a.Float64s(), w.values, same) {
			t.Errorf("%s: %v %v %v, want %+v", a.Name, a.Type, a.Shape, a.Float64s(), w)
		}
	}
}

// some are arrays whose order and lengths would leave the int64 unaligned, if they were written in it.
func some() []npz.Array {
	return []npz.Array{
		npz.NewArray("fc1.weight", dag.Float32, []int{3}, []float64{1, -2, 0.5}),
		{Name: "pixels", Type: dag.Uint8, Shape: []int{1, 1}, Data: []byte{7}},
		npz.NewArray("fc1.bias", dag.Float64, nil, []float64{3}),
		npz.NewArray("bn1.num_batches_tracked", dag.Int64, nil, []float64{4}),
	}
}

// TestEncodeSafetensors: the bytes of a file, by its format: longer elements come first, and spaces fill the header up to a multiple
// of 8.
func TestEncodeSafetensors(t *testing.T) {
	var got bytes.Buffer
	must.Do(t, encodeSafetensors(&got, some()))
	header := `{"__metadata__":{"format":"pt"},"fc1.bias":{"dtype":"F64","shape":[],"data_offsets":[0,8]},` +
		`"bn1.num_batches_tracked":{"dtype":"I64","shape":[],"data_offsets":[8,16]},"fc1.weight":{"dtype":"F32","shape":[3],"data_offsets":[16,28]},` +
		`"pixels":{"dtype":"U8","shape":[1,1],"data_offsets":[28,29]}}`
	for len(header)%8 != 0 {
		header += " "
	}
	a := some()
	want := slices.Concat(binary.LittleEndian.AppendUint64(nil, uint64(len(header))), []byte(header), a[2].Data, a[3].Data, a[0].Data, a[1].Data)
	if !bytes.Equal(got.Bytes(), want) {
		t.Errorf("written as\n%q, want\n%q", got.Bytes(), want)
	}
	for name, bad := range map[string][]npz.Array{
		"twice":    {a[0], a[0]},
		"reserved": {{Name: metadataKey, Type: dag.Uint8, Shape: []int{0}}},
		"UTF-8":    {{Name: "\xff", Type: dag.Uint8, Shape: []int{0}}},
		"fill":     {{Name: "w", Type: dag.Float32, Shape: []int{2}, Data: make([]byte, 4)}},
	} {
		if err := encodeSafetensors(&bytes.Buffer{}, bad); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

// fileOf is a file with a header and some bytes of numbers.
func fileOf(header string, numbers int) []byte {
	return slices.Concat(binary.LittleEndian.AppendUint64(nil, uint64(len(header))), []byte(header), make([]byte, numbers))
}

// TestSafetensorsErrors: damaged files end in one line.
func TestSafetensorsErrors(t *testing.T) {
	for _, c := range []struct {
		file []byte
		want string
	}{
		{nil, "no safetensors file: truncated: 0 bytes where 8 should be"},
		{[]byte{1, 2, 3}, "truncated"},
		{bytes.Repeat([]byte{255}, 8), "a header of 18446744073709551615 bytes; the longest read is 100000000"},
		{fileOf("", 0), "no object begins it"},
		{fileOf("[]", 0), "no object begins it"},
		{fileOf(`{"a":1}`, 0), `its header: "a": json`},
		{fileOf(`{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}`, 1), "EOF"},
		{fileOf(`{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1],"x":1}}`, 1), "unknown field"},
		{fileOf(`{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}x`, 1), `"x" behind the object`},
		{fileOf(`{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}}`, 2), `"a" is there twice`},
		{fileOf(`{"a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}}`, 2), `tensor "a" lies at 1 to 2, and one has to begin at 0`},
		{fileOf(`{"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"b":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}}`, 3), `tensor "b" lies at 1 to 3, and one has to begin at 2`},
		{fileOf(`{"a":{"dtype":"U8","shape":[-1],"data_offsets":[0,-1]}}`, 0), `lies at 0 to -1`},
		{fileOf(`{"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}}`, 1), "truncated: 1 bytes where 2 should be"},
		{fileOf(`{"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}}`, 3), "holds more bytes"},
		{fileOf(`{"a":{"dtype":"F16","shape":[3],"data_offsets":[0,4]}}`, 4), `tensor "a": 4 bytes, and shape [3] of F16 has 6`},
		{fileOf(`{"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}}`, 4), `extent -1`},
		{fileOf(`{"a":{"dtype":"F8_E4M3","shape":[4],"data_offsets":[0,4]}}`, 4), `element type "F8_E4M3"; want one of F64, F32`},
		{fileOf(`{"a":{"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,0]}}`, 0), "more than 16 GiB"},
	} {
		_, err := decodeSafetensors(bytes.NewReader(c.file), int64(len(c.file)), nil)
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%.120q: error %v, want one line with %q", c.file, err, c.want)
		}
	}
}

// TestFormats: every format gives back the arrays that it wrote, chosen by the ending of a name, and leaves out what
// a check refuses.
func TestFormats(t *testing.T) {
	for _, ending := range append(Endings(), ".other") {
		path := filepath.Join(t.TempDir(), "w"+strings.ToUpper(ending))
		var b bytes.Buffer
		must.Do(t, FormatOf(path).Encode(&b, some()))
		must.Do(t, os.WriteFile(path, b.Bytes(), 0o600))
		got := must.Get(Read(path, func(a *npz.Array) error {
			if a.Name == "pixels" {
				return npz.ErrSkip
			}
			return nil
		}))(t)
		checkSame(t, got, slices.DeleteFunc(some(), func(a npz.Array) bool { return a.Name == "pixels" }))
	}
}

// checkSame compares arrays, whatever their order.
func checkSame(t *testing.T, got, want []npz.Array) {
	t.Helper()
	byName := func(a, b npz.Array) int { return strings.Compare(a.Name, b.Name) }
	got, want = slices.SortedFunc(slices.Values(got), byName), slices.SortedFunc(slices.Values(want), byName)
	if !slices.EqualFunc(got, want, func(a, b npz.Array) bool {
		return a.Name == b.Name && a.Type == b.Type && slices.Equal(a.Shape, b.Shape) && bytes.Equal(a.Data, b.Data)
	}) {
		t.Errorf("arrays are\n%v, want\n%v", got, want)
	}
}

// FuzzDecodeSafetensors: what is read is written so that it is read back as the same.
func FuzzDecodeSafetensors(f *testing.F) {
	f.Add(must.Get(os.ReadFile("testdata/python.safetensors"))(f))
	f.Add(fileOf(`{"a":{"dtype":"F32","shape":[1000000000],"data_offsets":[0,4000000000]}}`, 0))
	f.Add(fileOf(`{"b":{"dtype":"BF16","shape":[1],"data_offsets":[1,3]},"a":{"dtype":"U8","shape":[],"data_offsets":[0,1]}}`, 3))
	f.Fuzz(func(t *testing.T, file []byte) {
		arrays, err := decodeSafetensors(bytes.NewReader(file), int64(len(file)), nil)
		if err != nil {
			return
		}
		var b bytes.Buffer
		if err := encodeSafetensors(&b, arrays); err != nil {
			if slices.ContainsFunc(arrays, func(a npz.Array) bool { return a.Name == "" }) {
				return // readable, but nothing that we would write
			}
			t.Fatalf("decoded arrays do not encode: %v", err)
		}
		checkSame(t, must.Get(decodeSafetensors(bytes.NewReader(b.Bytes()), int64(b.Len()), nil))(t), arrays)
	})
}
