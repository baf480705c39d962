package npz

import (
	"archive/zip"
	"bytes"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"dahl/dag"
	"dahl/must"
)

// What testdata/npz_fixture.py writes: element i is (start+i)·factor.
var numpyArrays = []struct {
	name          string
	dtype         dag.DType
	shape         []int
	start, factor float64
}{
	{"conv1.weight", dag.Float32, []int{3, 2, 5, 5}, 0, 0.25},
	{"fc1.weight", dag.Float64, []int{7, 11}, 0, -0.5},
	{"fc1.bias", dag.Float64, []int{7}, 0, 1024.125},
	{"labels", dag.Int32, []int{13}, -6, 1},
	{"steps", dag.Int64, []int{3}, 0, 1 << 40},
	{"pixels", dag.Uint8, []int{2, 3}, 0, 51},
	{"rate", dag.Float64, nil, 1, 0.0625},
	{"empty", dag.Float32, []int{0, 4}, 0, 0},
}

func TestReadNumpy(t *testing.T) {
	for _, file := range []string{"numpy.npz", "numpy_compressed.npz"} {
		arrays := must.Get(Read(filepath.Join("testdata", file), nil))(t)
		if len(arrays) != len(numpyArrays) {
			t.Fatalf("%s: %d arrays, want %d", file, len(arrays), len(numpyArrays))
		}
		for i, want := range numpyArrays {
			a := &arrays[i]
			if a.Name != want.name || a.Type != want.dtype || !slices.Equal(a.Shape, want.shape) {
				t.Errorf("%s: %s %v %v, want %s %v %v", file, a.Name, a.Type, a.Shape, want.name, want.dtype, want.shape)
				continue
			}
			values := a.Float64s()
			n := 1
			for _, e := range want.shape {
				n *= e
			}
			if len(values) != n || a.Len() != n {
				t.Errorf("%s: %s has %d elements, want %d", file, a.Name, len(values), n)
			}
			for k, v := range values {
				if v != (want.start+float64(k))*want.factor {
					t.Errorf("%s: %s[%d] = %v, want %v", file, a.Name, k, v, (want.start+float64(k))*want.factor)
				}
			}
		}
	}
}

// numpy wrote numpy.npz: what it can be compared with byte by byte is each .npy
// entry, since the zip records differ in times and versions.
func TestWriteSameEntriesAsNumpy(t *testing.T) {
	arrays := must.Get(Read("testdata/numpy.npz", nil))(t)
	var ours bytes.Buffer
	must.Do(t, Encode(&ours, arrays))
	theirs := must.Get(os.ReadFile("testdata/numpy.npz"))(t)
	got, want := npzEntries(t, ours.Bytes()), npzEntries(t, theirs)
	if len(got) != len(want) {
		t.Fatalf("%d entries, want %d", len(got), len(want))
	}
	for i, w := range want {
		// numpy pads the header of some versions by another 64 bytes for a growing
		// first axis; the literal before the padding and the data are the same.
		if squeezeSpaces(got[i]) != squeezeSpaces(w) {
			t.Errorf("%s:\n%.100q\nwant\n%.100q", arrays[i].Name, got[i], w)
		}
	}
}

// squeezeSpaces drops the length of a header and what pads it.
func squeezeSpaces(npy []byte) string {
	header, data, _ := bytes.Cut(npy[10:], []byte("\n"))
	return string(npy[:8]) + strings.TrimRight(string(header), " ") + "\n" + string(data)
}

func npzEntries(t *testing.T, file []byte) [][]byte {
	t.Helper()
	z := must.Get(zip.NewReader(bytes.NewReader(file), int64(len(file))))(t)
	var entries [][]byte
	for _, f := range z.File {
		r := must.Get(f.Open())(t)
		var b bytes.Buffer
		must.Get(b.ReadFrom(r))(t)
		entries = append(entries, b.Bytes())
	}
	return entries
}

func TestNPZRoundTrip(t *testing.T) {
	values := []float64{0, math.Copysign(0, -1), 1. / 3, -math.MaxFloat64, math.SmallestNonzeroFloat64, math.Inf(1)}
	arrays := []Array{
		NewArray("conv1.weight", dag.Float64, []int{1, 2, 3, 1}, values),
		NewArray("conv1.bias", dag.Float32, []int{5}, []float64{1, 0.5, -0.25, 3, 1e30}),
		NewArray("scalar", dag.Float64, nil, []float64{7}),
		{Name: "labels", Type: dag.Int32, Shape: []int{2}, Data: []byte{1, 0, 0, 0, 0xff, 0xff, 0xff, 0xff}},
	}
	dir := t.TempDir()
	first, second := filepath.Join(dir, "a.npz"), filepath.Join(dir, "b.npz")
	for _, path := range []string{first, second} {
		must.Do(t, Write(path, arrays))
	}
	a, errA := os.ReadFile(first)
	b, errB := os.ReadFile(second)
	if errA != nil || errB != nil || !bytes.Equal(a, b) {
		t.Errorf("two files of the same arrays differ (%v, %v)", errA, errB)
	}
	if err := Write(first, append(arrays, arrays[0])); err == nil || !strings.Contains(err.Error(), "is empty or there twice") {
		t.Errorf("one name for two arrays: %v", err)
	}
	if kept := must.Get(os.ReadFile(first))(t); !bytes.Equal(kept, a) {
		t.Errorf("a file that cannot be written takes away the one before: %d bytes are left of %d", len(kept), len(a))
	}
	back := must.Get(Read(first, nil))(t)
	if len(back) != len(arrays) {
		t.Fatalf("%d arrays came back of %d", len(back), len(arrays))
	}
	for i, want := range arrays {
		got := back[i]
		if got.Name != want.Name || got.Type != want.Type || !slices.Equal(got.Shape, want.Shape) || !bytes.Equal(got.Data, want.Data) {
			t.Errorf("%+v came back as %+v", want, got)
		}
	}
	for k, v := range back[0].Float64s() {
		if math.Float64bits(v) != math.Float64bits(values[k]) {
			t.Errorf("value %d: %v, want %v", k, v, values[k])
		}
	}
	if got := back[3].Float64s(); !slices.Equal(got, []float64{1, -1}) {
		t.Errorf("labels %v, want [1 -1]", got)
	}
}

func TestWriteNPZRefuses(t *testing.T) {
	good := Array{Name: "w", Type: dag.Float32, Shape: []int{2}, Data: make([]byte, 8)}
	for what, arrays := range map[string][]Array{
		"there twice":  {good, good},
		"is empty":     {{Type: dag.Float32, Shape: []int{2}, Data: make([]byte, 8)}},
		"do not fill":  {{Name: "w", Type: dag.Float64, Shape: []int{2}, Data: make([]byte, 8)}},
		"extent -2":    {{Name: "w", Type: dag.Float64, Shape: []int{-2}}},
		"more than 16": {{Name: "w", Type: dag.Float64, Shape: []int{1 << 40, 1 << 40}}},
	} {
		if err := Encode(&bytes.Buffer{}, arrays); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("error %v, want one that says %q", err, what)
		}
	}
}

// npy is an array of version 1.0 with that literal and data.
func npy(literal string, data ...byte) []byte {
	header := append([]byte(npyMagic), 1, 0, byte(len(literal)), byte(len(literal)>>8))
	return append(append(header, literal...), data...)
}

func npzOf(t testing.TB, name string, npy []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	w, err := z.Create(name)
	if err == nil {
		_, err = w.Write(npy)
	}
	if err == nil {
		err = z.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestReadNPZRefuses(t *testing.T) {
	fortran := must.Get(os.ReadFile("testdata/numpy_fortran.npz"))(t)
	tests := []struct {
		file []byte
		want string
	}{
		{fortran, "w.npy: is in Fortran order; save numpy.ascontiguousarray"},
		{[]byte("hello"), "no .npz file"},
		{nil, "no .npz file"},
		{fortran[:len(fortran)/2], "no .npz file"},
		{npzOf(t, "readme.txt", nil), "readme.txt: not an .npy array"},
		{npzOf(t, "w.npy", nil), "truncated: 0 bytes where 8 should be"},
		{npzOf(t, "w.npy", []byte("0123456789")), "does not begin as an .npy array"},
		{npzOf(t, "w.npy", []byte(npyMagic+"\x03\x00\x00\x00\x00\x00")), "version 3"},
		{npzOf(t, "w.npy", []byte(npyMagic+"\x02\x00\xff\xff\xff\xff")), "header of 4294967295 bytes"},
		{npzOf(t, "w.npy", npy("{'descr': '>f4', 'fortran_order': False, 'shape': (1,), }", 0, 0, 0, 0)), "element type '>f4'"},
		{npzOf(t, "w.npy", npy("{'descr': '|O', 'fortran_order': False, 'shape': (1,), }")), "element type '|O'"},
		{npzOf(t, "w.npy", npy("{'descr': '<f4', 'fortran_order': 0, 'shape': (1,), }")), "not True or False"},
		{npzOf(t, "w.npy", npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }", 0, 0, 0, 0)), "truncated: 4 bytes where 8"},
		{npzOf(t, "w.npy", npy("{'descr': '<f4', 'fortran_order': False, 'shape': (), }", 0, 0, 0, 0, 0)), "more bytes than its header says"},
		{npzOf(t, "w.npy", npy("{'descr': '<f4', 'fortran_order': False, 'shape': (-1,), }")), `"-1" is no extent`},
		{npzOf(t, "w.npy", npy("{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999, 99999999999), }")), "more than 16 GiB"},
		{npzOf(t, "w.npy", npy("{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000,), }")), "truncated: 0 bytes where 8000000000"},
		{npzOf(t, "w.npy", npy("{'descr': '<f4', 'fortran_order': False, 'shape': (1,)")), "no dictionary"},
		{npzOf(t, "w.npy", npy("{'descr': '<f4', 'fortran_order': False, }")), "no shape"},
		{npzOf(t, "w.npy", npy("{'descr': '<f4', 'descr': '<f4'}")), "there twice"},
		{npzOf(t, "w.npy", npy("{'shape': 3}")), "no tuple"},
		{npzOf(t, "w.npy", npy("{'shape': (3}")), "not understood"},
		{npzOf(t, "w.npy", npy("{'shape'}")), "not understood"},
		{npzOf(t, "w.npy", npy("{'colour': 3}")), "unknown"},
	}
	for _, test := range tests {
		_, err := Decode(bytes.NewReader(test.file), int64(len(test.file)), nil)
		if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("error %v, want one line that says %q", err, test.want)
		}
	}
	// What a check refuses is not decoded, and what it skips neither: of both there is nothing behind the header.
	empty := npzOf(t, "w.npy", npy("{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000,), }"))
	for _, refused := range []error{errors.New("not this one"), ErrSkip} {
		arrays, err := Decode(bytes.NewReader(empty), int64(len(empty)), func(a *Array) error { return refused })
		if arrays != nil || errors.Is(err, refused) == (refused == ErrSkip) {
			t.Errorf("%v: arrays %v, error %v", refused, arrays, err)
		}
	}
	if _, err := Read("testdata/none.npz", nil); err == nil || !strings.Contains(err.Error(), "none.npz") {
		t.Errorf("error %v, want one that names the file", err)
	}
}

// What decodes must encode, and then decode to the same.
func FuzzDecodeNPZ(f *testing.F) {
	for _, name := range []string{"numpy.npz", "numpy_compressed.npz", "numpy_fortran.npz"} {
		b := must.Get(os.ReadFile(filepath.Join("testdata", name)))(f)
		f.Add(b)
	}
	f.Add(npzOf(f, "w.npy", npy("{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000,), }")))
	f.Fuzz(func(t *testing.T, file []byte) {
		arrays, err := Decode(bytes.NewReader(file), int64(len(file)), nil)
		if err != nil {
			return
		}
		checkReencodes(t, arrays)
	})
}

// FuzzDecodeNPY skips the checksums of the zip container.
func FuzzDecodeNPY(f *testing.F) {
	f.Add(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }", 0, 0, 0, 0))
	f.Add(npy("{'descr': '|u1', 'fortran_order': False, 'shape': (0, 3), }"))
	f.Add(npy("{'shape': (), 'fortran_order': False, \"descr\": '<i8'}", 1, 2, 3, 4, 5, 6, 7, 8))
	f.Add(npy("{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000,), }"))
	f.Fuzz(func(t *testing.T, file []byte) {
		a, err := decodeNPY(bytes.NewReader(file), "", nil)
		if err != nil {
			return
		}
		a.Name = "w"
		checkReencodes(t, []Array{a})
	})
}

func checkReencodes(t *testing.T, arrays []Array) {
	t.Helper()
	for _, a := range arrays {
		if a.Name == "" {
			return // readable, but nothing that we would write
		}
	}
	var b bytes.Buffer
	if err := Encode(&b, arrays); err != nil {
		t.Fatalf("decoded arrays do not encode: %v", err)
	}
	back, err := Decode(bytes.NewReader(b.Bytes()), int64(b.Len()), nil)
	if err != nil {
		t.Fatalf("encoded arrays do not decode: %v", err)
	}
	for i, a := range arrays {
		if back[i].Type != a.Type || !slices.Equal(back[i].Shape, a.Shape) || !bytes.Equal(back[i].Data, a.Data) {
			t.Errorf("array %d changed: %v %v, was %v %v", i, back[i].Type, back[i].Shape, a.Type, a.Shape)
		}
	}
}

// TestIsFinite puts each number that is not finite at each place of arrays of several lengths.
func TestIsFinite(t *testing.T) {
	for _, of := range []dag.DType{dag.Float32, dag.Float64} {
		for n := range 6 {
			good := make([]float64, n)
			for i := range good {
				good[i] = []float64{math.MaxFloat32, -math.SmallestNonzeroFloat32, math.Copysign(0, -1)}[i%3]
			}
			if a := NewArray("a", of, []int{n}, good); !a.IsFinite() {
				t.Errorf("%v %v is not finite", of, good)
			}
			for i := range good {
				for _, bad := range []float64{math.NaN(), math.Inf(1), math.Inf(-1), -math.NaN()} {
					values := slices.Clone(good)
					values[i] = bad
					if a := NewArray("a", of, []int{n}, values); a.IsFinite() {
						t.Errorf("%v %v is finite", of, values)
					}
				}
			}
		}
	}
	counts := NewArray("n", dag.Int64, []int{1}, []float64{-1}) // all bits are set
	if !counts.IsFinite() {
		t.Error("whole numbers are not finite")
	}
}
