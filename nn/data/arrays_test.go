package data

import (
	"bytes"
	"encoding/binary"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"dahl/dag"
	"dahl/must"
	"dahl/nn/npz"
)

// archive writes arrays and returns the path of their file.
func archive(t *testing.T, arrays ...npz.Array) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "set.npz")
	must.Do(t, npz.Write(path, arrays))
	return path
}

// TestArrays: sequences of 2×3 numbers with two labels each, and one of which test.
func TestArrays(t *testing.T) {
	numbers := []float64{1, 2, 3, 4, 5, 6, -7, -8, -9, 10, 11, 0.1}
	path := archive(t,
		npz.NewArray("x_train", dag.Float64, []int{2, 2, 3}, numbers), npz.NewArray("y_train", dag.Int64, []int{2, 2}, []float64{0, 4, 2, 1}),
		npz.NewArray("x_test", dag.Float64, []int{1, 2, 3}, numbers[6:]), npz.NewArray("y_test", dag.Int64, []int{1, 2}, []float64{3, 0}))
	d := must.Get(loaded(path, Options{Offset: 1}))(t)
	checkDataset(t, d)
	if d.Len() != 1 || d.Classes != 5 || !slices.Equal(d.Shape, []int{2, 3}) || !slices.Equal(d.Positions, []int{2}) || !slices.Equal(d.Labels, []int32{2, 1}) {
		t.Errorf("%+v", d)
	}
	narrow := d.As(dag.Float32)
	for i, want := range numbers[6:] {
		wide, short := math.Float64frombits(binary.LittleEndian.Uint64(d.Samples[8*i:])), math.Float32frombits(binary.LittleEndian.Uint32(narrow.Samples[4*i:]))
		if wide != want || short != float32(want) {
			t.Errorf("number %d is %v, as float32 %v; want %v", i, wide, short, want)
		}
	}
	if narrow.SampleBytes() != 24 || narrow.As(dag.Float32) != narrow {
		t.Errorf("%d bytes", narrow.SampleBytes())
	}
	if d = must.Get(loaded(path, Options{Split: Test}))(t); !slices.Equal(d.Labels, []int32{3, 0}) || len(d.Samples) != 6*8 {
		t.Errorf("test: %+v", d)
	}
}

// TestArraysOfTokens: whole numbers are tokens, of which the largest is 6. Labels (N, 1) are one for each sample.
func TestArraysOfTokens(t *testing.T) {
	d := must.Get(loaded(archive(t, npz.NewArray("x", dag.Int64, []int{3, 2}, []float64{5, 0, 1, 6, 2, 2}), npz.NewArray("y", dag.Int64, []int{3, 1}, []float64{1, 0, 1})), Options{}))(t)
	checkDataset(t, d)
	if d.Type != dag.Int32 || d.Tokens() != 7 || d.Len() != 3 || d.Positions != nil || binary.LittleEndian.Uint32(d.Samples[12:]) != 6 || d.As(dag.Float32) != d {
		t.Errorf("%+v", d)
	}
}

func TestArraysRefused(t *testing.T) {
	x, y := npz.NewArray("x", dag.Float32, []int{2, 3}, make([]float64, 6)), npz.NewArray("y", dag.Int64, []int{2}, make([]float64, 2))
	named := func(name string, a npz.Array) npz.Array { a.Name = name; return a }
	wantError(t, archive(t, x, y), Options{Split: Test}, "no test split", "add x_test and y_test")
	wantError(t, archive(t, x), Options{}, "the samples as array x_train")
	wantError(t, archive(t, x, named("x_train", x), y), Options{}, "there twice")
	wantError(t, archive(t, x, npz.NewArray("y", dag.Int64, []int{3}, make([]float64, 3))), Options{}, "the first extent of both")
	wantError(t, archive(t, x, named("y", x)), Options{}, "y_train has type float32")
	wantError(t, archive(t, x, npz.NewArray("y", dag.Int64, []int{2}, []float64{0, -2})), Options{}, "y_train has -2; want whole numbers from 0 to 65535")
	wantError(t, archive(t, named("x", y), npz.NewArray("y", dag.Int64, []int{2}, []float64{0, 65536})), Options{}, "y_train has 65536")
	wantError(t, archive(t, npz.NewArray("x", dag.Float32, []int{2, 1}, []float64{0, math.NaN()}), y), Options{}, "x_train has numbers that are not finite")
	wantError(t, archive(t, npz.NewArray("x", dag.Int64, []int{2, 1}, []float64{0, -3}), y), Options{}, "x_train has -3; want")
	wantError(t, archive(t, npz.NewArray("x", dag.Float32, []int{2, 1, 1, 1, 1, 1}, make([]float64, 2)), y), Options{}, "at most 4 dimensions")
	wantError(t, archive(t, npz.NewArray("x", dag.Float32, []int{0, 3}, nil), npz.NewArray("y", dag.Int64, []int{0}, nil)), Options{}, "offset 0 leaves none of the 0")
	wantError(t, archive(t, npz.NewArray("x", dag.Float32, []int{2, 0}, nil), y), Options{}, "hold nothing")
	wantError(t, archive(t, x, y), Options{Resize: [2]int{8, 8}}, "cannot be resized")
	wantError(t, "none.npz", Options{}, "none.npz: no such file")
}

// FuzzArrays: what is taken keeps the promises of data sets, and an error is one line.
func FuzzArrays(f *testing.F) {
	for _, arrays := range [][]npz.Array{
		{npz.NewArray("x", dag.Float32, []int{2, 3}, make([]float64, 6)), npz.NewArray("y", dag.Int64, []int{2}, []float64{1, 0})},
		{npz.NewArray("x_train", dag.Int64, []int{2, 2}, make([]float64, 4)), npz.NewArray("y_train", dag.Int64, []int{2, 2}, []float64{1, 0, 3, 2})},
	} {
		var b bytes.Buffer
		must.Do(f, npz.Encode(&b, arrays))
		f.Add(b.Bytes(), 1)
	}
	f.Fuzz(func(t *testing.T, file []byte, offset int) {
		arrays, err := npz.Decode(bytes.NewReader(file), int64(len(file)), ofSplit(Train))
		if err != nil {
			return
		}
		d, err := fromArrays("set.npz", arrays, Options{Split: Train, Offset: max(0, offset)})
		if err == nil {
			checkDataset(t, d)
		} else if strings.Contains(err.Error(), "\n") {
			t.Errorf("an error of several lines: %q", err)
		}
	})
}
